"""Linear models for the reference evaluator of ONNX, whose own need intercepts, and floats as operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.graph.evaluation.scores import ML, Array, labels_of, logistic, rows_of, transformed


def _scores(x: Array, coefficients: Sequence[float], intercepts: Sequence[float] | None, num_rows: int) -> Array:
    rows = rows_of(x)
    weights = np.array(coefficients, rows.dtype).reshape(num_rows, -1)
    found = rows @ weights.T
    return found + np.array(intercepts, rows.dtype) if intercepts else found


class LinearRegressor(OpRun):  # type: ignore[misc]
    """A weighted sum for each target."""

    op_domain = ML

    def _run(
        self,
        x: Array,
        coefficients: Sequence[float] = (),
        intercepts: Sequence[float] | None = None,
        targets: int = 1,
        post_transform: str | None = None,
    ) -> tuple[Array]:
        scores = _scores(x, coefficients, intercepts, targets)
        is_left = targets == 1 and post_transform != "PROBIT"
        return (transformed(scores, "NONE" if is_left else post_transform),)


class LinearClassifier(OpRun):  # type: ignore[misc]
    """The class with the largest weighted sum, and all of these sums; of two classes there may be one alone."""

    op_domain = ML

    def _run(
        self,
        x: Array,
        classlabels_ints: Sequence[int] | None = None,
        classlabels_strings: Sequence[str] | None = None,
        coefficients: Sequence[float] = (),
        intercepts: Sequence[float] | None = None,
        multi_class: int = 0,
        post_transform: str | None = None,
    ) -> tuple[np.ndarray, Array]:
        labels = labels_of(classlabels_strings, classlabels_ints)
        num_scores = len(intercepts) if intercepts else len(coefficients) // rows_of(x).shape[1]
        scores = _scores(x, coefficients, intercepts, num_scores)
        if num_scores > 1:
            return labels[scores.argmax(axis=1)], transformed(scores, post_transform)
        second = logistic(scores) if post_transform == "LOGISTIC" else scores
        is_second = (scores[:, 0] > 0).astype(np.int64)
        return labels[is_second], np.concatenate([1 - second, second], axis=1).astype(np.float32)
