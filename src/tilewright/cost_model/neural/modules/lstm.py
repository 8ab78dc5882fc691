"""An LSTM over primitives, as a plain loop over rows."""

from __future__ import annotations

import math

import torch
from torch import nn

from tilewright.cost_model.neural.modules.layers import stack
from tilewright.cost_model.neural.modules.primitive_rows import PrimitiveModule
from tilewright.cost_model.neural.modules.program_module import Tensor
from tilewright.features import PrimitiveEncoder


class LstmModule(PrimitiveModule):
    """Rows to width, an LSTM of that width from the first to the last, and a small stack on what it ends with.

    A row whose mask is 0 leaves the state as it is.
    """

    def __init__(self, encoder: PrimitiveEncoder, token_width: int, width: int) -> None:
        super().__init__(encoder, token_width)
        self.width = width
        self.rows = stack(self.num_inputs, width)
        self.from_row = nn.Linear(width, 4 * width)
        self.from_state = nn.Linear(width, 4 * width, bias=False)
        self.head = stack(width, width, max(width // 2, 1), 1, ends_linear=True)
        for weight in (*self.from_row.parameters(), *self.from_state.parameters()):
            nn.init.uniform_(weight, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        rows, present = self.inputs(values, mask)
        gates = self.from_row(self.rows(rows))
        hidden = cell = gates[:, 0, : self.width] * 0
        for row in range(values.shape[1]):
            is_there = present[:, row : row + 1]
            enter, keep, give, new = (gates[:, row] + self.from_state(hidden)).split(self.width, 1)
            after = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
            cell = cell + is_there * (after - cell)
            hidden = hidden + is_there * (torch.sigmoid(give) * torch.tanh(after) - hidden)
        return self.head(hidden).squeeze(1)
