"""The static memory plan: where in one arena each intermediate value lies while it is needed.

Values whose lifetimes do not meet share memory. Finding the smallest arena is NP-hard; placing the largest values
first, each into the tightest gap that is free over its whole lifetime, comes within a few percent on networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

ALIGNMENT = 64
"""In bytes: a cache line, and the widest vector register."""


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that is needed from step `first` to step `last`, both included."""

    nbytes: int
    first: int
    last: int

    def meets(self, other: Block) -> bool:
        """Whether both are needed at the same step."""
        return self.first <= other.last and other.first <= self.last


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
    least = lower_bound(blocks)
    best = _place(blocks, _ORDERS[0])
    for order in _ORDERS[1:]:
        if best.nbytes == least:
            break
        best = min(best, _place(blocks, order), key=lambda plan: plan.nbytes)
    return best


def lower_bound(blocks: Sequence[Block]) -> int:
    """What no plan can go below: the most bytes that are needed at one step."""
    return max((sum(_rounded(b.nbytes) for b in blocks if b.meets(at)) for at in map(_first_step, blocks)), default=0)


_Order: TypeAlias = Callable[[Block], tuple[int, ...]]

# The first is best for most networks; the others win on some, and cost milliseconds.
_ORDERS: tuple[_Order, ...] = (
    lambda block: (-block.nbytes, block.first),
    lambda block: (-block.nbytes * (block.last - block.first + 1), block.first),
    lambda block: (block.first, -block.nbytes),
)


def _first_step(block: Block) -> Block:
    """The need for memory is greatest at a step at which some block begins."""
    return Block(0, block.first, block.first)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _place(blocks: Sequence[Block], order: _Order) -> MemoryPlan:
    offsets = [0] * len(blocks)
    placed: list[tuple[int, int, Block]] = []  # begin, end and block, by begin
    for index in sorted(range(len(blocks)), key=lambda i: order(blocks[i])):
        block = blocks[index]
        nbytes = _rounded(block.nbytes)
        begin = _tightest_gap([(b, e) for b, e, other in placed if other.meets(block)], nbytes)
        offsets[index] = begin
        placed.append((begin, begin + nbytes, block))
        placed.sort(key=lambda item: item[0])
    return MemoryPlan(tuple(offsets), max((end for _, end, _ in placed), default=0))


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
