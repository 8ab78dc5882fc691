"""TenSet's MLP: each statement through two layers, their sum through two residual ones (FACTS of TenSet's code)."""

from __future__ import annotations

import torch
from torch import nn

from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor


class MlpModule(ScaledModule):
    """C -> width -> width for each row, summed over rows; then `num_blocks` of x + relu(linear), and one number."""

    def __init__(self, num_columns: int, width: int, num_blocks: int) -> None:
        super().__init__(num_columns)
        self.first = nn.Linear(num_columns, width)
        self.second = nn.Linear(width, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(num_blocks))
        self.score = nn.Linear(width, 1)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        rows = torch.relu(self.second(torch.relu(self.first(self.scaled(values)))))
        hidden = (rows * mask.unsqueeze(2)).sum(1)
        for block in self.blocks:
            hidden = hidden + torch.relu(block(hidden))
        return self.score(hidden).squeeze(1)
