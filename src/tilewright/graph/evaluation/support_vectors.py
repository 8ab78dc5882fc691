"""Support vector machines for the reference evaluator of ONNX.

Its own go through the vectors one by one, and know neither two classes with strings as labels, nor what becomes of the
scores of regressors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.graph.evaluation.scores import ML, Array, labels_of, logistic, rows_of, transformed

_LEAST_PROBABILITY = 1e-7
_MOST_ROUNDS = 100
_TOLERANCE = 0.005


@dataclass(frozen=True, slots=True)
class _Kernel:
    """How close rows are to vectors."""

    kind: str
    gamma: float = 0.0
    offset: float = 0.0
    degree: float = 0.0

    def __call__(self, x: Array, vectors: Array) -> Array:
        products = x @ vectors.T
        match self.kind:
            case "POLY":
                return (products * self.gamma + self.offset) ** self.degree
            case "SIGMOID":
                return np.tanh(products * self.gamma + self.offset)
            case "RBF":
                squares = (x * x).sum(axis=1, keepdims=True) + (vectors * vectors).sum(axis=1)
                return np.exp(-self.gamma * np.maximum(squares - 2 * products, 0))
            case _:
                return products


def _kernel(kind: str | None, parameters: Sequence[float] | None) -> _Kernel:
    return _Kernel(kind or "LINEAR", *list(parameters or ())[:3])


class SVMRegressor(OpRun):  # type: ignore[misc]
    """A weighted sum of how close a row is to the vectors; or on which side of all of them it is."""

    op_domain = ML

    def _run(
        self,
        x: Array,
        coefficients: Sequence[float] = (),
        kernel_params: Sequence[float] | None = None,
        kernel_type: str | None = None,
        n_supports: int = 0,
        one_class: int = 0,
        post_transform: str | None = None,
        rho: Sequence[float] = (0.0,),
        support_vectors: Sequence[float] | None = None,
    ) -> tuple[Array]:
        rows, weights = rows_of(x).astype(np.float64), np.array(coefficients)
        if n_supports:
            vectors = np.array(support_vectors).reshape(n_supports, -1)
            sums = _kernel(kernel_type, kernel_params)(rows, vectors) @ weights + rho[0]
        else:
            sums = rows @ weights + rho[0]
        if one_class:
            sums = np.where(sums > 0, 1, -1)
        scores = sums[:, np.newaxis].astype(np.float32)
        return (transformed(scores, post_transform if post_transform == "PROBIT" else "NONE"),)


class SVMClassifier(OpRun):  # type: ignore[misc]
    """The class that wins against most others, and the scores of all pairs, or what is likely of each class."""

    op_domain = ML

    def _run(self, x: Array, **attributes: Any) -> tuple[np.ndarray, Array]:
        labels = labels_of(attributes.get("classlabels_strings"), attributes.get("classlabels_ints"))
        rows, kind = rows_of(x).astype(np.float64), attributes.get("post_transform")
        counts = attributes.get("vectors_per_class") or []
        if not sum(counts):
            return self._linear(rows, labels, attributes)
        scores = _scores_of_pairs(rows, counts, attributes)
        pairs = list(combinations(range(len(labels)), 2))
        votes = np.zeros((len(rows), len(labels)), np.int64)
        for (first, second), score in zip(pairs, scores.T, strict=True):
            votes[:, first] += score > 0
            votes[:, second] += score <= 0
        chosen = labels[votes.argmax(axis=1)]
        if attributes.get("prob_a"):
            return chosen, transformed(_probabilities(scores, pairs, attributes), kind)
        return chosen, _two_columns(scores, kind) if len(pairs) == 1 else transformed(scores, kind)

    def _linear(self, rows: Array, labels: np.ndarray, attributes: dict[str, Any]) -> tuple[np.ndarray, Array]:
        """One vector for each class, as liblinear has them."""
        weights = np.array(attributes["coefficients"]).reshape(len(labels), -1)
        scores = (rows @ weights.T + attributes["rho"][0]).astype(np.float32)
        places = scores.argmax(axis=1)
        if len(labels) == 2:
            is_second = scores.max(axis=1) >= 0.5 if (weights >= 0).all() else scores.max(axis=1) > 0
            places = np.where(is_second, 1, places)
        return labels[places], transformed(scores, attributes.get("post_transform"))


def _two_columns(score: Array, kind: str | None) -> Array:
    """The scores of two classes of which there is one."""
    if kind in (None, "NONE"):
        return np.concatenate([-score, score], axis=1)
    second = logistic(score) if kind == "LOGISTIC" else score
    return np.concatenate([1 - second, second], axis=1)


def _scores_of_pairs(rows: Array, counts: Sequence[int], attributes: dict[str, Any]) -> Array:
    """On which side of the border between each two classes the rows are: [rows, pairs]."""
    vectors = np.array(attributes["support_vectors"]).reshape(sum(counts), -1)
    close = _kernel(attributes.get("kernel_type"), attributes.get("kernel_params"))(rows, vectors)
    weights = np.array(attributes["coefficients"]).reshape(-1, sum(counts))
    ends = np.cumsum(counts)
    parts = [slice(end - count, end) for count, end in zip(counts, ends, strict=True)]
    found = [
        close[:, parts[i]] @ weights[j - 1, parts[i]] + close[:, parts[j]] @ weights[i, parts[j]] + rho
        for (i, j), rho in zip(combinations(range(len(counts)), 2), attributes["rho"], strict=False)
    ]
    return np.stack(found, axis=1).astype(np.float32)


def _probabilities(scores: Array, pairs: Sequence[tuple[int, int]], attributes: dict[str, Any]) -> Array:
    """What is likely of each class, from what is of each two: [rows, classes]."""
    num_classes = pairs[-1][1] + 1
    likely = np.zeros((len(scores), num_classes, num_classes), np.float32)
    for number, (i, j) in enumerate(pairs):
        value = 1 - logistic(scores[:, number] * attributes["prob_a"][number] + attributes["prob_b"][number])
        likely[:, i, j] = np.clip(value, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        likely[:, j, i] = 1 - likely[:, i, j]
    return _coupled(likely)


def _coupled(likely: Array) -> Array:
    """The probabilities that agree best with those of pairs, by the iteration of Wu, Lin and Weng."""
    num_classes = likely.shape[1]
    q = -likely * likely.transpose(0, 2, 1)
    diagonal = (likely**2).sum(axis=1)
    q[:, range(num_classes), range(num_classes)] = diagonal
    p = np.full(likely.shape[:2], 1 / num_classes, likely.dtype)
    for _ in range(_MOST_ROUNDS):
        qp = np.einsum("nij,nj->ni", q, p)
        pqp = (p * qp).sum(axis=1)
        is_off = np.abs(qp - pqp[:, np.newaxis]).max(axis=1) >= _TOLERANCE / num_classes
        if not is_off.any():
            break
        for t in range(num_classes):
            step = np.where(is_off, (pqp - qp[:, t]) / diagonal[:, t], 0).astype(likely.dtype)
            p[:, t] += step
            pqp = (pqp + step * (step * diagonal[:, t] + 2 * qp[:, t])) / (1 + step) ** 2
            qp = (qp + step[:, np.newaxis] * q[:, t]) / (1 + step)[:, np.newaxis]
            p = p / (1 + step)[:, np.newaxis]
    return p
