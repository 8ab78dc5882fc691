"""Attention between rows, written out, so that it becomes plain products and a softmax in ONNX."""

from __future__ import annotations

import math

import torch
from torch import nn

from tilewright.cost_model.neural.modules.layers import stack
from tilewright.cost_model.neural.modules.program_module import Tensor

FAR_BELOW = -1e9
"""What is added to the weight of a row that is not there, before the softmax."""


class Attention(nn.Module):  # type: ignore[misc]
    """Each row [B, R, width] takes up what it attends to in the others. Weights begin as torch's own attention's do."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        # Sizes that are known are plain numbers: what is asked of a tensor would be computed in the exported network.
        self.num_heads, self.head_width = num_heads, width // num_heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        for layer in (self.query, self.key, self.value):
            # As of one layer of three times the width.
            nn.init.uniform_(layer.weight, -math.sqrt(1.5 / width), math.sqrt(1.5 / width))
        for layer in (self.query, self.key, self.value, self.output):
            nn.init.zeros_(layer.bias)

    def forward(self, rows: Tensor, mask: Tensor | None = None) -> Tensor:
        """With a mask [B, R], rows whose mask is 0 are not attended to; with one [B, R, R], each row has its own."""
        query, key, value = (self._heads(layer(rows)) for layer in (self.query, self.key, self.value))
        weights = query @ key.transpose(2, 3) * (1 / math.sqrt(self.head_width))
        if mask is not None:
            mask = mask.unsqueeze(1) if mask.dim() == 2 else mask
            weights = weights + ((1 - mask) * FAR_BELOW).unsqueeze(1)
        taken = torch.softmax(weights, 3) @ value
        return self.output(taken.transpose(1, 2).flatten(2))

    def _heads(self, rows: Tensor) -> Tensor:
        """As [B, head, R, width of a head]."""
        return rows.reshape(rows.shape[0], -1, self.num_heads, self.head_width).transpose(1, 2)


class Norm(nn.Module):  # type: ignore[misc]
    """Layer normalisation over the last axis, in operations that fuse with their neighbours."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, rows: Tensor) -> Tensor:
        centred = rows - rows.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + 1e-5) * self.weight + self.bias


class AttentionBlock(nn.Module):  # type: ignore[misc]
    """Attention, then two layers for each row alone, each on normalised rows and added to what came in."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.attention_norm, self.layers_norm = Norm(width), Norm(width)
        self.attention = Attention(width, num_heads)
        self.layers = stack(width, 2 * width, width, ends_linear=True)

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        """The mask is as of `Attention`."""
        rows = rows + self.attention(self.attention_norm(rows), mask)
        return rows + self.layers(self.layers_norm(rows))
