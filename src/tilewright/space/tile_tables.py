"""The ways to cut a loop into nested loops: the tables of tile knobs.

A row has the extents of the inner loops, outermost first; what is left over is the extent of the outermost one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from tilewright.space.waste import MAX_AXIS_WASTE, covers_within

# More choices than this are thinned out evenly; of more than can be listed, some are drawn.
_MAX_CHOICES = 4096
_MAX_LISTED = 1 << 16
_NUM_DRAWN = 4 * _MAX_CHOICES
# Up to this every size is one of those that need not divide.
_SMALL = 64

Row = tuple[int, ...]
Sizes = Callable[[int], Sequence[int]]


def tilings(
    extent: int, levels: int, innermost: Iterable[int], max_waste: float = MAX_AXIS_WASTE
) -> npt.NDArray[np.int64]:
    """`levels` inner loops, the last one of `innermost`. They need not divide, but waste at most `max_waste`.

    >>> tilings(14, 2, (5, 7)).tolist()
    [[1, 5], [1, 7], [2, 7], [3, 5]]
    """

    def wastes_little(row: Row) -> bool:
        total = int(np.prod(row, dtype=np.int64))
        return covers_within(extent, total if total <= extent else row[-1], max_waste)

    last = sorted({size for size in innermost if size <= extent} or {extent})
    return _table({row for row in _rows(extent, levels, last, _convenient) if wastes_little(row)}, levels)


def exact_tilings(extent: int, levels: int, max_inner: int | None = None) -> npt.NDArray[np.int64]:
    """`levels` inner loops whose product divides the extent, the last one of at most `max_inner`.

    >>> exact_tilings(6, 1)[:, 0].tolist(), exact_tilings(4, 2).tolist()
    ([1, 2, 3, 6], [[1, 1], [1, 2], [1, 4], [2, 1], [2, 2], [4, 1]])
    >>> exact_tilings(12, 2, max_inner=2).tolist()[-2:]
    [[6, 2], [12, 1]]
    """
    last = [size for size in divisors(extent) if max_inner is None or size <= max_inner]
    return _table(_rows(extent, levels, last, divisors), levels)


def any_tilings(
    extent: int, levels: int, max_inner: int | None = None, max_waste: float = MAX_AXIS_WASTE
) -> npt.NDArray[np.int64]:
    """As `exact_tilings`, but they need not divide: the last is any size of up to 64, and a convenient one beyond.

    >>> any_tilings(14, 1)[:, 0].tolist()
    [1, 2, 3, 4, 5, 7, 8, 14]
    """
    longest = min(extent, extent if max_inner is None else max_inner)
    sizes = {*range(1, min(longest, _SMALL) + 1), *_convenient(extent)}
    return tilings(extent, levels, (size for size in sizes if size <= longest), max_waste)


def _rows(extent: int, levels: int, innermost: Sequence[int], sizes: Sizes) -> set[Row]:
    """All rows whose last loop is one of `innermost` and whose others are of the `sizes` of what is left over.

    Of too many some, always the same; those that cut the loop once are among them.
    """
    every = ((*outer, last) for last in innermost for outer in _nested(-(-extent // last), levels - 1, sizes))
    rows = set(islice(every, _MAX_LISTED + 1))
    if len(rows) <= _MAX_LISTED:
        return rows
    once = {(*(1,) * (levels - 1), last) for last in innermost}
    return once | _drawn(extent, levels, innermost, sizes)


def _nested(total: int, levels: int, sizes: Sizes) -> Iterator[Row]:
    """Extents of nested loops over at most `total` tiles."""
    if levels == 0:
        yield ()
        return
    for size in sizes(total):
        for outer in _nested(-(-total // size), levels - 1, sizes):
            yield (*outer, size)


def _drawn(extent: int, levels: int, innermost: Sequence[int], sizes: Sizes) -> set[Row]:
    """Random rows, each level as likely to take any of its sizes."""
    rng = np.random.default_rng(0)
    known: dict[int, Sequence[int]] = {}
    rows: set[Row] = set()
    for draw in rng.random((_NUM_DRAWN, levels)).tolist():
        row: Row = ()
        left = extent
        for level, point in enumerate(draw):
            if left not in known:
                known[left] = sizes(left)
            choices = known[left] if level else innermost
            size = choices[int(point * len(choices))]
            row, left = (size, *row), -(-left // size)
        rows.add(row)
    return rows


def _convenient(total: int) -> list[int]:
    """Powers of two, divisors, and all."""
    return sorted({1, total, *(2**n for n in range(total.bit_length()) if 2**n <= total), *divisors(total)})


def _table(rows: Iterable[Row], levels: int) -> npt.NDArray[np.int64]:
    table = np.asarray(sorted(rows), dtype=np.int64).reshape(-1, levels)
    if len(table) <= _MAX_CHOICES:
        return table
    return table[np.linspace(0, len(table) - 1, _MAX_CHOICES).astype(np.int64)]


def divisors(n: int) -> list[int]:
    """The divisors of n, in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
