"""ATFormer's two levels of attention: what sees what, and what changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tilewright.cost_model.neural.modules.atformer import AtformerModule
from tilewright.features import HIERARCHY_COLUMNS

PARENT, PROGRAM, STATEMENT, LOOP, BUFFER = range(5)  # the first columns
# Two statements, the first with two loops and a buffer, the second with a loop and a buffer.
LEVELS = [PROGRAM, STATEMENT, LOOP, LOOP, BUFFER, STATEMENT, LOOP, BUFFER]
PARENTS = [-1, 0, 1, 1, 1, 0, 5, 5]


def make() -> AtformerModule:
    torch.manual_seed(0)
    return AtformerModule(len(HIERARCHY_COLUMNS), PARENT, (LOOP, BUFFER), width=8, num_heads=2)


def values_of(levels: list[int] = LEVELS, parents: list[int] = PARENTS, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(1, len(parents), len(HIERARCHY_COLUMNS))).astype(np.float32)
    values[0, :, PARENT] = parents
    values[0, :, PROGRAM : BUFFER + 1] = np.eye(5)[levels][:, 1:]
    return torch.from_numpy(values)


def scored(module: AtformerModule, values: Any, num_padded: int = 0) -> float:
    padding = torch.zeros(1, num_padded, values.shape[2])
    mask = torch.cat([torch.ones(1, values.shape[1]), torch.zeros(1, num_padded)], 1)
    with torch.no_grad():
        return float(module(torch.cat([values, padding], 1), mask)[0])


def reordered(values: Any, order: list[int]) -> Any:
    """The rows in another order, with their parents' new numbers."""
    moved = values[:, order].clone()
    for row in range(len(order)):
        parent = int(moved[0, row, PARENT])
        moved[0, row, PARENT] = order.index(parent) if parent >= 0 else -1
    return moved


def test_rows_behind_a_program_change_nothing() -> None:
    module, values = make(), values_of()
    assert scored(module, values, num_padded=5) == pytest.approx(scored(module, values), abs=1e-5)


def test_the_order_of_statements_and_of_what_they_have_changes_nothing() -> None:
    module, values = make(), values_of()
    for order in ([0, 5, 6, 7, 1, 2, 3, 4], [0, 1, 4, 3, 2, 5, 7, 6]):
        moved = reordered(values, order)
        module.factor[PARENT] = 0
        assert scored(module, moved) == pytest.approx(scored(module, values), abs=1e-5)


def test_whose_a_loop_is_matters() -> None:
    module, values = make(), values_of()
    module.factor[PARENT] = 0
    moved = values.clone()
    moved[0, 3, PARENT] = 5
    assert abs(scored(module, moved) - scored(module, values)) > 1e-5
