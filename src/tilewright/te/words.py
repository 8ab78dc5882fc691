"""Words: int32 numbers that hold four neighbouring bytes, the first in the lowest, as `te.dot4` takes them."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.te.expr import Binary, Cast, Const, Expr, binary, cast

WORD_BYTES = 4
"""In a word."""
_STEP = 256


def word_of(parts: Sequence[Expr]) -> Expr:
    """The word of four elements of int8 or uint8."""
    *lower, highest = parts
    word = cast(cast(highest, "int8"), "int32")
    for part in reversed(lower):
        word = binary("add", binary("mul", word, _STEP), cast(cast(part, "uint8"), "int32"))
    return word


def parts_of_word(e: Expr) -> list[Expr] | None:
    """The four bytes that `word_of` made a word of, as they were before they were cast; None where it did not."""
    parts: list[Expr] = []
    while len(parts) + 1 < WORD_BYTES:
        if not isinstance(e, Binary) or e.op != "add" or not isinstance(e.a, Binary) or e.a.op != "mul":
            return None
        factor, part = e.a.b, _byte(e.b, "uint8")
        if part is None or not isinstance(factor, Const) or factor.value != _STEP:
            return None
        parts.append(part)
        e = e.a.a
    highest = _byte(e, "int8")
    return None if highest is None else [*parts, highest]


def _byte(e: Expr, dtype: str) -> Expr | None:
    """A byte of that type that is widened to a word, before it got that type."""
    if not isinstance(e, Cast) or e.dtype != "int32" or e.x.dtype != dtype:
        return None
    byte = e.x
    return byte.x if isinstance(byte, Cast) and byte.x.dtype in ("int8", "uint8") else byte
