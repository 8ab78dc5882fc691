"""Parts that networks with attention are made of, written as plain products, sums and a softmax."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

# torch has no types here.
Tensor = Any

FORBIDDEN = -1e9
"""What is added to the logits of pairs that must not see each other; finite, for rows that see nobody."""


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


class Attention(nn.Module):  # type: ignore[misc]
    """Each row [B, R, width] as a mixture of those that it may see, by several heads."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.factor = 1 / math.sqrt(width // num_heads)
        self.queries, self.keys, self.values, self.mixed = (nn.Linear(width, width) for _ in range(4))

    def forward(self, rows: Tensor, forbidden: Tensor) -> Tensor:
        """`forbidden` is added to the logits, [B, row, seen row] or [B, 1, seen row]."""
        queries, keys, values = (self._heads(layer(rows)) for layer in (self.queries, self.keys, self.values))
        logits = torch.matmul(queries, keys.transpose(2, 3)) * self.factor + forbidden.unsqueeze(1)
        seen = torch.matmul(torch.softmax(logits, 3), values)
        return self.mixed(seen.transpose(1, 2).flatten(2))

    def _heads(self, rows: Tensor) -> Tensor:
        """[B, head, R, width / heads]"""
        return rows.unflatten(2, (self.num_heads, -1)).transpose(1, 2)


class AttentionBlock(nn.Module):  # type: ignore[misc]
    """Attention, then two layers for each row alone, each on normalised rows and added to what came in."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.attention_norm, self.layers_norm = Norm(width), Norm(width)
        self.attention = Attention(width, num_heads)
        self.layers = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, rows: Tensor, forbidden: Tensor) -> Tensor:
        rows = rows + self.attention(self.attention_norm(rows), forbidden)
        return rows + self.layers(self.layers_norm(rows))


def forbidden(is_seen: Tensor) -> Tensor:
    """What to add to the logits so that only pairs with 1 see each other."""
    return (1 - is_seen) * FORBIDDEN
