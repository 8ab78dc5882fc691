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
        self._numbers = {name: number for number, name in enumerate(columns)}
        self._is_scaled = np.array([name not in as_is for name in columns])
        self._rows: list[NDArray[np.float64]] = []
        self._arrays: dict[tuple[int, int], NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, cells: Mapping[str, Cell]) -> int:
        """One row more; gives its number."""
        row = np.zeros(len(self._numbers))
        for name, cell in cells.items():
            column = self._numbers[name]
            if isinstance(cell, np.ndarray):
                self._arrays[len(self._rows), column] = cell.astype(np.float32)
            else:
                row[column] = cell
        self._rows.append(row)
        return len(self._rows) - 1

    def fill_up(self, num_rows: int) -> None:
        """Rows of zeros, until there are so many."""
        for _ in range(len(self), num_rows):
            self.add({})

    def values(self, n: int) -> NDArray[np.float32]:
        """The rows of `n` programs, [program, row, number]."""
        constants = np.stack(self._rows).astype(np.float32)
        constants[:, self._is_scaled] = np.log2(1 + constants[:, self._is_scaled])
        values = np.empty((n, *constants.shape), np.float32)
        values[:] = constants
        if self._arrays:
            rows, columns = np.array(list(self._arrays)).T
            varying = np.stack(list(self._arrays.values()))
            is_scaled = self._is_scaled[columns]
            varying[is_scaled] = np.log2(1 + varying[is_scaled])
            values[:, rows, columns] = varying.T
        return values
