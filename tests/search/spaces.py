"""Spaces without a task worth computing, and latencies that rows have by a formula."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright as tw
from tilewright.search.base import FloatArray
from tilewright.space import Candidate, Decision, Population, Sketch, SpaceOptions, TileKnob, derive, open_split
from tilewright.workloads import parse

TARGET = tw.Target.parse("haswell")
OPTIONS = SpaceOptions(TARGET, threads=2)
SKETCHES = derive(parse("gmm:128x128x128"), OPTIONS)


def sketch_of(*tables: Sequence[int], name: str = "") -> Sketch:
    """A sketch with a knob for each table: splits of the loops of an elementwise computation."""
    axes = [f"i{number}" for number in range(len(tables))]
    X = tw.te.placeholder((64,) * max(1, len(tables)), name="X")
    task = tw.Task([X], [tw.te.compute(X.shape, lambda *indices: X[indices] + 1.0, name="Y")])
    splits = [
        open_split("Y", axis, Decision(TileKnob(f"Y.{axis}", table))) for axis, table in zip(axes, tables, strict=True)
    ]
    return Sketch(task, tuple(splits), OPTIONS, name)


def bowl(candidates: Sequence[Candidate]) -> list[float]:
    """Latencies that are the lowest in the middle of every table; of equal candidates the same."""
    return [1e-3 * (1 + sum(_distances(candidate))) for candidate in candidates]


def bowl_scores(population: Population) -> FloatArray:
    """Scores that know these latencies."""
    return -np.log(bowl(list(population)))


def _distances(candidate: Candidate) -> list[float]:
    knobs = candidate.sketch.knobs
    return [
        abs(choice - knob.cardinality // 2) / knob.cardinality
        for choice, knob in zip(candidate.row, knobs, strict=True)
    ]


def no_scores(population: Population) -> FloatArray:
    raise AssertionError("this strategy does not ask for scores")
