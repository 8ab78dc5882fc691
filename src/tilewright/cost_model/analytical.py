"""A cost model that needs no data: a roofline over the loop analysis. It ranks the first round of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.base import CostModel
from tilewright.cost_model.examples import Examples
from tilewright.features import Encoder, EstimateEncoder, Hardware, estimate_cycles, roofline
from tilewright.schedule import Schedule


@dataclass(kw_only=True, eq=False)
class AnalyticalModel(CostModel):
    """Cycles as the sum over statements of what bounds each; the score is minus their logarithm.

    `score_schedule` gives the same for a schedule that is of no sketch.
    """

    name: ClassVar[str] = "analytical"
    encoder: ClassVar[Encoder] = EstimateEncoder()

    @property
    def is_fitted(self) -> bool:
        return True

    def fit_examples(self, examples: Examples) -> None:
        """There is nothing to learn."""

    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        return score_of((np.exp2(values[:, :, 0].astype(np.float64)) - 1).sum(axis=1))

    def _state(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        pass


def score_schedule(schedule: Schedule, n: int, hardware: Hardware) -> NDArray[np.float64]:
    """The model's score of each of the `n` candidates of a population, straight from the schedule.

    >>> import tilewright as tw
    >>> from tilewright import te
    >>> A = te.placeholder((64, 64), name="A")
    >>> s = tw.Schedule(tw.Task([A], [te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")]))
    >>> s["B"].vectorize(s["B"].split("j", np.array([1, 16]))[1])
    >>> narrow, wide = score_schedule(s, 2, Hardware.from_target(tw.Target.native()))
    >>> bool(wide > narrow)
    True
    """
    return score_of(estimate_cycles(roofline(schedule, n, hardware), hardware.core).sum(axis=0))


def score_of(cycles: NDArray[np.float64]) -> NDArray[np.float64]:
    """The model's score of programs that take so many cycles."""
    return -np.log(np.maximum(cycles, 1))
