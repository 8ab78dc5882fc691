"""TreeGRU computes, row by row for all programs at once, what a recursion over one tree does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tilewright.cost_model.neural.modules.tree_gru import TreeGruModule
from tilewright.features import TREE_COLUMNS

# The parents of rows. All have a root first, and parents before children.
TREES = {
    "root": [-1],
    "chain": [-1, 0, 1, 2, 3, 4],
    "wide": [-1, 0, 0, 0, 0],
    "nest": [-1, 0, 1, 2, 1, 4, 0, 6],
    "late siblings": [-1, 0, 1, 0, 3, 1, 5],
}
PARENT = TREE_COLUMNS.index("parent")


def make() -> TreeGruModule:
    torch.manual_seed(0)
    module = TreeGruModule(len(TREE_COLUMNS), PARENT, width=8, num_slots=3)
    rng = np.random.default_rng(0)
    module.set_scale(*(rng.uniform(0.5, 1.5, len(TREE_COLUMNS)).astype(np.float32) for _ in range(2)))
    return module


def values_of(parents: list[int], seed: int = 0) -> Any:
    values = np.random.default_rng(seed).normal(size=(1, len(parents), len(TREE_COLUMNS))).astype(np.float32)
    values[0, :, PARENT] = parents
    return torch.from_numpy(values)


def scored(module: TreeGruModule, values: Any, num_padded: int = 0) -> float:
    padding = torch.zeros(1, num_padded, values.shape[2])
    mask = torch.cat([torch.ones(1, values.shape[1]), torch.zeros(1, num_padded)], 1)
    with torch.no_grad():
        return float(module(torch.cat([values, padding], 1), mask)[0])


def by_recursion(module: TreeGruModule, values: Any) -> float:
    rows = module.scaled(values[0])
    parents = values[0, :, PARENT].tolist()
    children = {row: [n for n, parent in enumerate(parents) if parent == row] for row in range(len(parents))}
    context = torch.zeros(module.slot_scores.out_features, module.width)

    def state_of(row: int) -> Any:
        total = torch.zeros(module.width)
        for child in children[row]:
            total = total + state_of(child)
        gates = module.gates(torch.relu(module.embedding(rows[row])))
        reset, keep, new = gates.split(module.width)
        of_reset, of_keep, of_new = module.child_gates(total).split(module.width)
        candidate = torch.tanh(new + torch.sigmoid(reset + of_reset) * of_new)
        share = torch.sigmoid(keep + of_keep)
        state = (1 - share) * candidate + share * total
        if children[row]:
            context.add_(torch.outer(torch.softmax(module.slot_scores(state), 0), state))
        return state

    with torch.no_grad():
        state_of(0)
        return float(module.score(torch.sigmoid(module.decoder(context.flatten()))))


@pytest.mark.parametrize("tree", TREES)
def test_a_tree_has_the_score_of_a_recursion_over_it(tree: str) -> None:
    module, values = make(), values_of(TREES[tree])
    assert scored(module, values) == pytest.approx(by_recursion(module, values), abs=1e-5)


def test_trees_of_a_batch_have_the_scores_that_they_have_alone() -> None:
    module = make()
    trees = [values_of(parents, seed) for seed, parents in enumerate(TREES.values())]
    longest = max(len(parents) for parents in TREES.values())
    values, mask = torch.zeros(len(trees), longest, len(TREE_COLUMNS)), torch.zeros(len(trees), longest)
    for number, tree in enumerate(trees):
        values[number, : tree.shape[1]] = tree[0]
        mask[number, : tree.shape[1]] = 1
    with torch.no_grad():
        scores = module(values, mask).tolist()
    assert scores == pytest.approx([scored(module, tree) for tree in trees], abs=1e-5)


def test_rows_behind_a_tree_change_nothing() -> None:
    module, values = make(), values_of(TREES["nest"])
    assert scored(module, values, num_padded=3) == pytest.approx(scored(module, values), abs=1e-6)


def test_the_order_of_siblings_changes_nothing_and_what_is_inside_of_what_does() -> None:
    module, values = make(), values_of([-1, 0, 0, 1, 2])
    exchanged = values[:, [0, 2, 1, 4, 3]]
    exchanged[0, :, PARENT] = torch.tensor([-1.0, 0, 0, 1, 2])
    assert scored(module, exchanged) == pytest.approx(scored(module, values), abs=1e-6)
    moved = values.clone()
    moved[0, 4, PARENT] = 1
    assert abs(scored(module, moved) - scored(module, values)) > 1e-4
