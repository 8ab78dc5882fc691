"""The structure of a program inside a network: which row belongs to which, and rows taken out into slots.

A row's parent is a number in one of its columns, so that a network needs nothing but the values. What follows from it
is matrices of zeros and ones, by comparing numbers, and products with them: operations that every backend has.
"""

from __future__ import annotations

from typing import Any

import torch

# torch has no types here.
Tensor = Any


def row_numbers(rows: Tensor) -> Tensor:
    """0, 1, 2, ... as many as there are rows in [B, R]; a sum, since its size then follows from that of the rows."""
    return torch.cumsum(torch.ones_like(rows[0]), 0) - 1


def parent_links(parents: Tensor, mask: Tensor) -> Tensor:
    """[B, row, parent row] from the parents of rows, [B, R]: 1 where the second row is the parent of the first.

    >>> parent_links(torch.tensor([[-1.0, 0.0, 0.0]]), torch.tensor([[1.0, 1.0, 0.0]])).tolist()
    [[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]
    """
    return (parents.unsqueeze(2) == row_numbers(parents)).to(parents.dtype) * mask.unsqueeze(2)


def slots(is_chosen: Tensor, num_slots: int) -> Tensor:
    """[B, slot, row] of the chosen rows, [B, R]: 1 where the row is the first, second, ... that is chosen.

    Its product with rows puts them into slots, as many as there are; that of its transpose puts them back.

    >>> slots(torch.tensor([[1.0, 0.0, 1.0]]), 3).tolist()
    [[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]]
    """
    numbers = row_numbers(is_chosen)
    is_before = (numbers.unsqueeze(1) < numbers).to(is_chosen.dtype)
    place = torch.matmul(is_chosen, is_before).unsqueeze(1)
    wanted = torch.arange(num_slots, dtype=is_chosen.dtype).unsqueeze(1)
    return (place == wanted).to(is_chosen.dtype) * is_chosen.unsqueeze(1)
