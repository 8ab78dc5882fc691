"""What the analytical model gets wrong: a factor for the cycles of each statement, from attention over statements.

The analytical model adds up cycles of statements. So does this network, after it has multiplied each by exp(x), where
x depends on the statement, the other statements and the device. The last layer begins with zeros: untrained, the score
is the analytical model's.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from tilewright.cost_model.neural.modules.attention import AttentionBlock, Norm
from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor


class HierarchicalModule(ScaledModule):
    """`estimate` is the column with log2(1 + cycles) of a statement, which other rows do not have."""

    def __init__(
        self, num_columns: int, estimate: int, width: int, num_heads: int, num_blocks: int, residual_scale: float
    ) -> None:
        super().__init__(num_columns)
        self.estimate, self.residual_scale = estimate, residual_scale
        self.embedding = nn.Linear(num_columns, width)
        self.blocks = nn.ModuleList(AttentionBlock(width, num_heads) for _ in range(num_blocks))
        self.norm = Norm(width)
        self.correction = nn.Linear(width, 1)
        nn.init.zeros_(self.correction.weight)
        nn.init.zeros_(self.correction.bias)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Minus the logarithm of the corrected cycles."""
        rows = self.embedding(self.scaled(values))
        for block in self.blocks:
            rows = block(rows, mask)
        correction = self.correction(self.norm(rows)).squeeze(2) * self.residual_scale
        cycles = torch.exp(values[:, :, self.estimate] * math.log(2)) - 1
        return -torch.log(torch.clamp((cycles * torch.exp(correction) * mask).sum(1), min=1))
