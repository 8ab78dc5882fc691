"""What a task gives for some inputs, and whether a program gives the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.te.comparison import assert_matches, difference, is_rounded, reduction_size
from tilewright.te.evaluation import evaluate
from tilewright.te.rounding import noises
from tilewright.te.task import Task

# Points of the loop nests that are evaluated some times more, while a program is being measured.
_MOST_POINTS = 1e7
# What noise does is a sample of what rounding does.
_MARGIN = 2.0


@dataclass(slots=True, eq=False)
class Expected:
    """The right outputs of a task for some inputs, as `evaluate` gives them.

    Inputs are drawn when they are needed, which is seldom: a program that writes to those it was given spoils nothing.
    """

    task: Task
    draw_inputs: Callable[[], Sequence[NDArray[Any]]]
    outputs: Sequence[NDArray[Any]]
    _spreads: dict[float, list[NDArray[Any]]] = field(default_factory=dict, init=False)

    def mismatch(self, outputs: Sequence[NDArray[Any]], error_growth: float = 1.0) -> str:
        """What is wrong with the outputs of a program, whose algorithm lets rounding grow so much; empty if nothing is.

        Elements that a little noise in the last bits of what they are made of moves by more than rounding may be off by
        as much.
        """
        wrong = self._first_wrong(outputs, error_growth, [])
        if not wrong or self.task.num_points > _MOST_POINTS:
            return wrong
        return self._first_wrong(outputs, error_growth, self._spread(error_growth))

    def _first_wrong(
        self, outputs: Sequence[NDArray[Any]], error_growth: float, spreads: Sequence[NDArray[Any]]
    ) -> str:
        size = reduction_size(self.task)
        for n, (tensor, actual, expected) in enumerate(zip(self.task.outputs, outputs, self.outputs, strict=True)):
            spread = spreads[n] if spreads else None
            try:
                assert_matches(actual, expected, tensor.dtype, size, error_growth, is_rounded(tensor), spread)
            except AssertionError as error:
                return f"output {tensor.name}: {error}"
        return ""

    def _spread(self, error_growth: float) -> list[NDArray[Any]]:
        """How far noise moves each element of each output."""
        known = self._spreads.get(error_growth)
        if known is None:
            known = [np.zeros(output.shape) for output in self.outputs]
            inputs = self.draw_inputs()
            still = evaluate(self.task, *inputs)
            for noise in noises(self.task, error_growth):
                moved = evaluate(self.task, *inputs, noise=noise)
                for n, tensor in enumerate(self.task.outputs):
                    known[n] += _MARGIN * difference(moved[n], still[n], tensor.dtype)
            self._spreads[error_growth] = known
        return known
