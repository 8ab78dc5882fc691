"""The ways to cut a loop into nested loops: the tables of tile knobs.

A row has the extents of the inner loops, outermost first; what is left over is the extent of the outermost one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tilewright.space.waste import MAX_AXIS_WASTE, covers_within

# More choices than this are thinned out evenly.
_MAX_CHOICES = 4096


def tilings(
    extent: int, levels: int, innermost: Iterable[int], max_waste: float = MAX_AXIS_WASTE
) -> npt.NDArray[np.int64]:
    """`levels` inner loops, the last one of `innermost`. They need not divide, but waste at most `max_waste`.

    >>> tilings(14, 2, (5, 7)).tolist()
    [[1, 5], [1, 7], [2, 7], [3, 5]]
    """
    rows: set[tuple[int, ...]] = set()
    for last in {size for size in innermost if size <= extent} or {extent}:
        for outer in _nested(-(-extent // last), levels - 1):
            total = int(np.prod(outer, dtype=np.int64)) * last
            if covers_within(extent, total if total <= extent else last, max_waste):
                rows.add((*outer, last))
    return _table(rows, levels)


def exact_tilings(extent: int, levels: int) -> npt.NDArray[np.int64]:
    """`levels` inner loops whose product divides the extent.

    >>> exact_tilings(6, 1)[:, 0].tolist(), exact_tilings(4, 2).tolist()
    ([1, 2, 3, 6], [[1, 1], [1, 2], [1, 4], [2, 1], [2, 2], [4, 1]])
    """
    rows: list[tuple[int, ...]] = [()]
    for _ in range(levels):
        rows = [(*row, size) for row in rows for size in divisors(extent // int(np.prod(row, dtype=np.int64)))]
    return _table(rows, levels)


def _nested(total: int, levels: int) -> list[tuple[int, ...]]:
    """Extents of nested loops over at most `total` tiles: powers of two, divisors, and all."""
    if levels == 0:
        return [()]
    sizes = sorted({1, total, *(2**n for n in range(total.bit_length()) if 2**n <= total), *divisors(total)})
    return [(*outer, size) for size in sizes for outer in _nested(-(-total // size), levels - 1)]


def _table(rows: Iterable[tuple[int, ...]], levels: int) -> npt.NDArray[np.int64]:
    table = np.asarray(sorted(rows), dtype=np.int64).reshape(-1, levels)
    if len(table) <= _MAX_CHOICES:
        return table
    return table[np.linspace(0, len(table) - 1, _MAX_CHOICES).astype(np.int64)]


def divisors(n: int) -> list[int]:
    """The divisors of n, in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
