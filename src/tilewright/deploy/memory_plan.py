"""The static memory plan: where in one arena each intermediate value lies while it is needed.

Values whose lifetimes do not meet share memory. Finding the smallest arena is NP-hard; placing the largest values
first, each into the tightest gap that is free over its whole lifetime, comes within a few percent on networks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from typing import TypeAlias

ALIGNMENT = 64
"""In bytes: a cache line, and the widest vector register."""


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that is needed from step `first` to step `last`, both included."""

    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The offset of each block, and the bytes of the arena that holds them all."""

    offsets: tuple[int, ...]
    nbytes: int


def plan_memory(blocks: Sequence[Block]) -> MemoryPlan:
    """Place blocks so that those needed at the same step do not overlap.

    >>> plan_memory([Block(256, 0, 1), Block(128, 1, 2), Block(100, 2, 3)])
    MemoryPlan(offsets=(0, 256, 0), nbytes=384)
    """
    steps = _Steps(blocks)
    best: MemoryPlan | None = None
    for plan in _plans(blocks, steps):
        best = plan if best is None or plan.nbytes < best.nbytes else best
        if best.nbytes == steps.most_bytes:
            break
    assert best is not None
    return best


def _plans(blocks: Sequence[Block], steps: _Steps) -> Iterator[MemoryPlan]:
    """Plans to choose from; the one in the order of time is quick to make for any network."""
    if steps.num_meetings <= _MOST_MEETINGS:
        for order in _ORDERS:
            yield _place(blocks, order, steps)
    yield _place_in_time(blocks)


_Order: TypeAlias = Callable[[Block], tuple[int, ...]]

# The first is best for most networks; the second, and the order of time, win on some, and cost milliseconds.
_ORDERS: tuple[_Order, ...] = (
    lambda block: (-block.nbytes, block.first),
    lambda block: (-block.nbytes * (block.last - block.first + 1), block.first),
)
# So many take seconds. Where more blocks meet, as where one value has thousands of readers, time alone decides.
_MOST_MEETINGS = 1 << 23


class _Steps:
    """The steps at which some block begins, numbered: two blocks that meet do so at one of them."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._firsts = sorted({block.first for block in blocks})
        self._number = {first: number for number, first in enumerate(self._firsts)}
        bytes_more, blocks_more = [0] * (len(self._firsts) + 1), [0] * (len(self._firsts) + 1)
        for block in blocks:
            span = self.of(block)
            bytes_more[span.start] += _rounded(block.nbytes)
            bytes_more[span.stop] -= _rounded(block.nbytes)
            blocks_more[span.start] += 1
            blocks_more[span.stop] -= 1
        self.most_bytes = max(accumulate(bytes_more))
        self.num_meetings = sum(count * count for count in accumulate(blocks_more))

    def __len__(self) -> int:
        return len(self._firsts)

    def of(self, block: Block) -> range:
        """The steps at which the block is needed."""
        return range(self._number[block.first], bisect_right(self._firsts, block.last))


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _place(blocks: Sequence[Block], order: _Order, steps: _Steps) -> MemoryPlan:
    """One block after the other in this order, each into the tightest gap over its whole lifetime."""
    offsets = [0] * len(blocks)
    taken: list[list[tuple[int, int]]] = [[] for _ in range(len(steps))]
    nbytes = 0
    for index in sorted(range(len(blocks)), key=lambda i: order(blocks[i])):
        span = steps.of(blocks[index])
        met = {place for step in span for place in taken[step]}
        begin = _tightest_gap(sorted(met), _rounded(blocks[index].nbytes))
        end = begin + _rounded(blocks[index].nbytes)
        for step in span:
            taken[step].append((begin, end))
        offsets[index] = begin
        nbytes = max(nbytes, end)
    return MemoryPlan(tuple(offsets), nbytes)


def _tightest_gap(taken: Sequence[tuple[int, int]], nbytes: int) -> int:
    """Where the smallest gap begins that holds `nbytes`; `taken` is sorted by where it begins."""
    best_begin, best_size = -1, -1
    free_from = 0
    for begin, end in taken:
        size = begin - free_from
        if size >= nbytes and (best_begin < 0 or size < best_size):
            best_begin, best_size = free_from, size
        free_from = max(free_from, end)
    return best_begin if best_begin >= 0 else free_from


def _place_in_time(blocks: Sequence[Block]) -> MemoryPlan:
    """The blocks in the order in which they begin, the largest of those first, each into the tightest gap at that step.

    All that a block meets and that has its place already is needed when it begins: so one list of gaps will do.
    """
    offsets = [0] * len(blocks)
    gaps = _Gaps()
    needed: list[tuple[int, int, int]] = []  # last step, begin and end
    for index in sorted(range(len(blocks)), key=lambda i: (blocks[i].first, -blocks[i].nbytes)):
        block = blocks[index]
        while needed and needed[0][0] < block.first:
            gaps.give(*heappop(needed)[1:])
        nbytes = _rounded(block.nbytes)
        offsets[index] = gaps.take(nbytes)
        heappush(needed, (block.last, offsets[index], offsets[index] + nbytes))
    return MemoryPlan(tuple(offsets), gaps.nbytes)


class _Gaps:
    """The free parts of an arena that grows."""

    def __init__(self) -> None:
        self.nbytes = 0
        """The most that has been in use."""
        self._end = 0
        self._by_size: list[tuple[int, int]] = []  # size and begin
        self._ends: dict[int, int] = {}  # by where they begin
        self._begins: dict[int, int] = {}  # by where they end

    def take(self, nbytes: int) -> int:
        """Where `nbytes` are free from now on taken: in the tightest gap, the first of several, or at the end."""
        at = bisect_left(self._by_size, (nbytes, 0))
        if at == len(self._by_size):
            begin = self._end
            self._end += nbytes
            self.nbytes = max(self.nbytes, self._end)
            return begin
        _, begin = self._by_size[at]
        end = self._remove(begin)
        self._add(begin + nbytes, end)
        return begin

    def give(self, begin: int, end: int) -> None:
        """Free a part, and join it with the gaps beside it."""
        if begin in self._begins:
            begin = self._begins[begin]
            self._remove(begin)
        if end in self._ends:
            end = self._remove(end)
        if end == self._end:
            self._end = begin
        else:
            self._add(begin, end)

    def _add(self, begin: int, end: int) -> None:
        if begin < end:
            insort(self._by_size, (end - begin, begin))
            self._ends[begin], self._begins[end] = end, begin

    def _remove(self, begin: int) -> int:
        """Forget a gap; where it ends."""
        end = self._ends.pop(begin)
        del self._begins[end]
        del self._by_size[bisect_left(self._by_size, (end - begin, begin))]
        return end
