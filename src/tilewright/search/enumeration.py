"""The candidates of a sketch by their numbers, which are read as rows: the digit of each knob is its choice."""

from __future__ import annotations

import numpy as np

from tilewright.space import Population, Sketch


def numbered(sketch: Sketch, first: int, count: int) -> Population:
    """The candidates from number `first` on, at most `count`; the first knob changes the fastest.

    The number may be of any size: a space may have more candidates than 64 bits can count.
    """
    count = max(0, min(count, sketch.cardinality - first))
    rows = np.zeros((count, len(sketch.knobs)), np.int64)
    carried = np.arange(count)
    for column, knob in enumerate(sketch.knobs):
        first, digit = divmod(first, knob.cardinality)
        carried, rows[:, column] = np.divmod(carried + digit, knob.cardinality)
    return Population(sketch, rows)
