"""Rows of text as a table."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """The rows, of which the first names the columns, with each column as wide as its widest cell.

    >>> print(table([("name", "n"), ("a", "10")]))
    name  n
    a     10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
