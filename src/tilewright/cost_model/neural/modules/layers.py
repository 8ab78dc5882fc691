"""Layers that several networks have: rows through a stack of linear layers, and residual ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from tilewright.cost_model.neural.modules.program_module import Tensor


def stack(*widths: int, ends_linear: bool = False) -> nn.Sequential:
    """Linear layers from each width to the next, with a ReLU after each, or after all but the last."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*(layers[:-1] if ends_linear else layers))


class Residual(nn.Module):  # type: ignore[misc]
    """x + relu(linear(x)), several times."""

    def __init__(self, width: int, num_blocks: int) -> None:
        super().__init__()
        self.blocks: Sequence[nn.Module] = nn.ModuleList(nn.Linear(width, width) for _ in range(num_blocks))

    def forward(self, rows: Tensor) -> Tensor:
        for block in self.blocks:
            rows = rows + torch.relu(block(rows))
        return rows
