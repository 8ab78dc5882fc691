"""Operators of ai.onnx.ml on features, for the reference evaluator of ONNX.

Its own give elements of the type that they take, where ONNX says float32, know no LabelEncoder of version 1 and no key
that is NaN, which onnxruntime finds since version 4, and divide by the largest size where ONNX says by the largest
element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.graph.evaluation.scores import ML, Array

_NORMS: dict[str, Callable[[Array], Array]] = {
    "MAX": lambda x: x.max(axis=-1, keepdims=True),
    "L1": lambda x: np.abs(x).sum(axis=-1, keepdims=True),
    "L2": lambda x: np.sqrt((x * x).sum(axis=-1, keepdims=True)),
}
# What is looked up or given instead, by the end of an attribute's name.
_DEFAULTS: dict[str, tuple[str, Any]] = {
    "strings": ("default_string", "_Unused"),
    "int64s": ("default_int64", -1),
    "floats": ("default_float", -0.0),
}


_NAN = object()
"""All NaN among keys: none is equal to another, nor to itself."""


class Normalizer(OpRun):  # type: ignore[misc]
    """Rows divided by their largest element, by the sum of the sizes of all, or by their length."""

    op_domain = ML

    def _run(self, x: np.ndarray, norm: str = "MAX") -> tuple[np.ndarray]:
        rows = x.astype(np.float64)
        size = _NORMS[norm](rows)
        return (np.divide(rows, size, out=rows.copy(), where=size != 0).astype(np.float32),)


class Scaler(OpRun):  # type: ignore[misc]
    """Features less an offset, times a scale."""

    op_domain = ML

    def _run(self, x: np.ndarray, offset: Sequence[float] = (), scale: Sequence[float] = ()) -> tuple[np.ndarray]:
        return (((x - np.array(offset)) * np.array(scale)).astype(np.float32),)


class FeatureVectorizer(OpRun):  # type: ignore[misc]
    """Features side by side, each cut or filled up to its own number of columns."""

    op_domain = ML

    def _run(self, *operands: np.ndarray, inputdimensions: Sequence[int] = ()) -> tuple[np.ndarray]:
        parts = []
        for operand, number in zip(operands, inputdimensions, strict=True):
            rows = operand.reshape(len(operand), -1) if operand.ndim > 1 else operand.reshape(-1, 1)
            rows = rows[:, :number].astype(np.float32)
            parts.append(np.pad(rows, [(0, 0), (0, number - rows.shape[1])]))
        return (np.concatenate(parts, axis=1),)


class LabelEncoder(OpRun):  # type: ignore[misc]
    """What stands for each element in a table."""

    op_domain = ML

    def _run(self, x: np.ndarray, **attributes: Any) -> tuple[np.ndarray]:
        names = attributes.get("classes_strings")
        if names:
            if x.dtype.kind in "iu":
                return (_looked_up(x, dict(enumerate(names)), attributes["default_string"], object),)
            numbers = {name: number for number, name in enumerate(names)}
            return (_looked_up(x, numbers, attributes["default_int64"], np.int64),)
        keys, _ = _column(attributes, "keys")
        values, kind = _column(attributes, "values")
        finds_nan = self.run_params["opsets"][ML] >= 4
        table = {_key(key) if finds_nan else key: value for key, value in zip(keys, values, strict=True)}
        if kind == "tensor":
            default = attributes["default_tensor"]
            return (_looked_up(x, table, np.asarray(default).reshape(-1)[0], np.asarray(values).dtype),)
        name, usual = _DEFAULTS[kind]
        default = attributes.get(name)
        dtype = {"strings": object, "int64s": np.int64, "floats": np.float32}[kind]
        return (_looked_up(x, table, usual if default is None else default, dtype),)


def _column(attributes: Mapping[str, Any], side: str) -> tuple[Sequence[Any], str]:
    """The keys or the values, and of which kind they are."""
    for kind in (*_DEFAULTS, "tensor"):
        found = attributes.get(f"{side}_{kind}")
        if found is not None and len(found):
            return found, kind
    raise ValueError(f"{side} are missing")


def _looked_up(x: np.ndarray, table: Mapping[Any, Any], default: Any, dtype: Any) -> np.ndarray:
    found = np.empty(x.size, dtype)
    found[:] = [table.get(_key(item), default) for item in x.reshape(-1)]
    return found.reshape(x.shape)


def _key(item: Any) -> Any:
    return _NAN if isinstance(item, float | np.floating) and np.isnan(item) else item
