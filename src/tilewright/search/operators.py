"""The operators of evolutionary search, each on many rows at once.

Tile size and pragma mutation change one knob to a neighbour; compute location mutation moves a row to a sketch that
computes some stage elsewhere; crossover takes whole stages from one parent or the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.space import Sketch
from tilewright.space.knob import IntArray


def mutate(rng: np.random.Generator, sketch: Sketch, rows: IntArray) -> IntArray:
    """Each row with one knob, sometimes two, at a neighbouring choice."""
    children = rows.copy()
    if not sketch.knobs or not len(rows):
        return children
    weights = np.asarray([knob.mutation_weight for knob in sketch.knobs])
    for share in (1.0, 0.4):
        chosen = rng.choice(len(sketch.knobs), size=len(rows), p=weights / weights.sum())
        active = rng.random(len(rows)) < share
        for position, knob in enumerate(sketch.knobs):
            here = (chosen == position) & active
            if here.any():
                children[here, position] = knob.neighbours(rng, children[here, position])
    return children


def crossover(rng: np.random.Generator, sketch: Sketch, first: IntArray, pool: IntArray) -> IntArray:
    """Each row with the knobs of some stages taken from a row of the pool."""
    if not len(first) or not len(pool):
        return first
    other = pool[rng.integers(0, len(pool), len(first))]
    owners = [knob.name.rsplit(".", 1)[0] for knob in sketch.knobs]
    groups = sorted(set(owners))
    if len(groups) == 1:
        take = rng.random(first.shape) < 0.5
    else:
        by_group = rng.random((len(first), len(groups))) < 0.5
        take = by_group[:, [groups.index(owner) for owner in owners]]
    return np.where(take, other, first)


def relocate(
    rng: np.random.Generator, sketches: Sequence[Sketch], position: int, rows: IntArray
) -> tuple[IntArray, int]:
    """The rows in another sketch with the same knobs, and which sketch that is."""
    names = [knob.name for knob in sketches[position].knobs]
    siblings = [
        other
        for other, sketch in enumerate(sketches)
        if other != position and [knob.name for knob in sketch.knobs] == names
    ]
    return rows, int(rng.choice(siblings)) if siblings else position
