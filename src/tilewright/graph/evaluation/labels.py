"""Operators of ai.onnx.ml that the reference evaluator of ONNX lacks: classifiers of scikit-learn end with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

_DOMAIN = "ai.onnx.ml"


class ZipMap(OpRun):  # type: ignore[misc]
    """Each row of numbers as a dictionary by the names of its columns."""

    op_domain = _DOMAIN

    def _run(
        self,
        x: np.ndarray,
        classlabels_int64s: Sequence[int] | None = None,
        classlabels_strings: Sequence[str] | None = None,
    ) -> tuple[list[dict[Any, float]]]:
        labels = list(classlabels_strings or classlabels_int64s or ())
        rows = np.atleast_2d(x)
        if rows.shape[1] != len(labels):
            raise ValueError(f"there are {len(labels)} labels for {rows.shape[1]} columns")
        return ([dict(zip(labels, row, strict=True)) for row in rows.tolist()],)


class CategoryMapper(OpRun):  # type: ignore[misc]
    """The numbers of strings, or the strings of numbers; what is in neither list is the default."""

    op_domain = _DOMAIN

    def _run(
        self,
        x: np.ndarray,
        cats_int64s: Sequence[int] = (),
        cats_strings: Sequence[str] = (),
        default_int64: int = -1,
        default_string: str = "_Unused",
    ) -> tuple[np.ndarray]:
        pairs = list(zip(cats_strings, cats_int64s, strict=True))
        if x.dtype.kind == "i":
            names = {number: name for name, number in pairs}
            found = [names.get(number, default_string) for number in x.reshape(-1).tolist()]
            return (np.array(found, object).reshape(x.shape),)
        numbers = dict(pairs)
        return (np.array([numbers.get(str(name), default_int64) for name in x.reshape(-1)]).reshape(x.shape),)
