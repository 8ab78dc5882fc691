"""Ensembles of trees for the reference evaluator of ONNX, whose own go through them node by node in Python.

Here all rows and trees take a step at once. Its own also know no `post_transform` of regressors, and take a classifier
of two classes with one score each for one that has only probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.graph.evaluation.scores import ML, Array, labels_of, logistic, rows_of, transformed

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF")
_LEQ, _LT, _GTE, _GT, _EQ, _NEQ, _MEMBER, _LEAF = range(len(_MODES))
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True, slots=True)
class Forest:
    """The nodes of all trees by their numbers; what they give is known of those that are leaves."""

    roots: np.ndarray
    modes: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    true: np.ndarray
    false: np.ndarray
    takes_missing: np.ndarray
    """Whether a NaN goes where what the node asks for is true."""
    weights: np.ndarray
    """[nodes, targets]"""
    is_given: np.ndarray
    """Whether a node says anything of a target."""
    members: Mapping[int, np.ndarray]
    """What a node of the mode MEMBER asks for."""

    def leaves(self, x: Array) -> np.ndarray:
        """The leaf of each row in each tree: [rows, trees]."""
        places = np.repeat(self.roots[np.newaxis], len(x), axis=0)
        for _ in range(len(self.modes) + 1):
            is_branch = self.modes[places] != _LEAF
            if not is_branch.any():
                return places
            features = np.where(is_branch, self.features[places], 0)
            goes = self._is_true(np.take_along_axis(x, features, axis=1), places)
            places = np.where(is_branch, np.where(goes, self.true[places], self.false[places]), places)
        raise ValueError("a tree goes in a circle")

    def _is_true(self, values: Array, places: np.ndarray) -> np.ndarray:
        modes, limits = self.modes[places], self.thresholds[places]
        found: np.ndarray = np.select(
            [modes == _LEQ, modes == _LT, modes == _GTE, modes == _GT, modes == _EQ, modes == _NEQ],
            [values <= limits, values < limits, values >= limits, values > limits, values == limits, values != limits],
        ).astype(bool)
        for node, members in self.members.items():
            found = np.where(places == node, np.isin(values, members), found)
        found |= np.isnan(values) & self.takes_missing[places]
        return found

    def aggregated(self, x: Array, how: str) -> tuple[Array, np.ndarray]:
        """What the trees say of each target, together, and whether they say anything of it."""
        leaves = self.leaves(x)
        total = np.zeros((len(x), self.weights.shape[1]), self.weights.dtype)
        is_given = np.zeros(total.shape, bool)
        for nodes in leaves.T:
            weights, given = self.weights[nodes], self.is_given[nodes]
            if how in ("MIN", "MAX"):
                better = np.minimum(total, weights) if how == "MIN" else np.maximum(total, weights)
                weights = np.where(is_given, better, weights)
                total = np.where(given, weights, total)
            else:
                total = total + np.where(given, weights, 0)
            is_given |= given
        return (total / len(self.roots) if how == "AVERAGE" else total), is_given


def _forest(attributes: Mapping[str, Any], kind: str, num_targets: int, dtype: Any) -> Forest:
    """The trees of a classifier or a regressor of before version 5."""
    ids = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    numbers = {node: number for number, node in enumerate(ids)}
    modes = np.array([_MODES.index(mode) for mode in attributes["nodes_modes"]])

    def followers(name: str) -> np.ndarray:
        pairs = zip(ids, attributes[name], modes, strict=True)
        return np.array([0 if mode == _LEAF else numbers[tree, after] for (tree, _), after, mode in pairs])

    weights, is_given = np.zeros((len(ids), num_targets), dtype), np.zeros((len(ids), num_targets), bool)
    given = [attributes[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")]
    for tree, node, target, weight in zip(*given, _floats(attributes, f"{kind}_weights"), strict=True):
        place = numbers[tree, node], target
        # As onnxruntime has it, which scikit-learn's exporter counts on: it writes a leaf's number once for each class.
        if num_targets > 1 or not is_given[place]:
            weights[place] += weight
        is_given[place] = True
    missing = attributes.get("nodes_missing_value_tracks_true")
    return Forest(
        roots=np.array(list({tree: number for number, (tree, _) in reversed(list(enumerate(ids)))}.values()))[::-1],
        modes=modes,
        features=np.array(attributes["nodes_featureids"]),
        thresholds=np.asarray(_floats(attributes, "nodes_values"), dtype),
        true=followers("nodes_truenodeids"),
        false=followers("nodes_falsenodeids"),
        takes_missing=np.array(missing or [0] * len(ids), bool),
        weights=weights,
        is_given=is_given,
        members={},
    )


def _floats(attributes: Mapping[str, Any], name: str) -> Array:
    """Numbers that are there as a list of float32, or as a tensor."""
    tensor = attributes.get(f"{name}_as_tensor")
    return np.asarray(tensor if tensor is not None else attributes.get(name) or [])


class TreeEnsembleRegressor(OpRun):  # type: ignore[misc]
    """For each target the sum, mean, least or largest of what the trees say, and a number."""

    op_domain = ML

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        rows = rows_of(x)
        forest = _forest(attributes, "target", attributes["n_targets"], rows.dtype)
        total, _ = forest.aggregated(rows, attributes.get("aggregate_function") or "SUM")
        base = _floats(attributes, "base_values")
        return (_finished(total + base if base.size else total, attributes.get("post_transform")),)


def _finished(scores: Array, kind: str | None) -> Array:
    """One score alone is left as it is, but by PROBIT."""
    return transformed(scores, kind if scores.shape[1] > 1 or kind == "PROBIT" else "NONE")


class TreeEnsembleClassifier(OpRun):  # type: ignore[misc]
    """The class with the largest sum of what the trees say, and all of these sums.

    Trees of two classes may say one number alone: a probability where none is negative, or else how far it is off even.
    """

    op_domain = ML

    def _run(self, x: Array, **attributes: Any) -> tuple[np.ndarray, Array]:
        rows, kind = rows_of(x), attributes.get("post_transform")
        labels = labels_of(attributes.get("classlabels_strings"), attributes.get("classlabels_int64s"))
        forest = _forest(attributes, "class", len(labels), rows.dtype)
        total, is_given = forest.aggregated(rows, "SUM")
        base = _floats(attributes, "base_values")
        known = np.flatnonzero(forest.is_given.any(axis=0))
        if len(labels) == 2 and len(known) == 1 and base.size < 2:
            number = total[:, known[0]] + (base[0] if base.size and known[0] == 0 else 0)
            is_probability = bool((forest.weights >= 0).all())
            is_second = number > (0.5 if is_probability else 0)
            return labels[is_second.astype(np.int64)], _two_columns(number, int(known[0]), kind, is_probability)
        scores = total + base if base.size else total
        chosen = scores if base.size else np.where(is_given, scores, -np.inf)
        return labels[chosen.argmax(axis=1)], transformed(scores, kind)


def _two_columns(number: Array, place: int, kind: str | None, is_probability: bool) -> Array:
    """The scores of two classes of which trees give one number."""
    if place == 1:
        return transformed(np.stack([np.zeros_like(number), number], axis=1), kind)
    if kind == "LOGISTIC":
        return np.stack([logistic(-number), logistic(number)], axis=1).astype(np.float32)
    return np.stack([1 - number if is_probability else -number, number], axis=1).astype(np.float32)


class TreeEnsemble(OpRun):  # type: ignore[misc]
    """The same since version 5: leaves are apart from nodes, and give one target each."""

    op_domain = ML

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        forest = _forest_of_leaves(attributes, x.dtype)
        total, _ = forest.aggregated(x, _AGGREGATES[attributes.get("aggregate_function", 1)])
        return (_finished(total, _TRANSFORMS[attributes.get("post_transform", 0)]).astype(x.dtype),)


def _forest_of_leaves(attributes: Mapping[str, Any], dtype: Any) -> Forest:
    modes = np.asarray(attributes["nodes_modes"]).astype(np.int64)
    targets, values = np.array(attributes["leaf_targetids"]), np.asarray(attributes["leaf_weights"])
    num_nodes, num_leaves = len(modes), len(targets)

    def followers(ids: str, are_leaves: str) -> np.ndarray:
        after = np.array(attributes[ids]) + num_nodes * np.array(attributes[are_leaves])
        return np.concatenate([after, np.zeros(num_leaves, np.int64)])

    def of_nodes(numbers: Any) -> np.ndarray:
        return np.concatenate([numbers, np.zeros(num_leaves, np.asarray(numbers).dtype)])

    weights = np.zeros((num_nodes + num_leaves, attributes["n_targets"]), dtype)
    weights[num_nodes + np.arange(num_leaves), targets] = values
    is_given = np.zeros(weights.shape, bool)
    is_given[num_nodes + np.arange(num_leaves), targets] = True
    missing = attributes.get("nodes_missing_value_tracks_true")
    return Forest(
        roots=np.array(attributes["tree_roots"]),
        modes=np.concatenate([modes, np.full(num_leaves, _LEAF)]),
        features=of_nodes(attributes["nodes_featureids"]),
        thresholds=of_nodes(np.asarray(attributes["nodes_splits"], dtype)),
        true=followers("nodes_truenodeids", "nodes_trueleafs"),
        false=followers("nodes_falsenodeids", "nodes_falseleafs"),
        takes_missing=of_nodes(np.array(missing or [0] * num_nodes, bool)),
        weights=weights,
        is_given=is_given,
        members=_members(modes, attributes.get("membership_values")),
    )


def _members(modes: np.ndarray, values: np.ndarray | None) -> dict[int, np.ndarray]:
    """What each node of the mode MEMBER asks for: the values up to the next NaN, in the order of the nodes."""
    nodes = np.flatnonzero(modes == _MEMBER)
    if not len(nodes):
        return {}
    if values is None:
        raise ValueError("membership_values are missing")
    ends = np.flatnonzero(np.isnan(values))
    sets: Sequence[np.ndarray] = np.split(values, ends)
    return {int(node): members[~np.isnan(members)] for node, members in zip(nodes, sets[: len(ends)], strict=True)}
