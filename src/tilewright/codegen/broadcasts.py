"""Factors that are one element for all lanes of a vector: whether the code around reads each of them once, or again.

A convolution whose taps are unrolled reads most of its inputs once for each tap. What LLVM reads once it keeps in a
register until its last use, and where the sums fill the registers that costs one of the sums its place: it goes to
memory and back in every step. Such elements are read anew instead, by pointers of which LLVM does not know that they
are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import prod

from tilewright.ir import Buffer, For, Load, Update
from tilewright.te import Binary, Expr, Var
from tilewright.te.index import FromMemory, Linear, Operation, of_atom, variables


@dataclass(frozen=True, slots=True)
class Rereads:
    """Steps of a sum that read elements of others. No two steps of the same number read the same element."""

    vars: tuple[Var, ...]
    numbers: dict[tuple[int, ...], int]
    num_rows: int
    """Sums that a step adds to, or vectors of them."""
    num_elements: int
    """Elements that several steps read."""

    @property
    def num_numbers(self) -> int:
        return max(self.numbers.values()) + 1


@dataclass(frozen=True, slots=True)
class Apart:
    """A buffer whose elements are read anew: in steps of other numbers, and by the second of a pair of vectors."""

    buffer: Buffer
    step: int
    is_pair: bool

    def number(self, is_second: bool) -> int:
        return 2 * self.step + is_second if self.is_pair else self.step


@dataclass(slots=True)
class StraightCode:
    """The body of the innermost loop that is not unrolled: over `var`, or none at the top of a function."""

    var: Var | None = None
    unrolled: list[For] = field(default_factory=list)
    _known: dict[tuple[int, int], Rereads | None] = field(default_factory=dict)

    def reads_once(self, offset: Linear) -> bool:
        """Whether it moves with the loop, and differs in all iterations of the loops that are unrolled inside."""
        if self.var is None or not offset.terms.get(self.var) or self._is_within(offset):
            return False
        offsets, num_iterations = {0}, 1
        for loop in self.unrolled:
            step = offset.terms.get(loop.var, 0)
            offsets = {other + step * n for other in offsets for n in range(loop.extent)}
            num_iterations *= loop.extent
            if len(offsets) < num_iterations:
                return False
        return True

    def num_kept(self, loop: For, lanes: int) -> int:
        """The vector registers that sums need which stay there while the code repeats, with one step's operands."""
        update = loop.body
        if self.var is None or not isinstance(update, Update):
            return 0
        kept = {var for index in update.indices for var in variables(index)}
        if self.var in kept:
            return 0
        num_rows = prod(inner.extent for inner in self.unrolled if inner.var in kept)
        num_vectors = -(-loop.extent // lanes) if loop.var in kept else 1
        return (num_rows + 1) * num_vectors + 1

    def reads_again(self, update: Update, offset: Linear) -> Rereads | None:
        """Which of the steps of the sum that are unrolled read the same elements; None where no two of them do."""
        key = id(update), id(offset)  # this code is written from the same objects in all iterations
        if key not in self._known:
            self._known[key] = None if self._is_within(offset) else self._rereads(update, offset)
        return self._known[key]

    def _rereads(self, update: Update, offset: Linear) -> Rereads | None:
        kept = {var for index in update.indices for var in variables(index)}
        rows = [loop for loop in self.unrolled if loop.var in kept]
        steps = [loop for loop in self.unrolled if loop.var not in kept]
        own = {0}
        for loop in rows:
            own = {place + offset.terms.get(loop.var, 0) * n for place in own for n in range(loop.extent)}
        numbers: dict[tuple[int, ...], int] = {}
        read: list[set[int]] = []  # by the steps of each number
        again: set[int] = set()
        for step in product(*(range(loop.begin, loop.begin + loop.extent) for loop in steps)):
            shift = sum(offset.terms.get(loop.var, 0) * n for loop, n in zip(steps, step, strict=True))
            places = {place + shift for place in own}
            number = next((n for n, others in enumerate(read) if not others & places), len(read))
            if number == len(read):
                read.append(set())
            again |= places & set().union(*(others for n, others in enumerate(read) if n != number))
            read[number] |= places
            numbers[step] = number
        if len(read) < 2:
            return None
        num_rows = prod(loop.extent for loop in rows)
        return Rereads(tuple(loop.var for loop in steps), numbers, num_rows, len(again))

    def _is_within(self, offset: Linear) -> bool:
        """Whether a variable of this code stands in a quotient or an index from memory, where its step is not known."""
        own = {self.var, *(loop.var for loop in self.unrolled)}
        for atom in offset.terms:
            if isinstance(atom, FromMemory) or (isinstance(atom, Operation) and variables(of_atom(atom)) & own):
                return True
        return False


def factors(loop: For) -> tuple[Expr, ...]:
    """Of a vector loop over a sum of products of floats, what is multiplied; nothing of another loop."""
    update = loop.body
    if not isinstance(update, Update) or update.op != "sum":
        return ()
    product = update.values[0]
    if not isinstance(product, Binary) or product.op != "mul" or product.dtype not in ("float32", "float64"):
        return ()
    return product.a, product.b


def is_uniform(load: Load, loop: For) -> bool:
    """Whether it reads one element for all lanes of the loop."""
    return not any(loop.var in variables(index) for index in load.indices)
