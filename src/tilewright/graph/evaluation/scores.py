"""What classifiers and regressors of ai.onnx.ml make of their scores: probabilities, and a column for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of float32 or float64."""

ML = "ai.onnx.ml"
# Of the approximation of the inverse of erf that ONNX means by PROBIT.
_ERF_INVERSE = 0.147
_NEARLY_ZERO = 1e-7


def logistic(scores: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    above = 1 / (1 + np.exp(-np.abs(scores)))
    return np.where(scores < 0, 1 - above, above).astype(scores.dtype)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _softmax_zero(scores: Array) -> Array:
    """The same of the scores that are not zero; those that are stay so."""
    largest = scores.max(axis=1, keepdims=True)
    is_zero = np.abs(scores) <= _NEARLY_ZERO
    powers = np.where(is_zero, scores * np.exp(-largest), np.exp(scores - largest))
    return powers / powers.sum(axis=1, keepdims=True, where=~is_zero)


def _probit(scores: Array) -> Array:
    """The inverse of the normal distribution's integral."""
    x = 2 * scores - 1
    log = np.log((1 - x) * (1 + x))
    middle = 2 / (np.pi * _ERF_INVERSE) + log / 2
    return np.sqrt(2) * np.sign(x) * np.sqrt(np.sqrt(middle * middle - log / _ERF_INVERSE) - middle)


_TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda scores: scores,
    "LOGISTIC": logistic,
    "SOFTMAX": _softmax,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def transformed(scores: Array, kind: str | None) -> Array:
    """Rows of scores after what the attribute `post_transform` asks for."""
    if kind is not None and kind not in _TRANSFORMS:
        raise ValueError(f"there is no post_transform {kind}, but {', '.join(_TRANSFORMS)}")
    return _TRANSFORMS[kind or "NONE"](scores).astype(np.float32)


def labels_of(names: Sequence[str] | None, numbers: Sequence[int] | None) -> np.ndarray:
    """The labels of classes: strings, or numbers."""
    return np.array(names, object) if names else np.array(numbers or (), np.int64)


def rows_of(x: Array) -> Array:
    """The operand as rows of floats; a vector is one row."""
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    return rows if rows.dtype == np.float64 else rows.astype(np.float32)
