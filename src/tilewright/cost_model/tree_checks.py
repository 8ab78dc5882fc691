"""Trees of a file, before xgboost reads them: it believes what they say, and looks wherever they point to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from reprlib import repr as shown
from typing import Any

_NO_CHILD = -1
_NO_PARENT = 2**31 - 1
_ARRAYS = (
    "left_children", "right_children", "parents", "split_indices", "split_conditions", "split_type", "default_left",
)  # fmt: skip
_CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
_MOST = 1e30
"""The largest number of a tree: what is larger, or none, makes scores that are none."""


def check_trees(content: bytes, num_columns: int) -> None:
    """ValueError, KeyError or TypeError where the JSON is no model of plain trees over so many columns."""
    learner = json.loads(content)["learner"]
    booster = learner["gradient_booster"]
    parameters, trees = learner["learner_model_param"], booster["model"]["trees"]
    if booster["name"] != "gbtree" or int(parameters.get("num_class", 0)) or int(parameters["num_target"]) != 1:
        raise ValueError("the trees give more than one number for a statement")
    if int(parameters["num_feature"]) != num_columns:
        raise ValueError(f"the trees are of {parameters['num_feature']} features, and {num_columns} are named")
    if int(booster["model"]["gbtree_model_param"]["num_trees"]) != len(trees):
        raise ValueError(f"there are {len(trees)} trees, and more or fewer are said to be there")
    if booster["model"]["tree_info"] != [0] * len(trees):
        raise ValueError(f"trees belong to the outcome 0, got {shown(booster['model']['tree_info'])}")
    rounds = booster["model"].get("iteration_indptr", [0, len(trees)])  # the first tree of each; not in earlier files
    are_first = all(type(first) is int and 0 <= first <= len(trees) for first in rounds)
    if not are_first or rounds != sorted({0, *rounds, len(trees)}):
        raise ValueError(f"rounds are of trees from 0 to {len(trees)}, one after the other, got {shown(rounds)}")
    if [tree["id"] for tree in trees] != list(range(len(trees))):  # xgboost has none where no tree says it is
        raise ValueError(f"trees are numbered from 0, got {shown([tree['id'] for tree in trees])}")
    for tree in trees:
        _check_tree(tree, num_columns)


def _check_tree(tree: dict[str, Any], num_columns: int) -> None:
    num_nodes = int(tree["tree_param"]["num_nodes"])
    for name in _ARRAYS:
        if not isinstance(tree[name], list) or len(tree[name]) != num_nodes or num_nodes < 1:
            raise ValueError(f"a tree of {num_nodes} nodes has as many {name}, got {shown(tree[name])}")
    has_categories = any(tree["split_type"]) or any(tree[name] for name in _CATEGORIES)
    if int(tree["tree_param"]["size_leaf_vector"]) not in (0, 1) or has_categories:
        raise ValueError("trees compare numbers and give one, and these do something else")
    if not all(type(number) in (int, float) and -_MOST <= number <= _MOST for number in tree["split_conditions"]):
        raise ValueError(f"trees compare with numbers and give them, got {shown(tree['split_conditions'])}")
    if not all(type(column) is int and 0 <= column < num_columns for column in tree["split_indices"]):
        raise ValueError(f"trees ask for one of {num_columns} columns, got {shown(tree['split_indices'])}")
    if not all(type(node) is int and (0 <= node < num_nodes or node == _NO_PARENT) for node in tree["parents"]):
        raise ValueError(f"a node has one of {num_nodes} as its parent, or none, got {shown(tree['parents'])}")
    _check_children(tree["left_children"], tree["right_children"])


def _check_children(left: Sequence[object], right: Sequence[object]) -> None:
    """From the root on, each node is come by once."""
    seen = {0}
    open_nodes = [0]
    while open_nodes:
        node = open_nodes.pop()
        children = [left[node], right[node]]
        if children == [_NO_CHILD, _NO_CHILD]:
            continue
        for child in children:
            if type(child) is not int or not 0 < child < len(left) or child in seen:
                raise ValueError(f"a node has two children of its own, or none, got {shown(children)}")
            seen.add(child)
            open_nodes.append(child)
