"""What a network of a cost model is to torch: values and a mask in, a score of each program out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

MIN_DEVIATION = 0.05
"""Columns that hardly vary where a model learns are not blown up: elsewhere they may vary more."""

# torch has no types here.
Tensor = Any


class ProgramModule(nn.Module):  # type: ignore[misc]
    """`forward(values[B, R, C], mask[B, R])` gives float32[B], or [B, heads]. Rows with mask 0 change nothing.

    It is exported to ONNX with open B and R: attention is written by hand, and a recurrence is a loop over rows.
    """

    def set_scale(self, mean: NDArray[np.float32], deviation: NDArray[np.float32]) -> None:
        """Take what the columns are in the data, before training. A network that reads numbers as they are does not."""


class ScaledModule(ProgramModule):
    """A network whose columns are scaled to mean 0 and deviation 1; one that never varied counts for nothing."""

    def __init__(self, num_columns: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_columns))
        self.register_buffer("factor", torch.ones(num_columns))

    def set_scale(self, mean: NDArray[np.float32], deviation: NDArray[np.float32]) -> None:
        factor = np.where(deviation > 0, 1 / np.maximum(deviation, MIN_DEVIATION), 0).astype(np.float32)
        self.mean.copy_(torch.from_numpy(mean))
        self.factor.copy_(torch.from_numpy(factor))

    def scaled(self, values: Tensor) -> Tensor:
        return (values - self.mean) * self.factor
