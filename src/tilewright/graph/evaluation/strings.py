"""Operators on strings for the reference evaluator of ONNX.

Its own StringNormalizer takes accents off letters and looks for stop words within strings; its own Cast writes what is
no number, and truth, as Python does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_cast import Cast_24

from tilewright.graph.protos import CONTRIB

_CASES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}


class StringNormalizer(OpRun):  # type: ignore[misc]
    """Strings in one case, without those that are stop words; one that is empty where none is left."""

    def _run(
        self,
        x: np.ndarray,
        case_change_action: str = "NONE",
        is_case_sensitive: int = 0,
        locale: str | None = None,
        stopwords: Sequence[str] | None = None,
    ) -> tuple[np.ndarray]:
        compared = _CASES["NONE" if is_case_sensitive else "LOWER"]
        stops = {compared(word) for word in stopwords or ()}
        changed = _CASES[case_change_action]
        kept = [changed(str(word)) for word in x.reshape(-1) if compared(str(word)) not in stops] or [""]
        return (np.array(kept, object).reshape((1, -1) if x.ndim == 2 else -1),)


class Tokenizer(OpRun):  # type: ignore[misc]
    """The parts of strings between separators, or those that match an expression, along a new axis.

    skl2onnx writes this operator of onnxruntime's for what scikit-learn does with texts.
    """

    op_domain = CONTRIB

    def _run(
        self,
        x: np.ndarray,
        mark: int = 0,
        mincharnum: int = 1,
        pad_value: str = "",
        separators: Sequence[str] | None = None,
        tokenexp: str | None = None,
    ) -> tuple[np.ndarray]:
        rows = [
            [token for token in _tokens(str(text), separators, tokenexp) if len(token) >= max(mincharnum, 1)]
            for text in x.reshape(-1)
        ]
        rows = [["\x02", *row, "\x03"] if mark else row for row in rows]
        longest = max(map(len, rows), default=0)
        filled = [row + [pad_value] * (longest - len(row)) for row in rows]
        return (np.array(filled, object).reshape(*x.shape, longest),)


def _tokens(text: str, separators: Sequence[str] | None, expression: str | None) -> list[str]:
    if not separators:
        return [match.group() for match in re.finditer(expression or ".", text)]
    if list(separators) == [""]:
        return list(text)
    parts = [text]
    for separator in separators:
        parts = [piece for part in parts for piece in re.split(f"(?:{separator})", part)]
    return parts


class Cast(Cast_24):  # type: ignore[misc]
    """Elements in another type."""

    def _run(
        self, x: np.ndarray, to: int = 0, saturate: int | None = 1, round_mode: str | None = "up"
    ) -> tuple[np.ndarray]:
        if to != onnx.TensorProto.STRING or x.dtype.kind in "OUS":
            found: tuple[np.ndarray] = super()._run(x, to, 1 if saturate is None else saturate, round_mode or "up")
            return found
        return (np.array([_text(item, x.dtype.name) for item in x.reshape(-1).tolist()], object).reshape(x.shape),)


def _text(item: Any, dtype: str) -> str:
    if not isinstance(item, float):
        return str(int(item))
    if not math.isfinite(item):
        return "NaN" if math.isnan(item) else "INF" if item > 0 else "-INF"
    return repr(item).removesuffix(".0") if dtype == "float64" else f"{item:.8g}"
