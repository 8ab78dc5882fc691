"""Rows of named numbers for all programs of a population: most are the same in all of them, some are arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Cell: TypeAlias = "float | NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]"


class RowTable:
    """Collects the rows of an encoder. A number that a row does not have is 0.

    Numbers are at least 0 and are taken as log2(1 + x), which leaves flags as they are; those of the columns in `as_is`
    stay what they are.

    >>> table = RowTable(("is_loop", "extent"))
    >>> table.add({"is_loop": 1, "extent": np.array([7, 1])})
    0
    >>> table.values(2).tolist()
    [[[1.0, 3.0]], [[1.0, 1.0]]]
    """

    def __init__(self, columns: Sequence[str], as_is: Sequence[str] = ()) -> None:
        self._columns = {name: number for number, name in enumerate(columns)}
        self._as_is = frozenset(as_is)
        self._num_rows = 0
        self._cells: dict[tuple[bool, bool], list[tuple[int, int, Cell]]] = {}  # arrays and others, scaled and not

    def add(self, cells: Mapping[str, Cell]) -> int:
        """One row more; gives its number."""
        row = self._num_rows
        for name, cell in cells.items():
            kind = isinstance(cell, np.ndarray), name not in self._as_is
            self._cells.setdefault(kind, []).append((row, self._columns[name], cell))
        self._num_rows += 1
        return row

    def fill_up(self, num_rows: int) -> None:
        """Rows of zeros, until there are so many."""
        self._num_rows = max(self._num_rows, num_rows)

    def values(self, n: int) -> NDArray[np.float32]:
        """The rows of `n` programs, [program, row, number]."""
        values = np.zeros((n, self._num_rows, len(self._columns)), np.float32)
        for (is_array, is_scaled), cells in self._cells.items():
            rows, columns = np.array([(row, column) for row, column, _ in cells]).T
            numbers = np.empty((len(cells), n if is_array else 1), np.float32)
            for own, (_, _, cell) in zip(numbers, cells, strict=True):
                own[:] = cell
            if is_scaled:
                numbers += 1
                np.log2(numbers, out=numbers)
            values[:, rows, columns] = numbers.T
        return values
