"""A model that knows nothing, to compare with: a candidate's score is a number drawn for its choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import Range
from tilewright.cost_model.base import CostModel
from tilewright.cost_model.dataset import Dataset
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.option_ranges import SEEDS
from tilewright.features import ChoicesEncoder, Encoder


@dataclass(kw_only=True, eq=False)
class RandomModel(CostModel):
    """Scores in [0, 1) that depend on the seed and on the choices of the candidate, and on nothing else.

    So the same candidate always has the same score, as with every other model.
    """

    name: ClassVar[str] = "random"
    encoder: ClassVar[Encoder] = ChoicesEncoder()
    ranges: ClassVar[Mapping[str, Range]] = {"seed": SEEDS}

    seed: int = 0

    @property
    def is_fitted(self) -> bool:
        return True

    def fit(self, dataset: Dataset) -> None:
        """There is nothing to learn; the choices of sketches with other knobs would not be one table either."""

    def update(self, dataset: Dataset) -> None:
        """There is nothing to learn."""

    def fit_examples(self, examples: Examples) -> None:
        """There is nothing to learn."""

    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        self._check_ranges()
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(len(values), -1)
        rng = np.random.default_rng(self.seed)
        factors = rng.integers(1, 2**63, bits.shape[1], np.uint64) | np.uint64(1)
        mixed = bits.astype(np.uint64) @ factors
        # The sum keeps its randomness in the high bits: a float32 often ends in zeros.
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _state(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        pass
