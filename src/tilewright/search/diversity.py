"""Batches that are good and unlike each other: measuring two programs that are nearly the same teaches little.

Of a pool of candidates those are chosen whose sum of scores, and `alpha` for each value of a knob that is among them,
is the greatest, one after the other. A value that is covered already counts no more, so that the gain of a candidate
only falls as others are chosen: such a greedy choice is at least 63 % of the best one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.search.points import IntArray, Points
from tilewright.space import Candidate

FloatArray = npt.NDArray[np.float64]


def choose_diverse(candidates: Sequence[Candidate], scores: FloatArray, num: int, alpha: float) -> list[Candidate]:
    """The chosen ones in the order in which they were; where `num` is more than there are, all of them.

    `alpha` counts in spreads of the scores, their standard deviation, so that it means the same for any cost model.
    """
    values, num_values = _values(candidates)
    gains = _standardised(scores)
    covered = np.zeros(num_values + 1, np.bool_)
    covered[-1] = True  # what stands where a candidate has no knob
    chosen: list[int] = []
    for _ in range(min(num, len(candidates))):
        total = gains + alpha * np.count_nonzero(~covered[values], axis=1)
        place = int(np.argmax(total))
        chosen.append(place)
        covered[values[place]] = True
        gains[place] = -np.inf
    return [candidates[place] for place in chosen]


def _standardised(scores: FloatArray) -> FloatArray:
    spread = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros(len(scores))


def _values(candidates: Sequence[Candidate]) -> tuple[IntArray, int]:
    """The values that each candidate has, as numbers from 0 on, and how many there are; -1 where it has fewer.

    A value is a choice of a knob, the same for knobs of several sketches that have the same name and table. The sketch
    is one too.
    """
    sketches = list(dict.fromkeys(candidate.sketch for candidate in candidates))
    if not sketches:
        return np.zeros((0, 1), np.int64), 0
    points = Points.of(sketches, candidates)
    values = np.full((len(points), 1 + points.rows.shape[1]), -1)
    values[:, 0] = points.owners
    num_values = len(sketches)
    starts: dict[object, int] = {}
    for places, population in points.populations():
        for column, knob in enumerate(population.sketch.knobs):
            key = (knob.name, knob.table.shape, knob.table.tobytes())
            if key not in starts:
                starts[key] = num_values
                num_values += knob.cardinality
            values[places, 1 + column] = starts[key] + population.rows[:, column]
    return values, num_values
