"""Rows of text as a table."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """The rows, of which the first names the columns, with each column as wide as its widest cell; a row is a line.

    >>> print(table([("name", "n"), ("a", "10")]))
    name  n
    a     10
    """
    cells = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def one_line(text: str) -> str:
    """The text as it can stand in one line of a terminal, or in a comment: ends of lines and the like are written out.

    >>> print(one_line("gmm:8x8x8\\nimport os"))
    gmm:8x8x8\\nimport os
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
