"""ATFormer: fine attention inside statements, coarse attention between them. Our reconstruction of it.

What is public is that it reads hierarchical features with attention on two levels and ends in a small network; sizes,
and how the levels meet, are not. Here the rows of one statement see each other, the statement gathers its loops and
buffers, and then statements, the program and, if it is there, the device see each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tilewright.cost_model.neural.modules.attention import AttentionBlock, Norm
from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor
from tilewright.cost_model.neural.modules.structure import parent_links, row_numbers


class AtformerModule(ScaledModule):
    """`parent` is the column of the statement that a row belongs to, `fine` those that tell loops and buffers."""

    def __init__(self, num_columns: int, parent: int, fine: Sequence[int], width: int, num_heads: int) -> None:
        super().__init__(num_columns)
        self.parent, self.fine = parent, tuple(fine)
        self.embedding = nn.Linear(num_columns, width)
        self.fine_block = AttentionBlock(width, num_heads)
        self.gathered = nn.Linear(width, width)
        self.coarse_block = AttentionBlock(width, num_heads)
        self.norm = Norm(width)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def set_scale(self, mean: NDArray[np.float32], deviation: NDArray[np.float32]) -> None:
        super().set_scale(mean, deviation)
        self.factor[self.parent] = 0  # the number of a row says nothing of the program

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        parents = values[:, :, self.parent]
        is_fine = sum(values[:, :, column] for column in self.fine)
        is_coarse = (1 - is_fine) * mask
        rows = self.embedding(self.scaled(values))

        # A loop or a buffer is in the group of its statement; all others are each in a group of its own.
        groups = is_fine * parents + is_coarse * row_numbers(parents)
        is_same = (groups.unsqueeze(2) == groups.unsqueeze(1)).to(values.dtype)
        rows = self.fine_block(rows, is_same * mask.unsqueeze(1))
        links = parent_links(parents, is_fine)
        counts = torch.clamp(links.sum(1), min=1).unsqueeze(2)
        rows = rows + self.gathered(torch.matmul(links.transpose(1, 2), rows) / counts)

        rows = self.coarse_block(rows, is_coarse)
        total = (self.norm(rows) * is_coarse.unsqueeze(2)).sum(1)
        return self.head(total).squeeze(1)
