"""TenSet's MLP: each statement through two layers, their sum through residual ones."""

from __future__ import annotations

from torch import nn

from tilewright.cost_model.neural.modules.layers import Residual, stack
from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor


class MlpModule(ScaledModule):
    """C -> width -> width for each row, summed over rows; then `num_blocks` of x + relu(linear), and one number."""

    def __init__(self, num_columns: int, width: int, num_blocks: int) -> None:
        super().__init__(num_columns)
        self.rows = stack(num_columns, width, width)
        self.residual = Residual(width, num_blocks)
        self.score = nn.Linear(width, 1)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        program = (self.rows(self.scaled(values)) * mask.unsqueeze(2)).sum(1)
        return self.score(self.residual(program)).squeeze(1)
