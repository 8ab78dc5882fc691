"""What the analytical model gets wrong: a factor for the cycles of each statement, from attention over statements.

The analytical model adds up cycles of statements. So does this network, after it has multiplied each by exp(x), where
x depends on the statement, the other statements, the program as a whole and the device. The last layer begins with
zeros: untrained, the score is the analytical model's.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from tilewright.cost_model.neural.modules.attention import AttentionBlock, Norm
from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor


class Member(nn.Module):  # type: ignore[misc]
    """One of the networks: the logarithm of the factor of each row."""

    def __init__(self, num_columns: int, width: int, num_heads: int, num_blocks: int) -> None:
        super().__init__()
        self.embedding = nn.Linear(num_columns, width)
        self.blocks = nn.ModuleList(AttentionBlock(width, num_heads) for _ in range(num_blocks))
        self.norm = Norm(width)
        self.correction = nn.Linear(width, 1)
        nn.init.zeros_(self.correction.weight)
        nn.init.zeros_(self.correction.bias)

    def forward(self, values: Tensor, is_statement: Tensor, is_other: Tensor) -> Tensor:
        """What is said of the program and the device is added to each statement; statements see each other."""
        rows = self.embedding(values)
        rows = rows + (rows * is_other.unsqueeze(2)).sum(1, keepdim=True)
        for block in self.blocks:
            rows = block(rows, is_statement)
        return self.correction(self.norm(rows)).squeeze(2)


class HierarchicalModule(ScaledModule):
    """Several networks that learn alike from other beginnings: [B, member], each minus the log of corrected cycles.

    `estimate` is the column with log2(1 + cycles), which statements have and other rows have not.
    """

    def __init__(
        self,
        num_columns: int,
        estimate: int,
        width: int,
        num_heads: int,
        num_blocks: int,
        num_members: int,
        residual_scale: float,
    ) -> None:
        super().__init__(num_columns)
        self.estimate, self.residual_scale = estimate, residual_scale
        self.members = nn.ModuleList(Member(num_columns, width, num_heads, num_blocks) for _ in range(num_members))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        estimates = values[:, :, self.estimate]
        is_statement = (estimates > 0).to(values.dtype) * mask
        cycles = (torch.exp(estimates * math.log(2)) - 1) * is_statement
        scaled = self.scaled(values)
        return torch.stack([self._score(member, scaled, cycles, is_statement, mask) for member in self.members], 1)

    def _score(self, member: Member, scaled: Tensor, cycles: Tensor, is_statement: Tensor, mask: Tensor) -> Tensor:
        factors = torch.exp(member(scaled, is_statement, mask - is_statement) * self.residual_scale)
        return -torch.log(torch.clamp((cycles * factors).sum(1), min=1))
