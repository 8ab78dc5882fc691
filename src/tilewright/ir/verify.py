"""The verifier: what holds for every loop nest, between all passes. It is also the definition of the nest."""

from __future__ import annotations

from tilewright.errors import LoweringError
from tilewright.ir.nest import Block, Buffer, For, Index, Load, LoopNest, Stmt, Store, Test, Update, Where
from tilewright.ir.printer import format_nest
from tilewright.ir.walk import operands
from tilewright.schedule import PARALLEL, SERIAL, UNROLL, VECTORIZE
from tilewright.te import Binary, Cast, Const, Expr, Select, Unary, Var
from tilewright.te.index import FromMemory, Interval, Linear, Operation, bounds

_KINDS = (SERIAL, PARALLEL, VECTORIZE, UNROLL)


def verify(nest: LoopNest) -> None:
    """Raise LoweringError, with the nest, unless every rule holds."""
    try:
        _Verifier(set(nest.arguments)).statement(nest.body, {}, ())
    except LoweringError as error:
        raise LoweringError(f"{error}\n{format_nest(nest)}") from None


class _Verifier:
    def __init__(self, buffers: set[Buffer]) -> None:
        self.buffers = buffers
        self._seen: set[tuple[int, bool]] = set()

    def statement(self, stmt: Stmt, ranges: dict[Var, Interval], kinds: tuple[str, ...]) -> None:
        if isinstance(stmt, For):
            self._loop(stmt, ranges, kinds)
        elif isinstance(stmt, Block):
            self.buffers |= set(stmt.buffers)
            for inner in stmt.body:
                self.statement(inner, ranges, kinds)
            self.buffers -= set(stmt.buffers)
        elif isinstance(stmt, Where):
            self._where(stmt, ranges, kinds)
        elif isinstance(stmt, Store):
            self._access(stmt.buffer, stmt.indices, ranges, is_certain=True)
            self._values((stmt.value,), ranges)
        else:
            assert isinstance(stmt, Update)
            for buffer in stmt.buffers:
                self._access(buffer, stmt.indices, ranges, is_certain=True)
            self._values(stmt.values, ranges)

    def _loop(self, loop: For, ranges: dict[Var, Interval], kinds: tuple[str, ...]) -> None:
        if loop.kind not in _KINDS:
            raise LoweringError(f"loop {loop.var.name} has the unknown kind {loop.kind!r}")
        if loop.extent < 1:
            raise LoweringError(f"loop {loop.var.name} runs {loop.extent} times; it must run at least once")
        if loop.var in ranges:
            raise LoweringError(f"loop {loop.var.name} is nested in itself")
        if loop.kind in (PARALLEL, VECTORIZE) and loop.kind in kinds:
            raise LoweringError(f"loop {loop.var.name} is {loop.kind} inside another {loop.kind} loop")
        if loop.kind == PARALLEL and VECTORIZE in kinds:
            raise LoweringError(f"loop {loop.var.name} is parallel inside a vectorized loop")
        inside = {**ranges, loop.var: loop.interval}
        self.statement(loop.body, inside, (*kinds, loop.kind))

    def _where(self, where: Where, ranges: dict[Var, Interval], kinds: tuple[str, ...]) -> None:
        if where.var not in ranges:
            raise LoweringError(f"where on {where.var.name}, which is not a loop around it")
        position, last = ranges[where.var]
        for begin, end, case in where.cases:
            if begin != position or end <= begin:
                raise LoweringError(f"where on {where.var.name}: case {begin}..{end} should begin at {position}")
            self.statement(case, {**ranges, where.var: Interval(begin, end - 1)}, kinds)
            position = end
        if position != last + 1:
            raise LoweringError(f"where on {where.var.name} ends at {position}, its loop at {last + 1}")

    def _values(self, values: tuple[Expr, ...], ranges: dict[Var, Interval]) -> None:
        self._seen.clear()  # another statement, and so other ranges
        for value in values:
            self._value(value, ranges, is_certain=True)

    def _value(self, e: Expr, ranges: dict[Var, Interval], is_certain: bool) -> None:
        """`is_certain`: not in a branch of a select. A node in both kinds of places is checked in both."""
        if (id(e), is_certain) in self._seen:
            return
        self._seen.add((id(e), is_certain))
        if isinstance(e, Load):
            self._access(e.buffer, e.indices, ranges, is_certain)
        elif isinstance(e, Index | Test):
            self._form(e.form, ranges)
        elif isinstance(e, Select):
            self._value(e.cond, ranges, is_certain)
            self._value(e.a, ranges, is_certain=False)
            self._value(e.b, ranges, is_certain=False)
            return
        elif not isinstance(e, Binary | Unary | Cast | Const):
            raise LoweringError(f"{type(e).__name__} has no place in a loop nest")
        for inner in operands(e):
            self._value(inner, ranges, is_certain)

    def _access(
        self, buffer: Buffer, indices: tuple[Linear, ...], ranges: dict[Var, Interval], is_certain: bool
    ) -> None:
        if buffer not in self.buffers:
            raise LoweringError(f"buffer {buffer.name} is used outside its life")
        if len(indices) != len(buffer.shape):
            raise LoweringError(f"buffer {buffer.name} of {len(buffer.shape)} dimensions has {len(indices)} indices")
        for dim, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            self._form(index, ranges)
            low, high = bounds(index, ranges)
            reads_memory = any(isinstance(atom, FromMemory) for atom in index.terms)
            if is_certain and not reads_memory and _is_tight(index) and (low < 0 or high >= extent):
                raise LoweringError(f"index {dim} of {buffer.name} is {index}: {low}..{high}, outside 0..{extent - 1}")

    def _form(self, form: Linear, ranges: dict[Var, Interval]) -> None:
        for atom in form.terms:
            if isinstance(atom, Operation):
                self._form(atom.a, ranges)
                self._form(atom.b, ranges)
            elif isinstance(atom, Var) and atom not in ranges:
                raise LoweringError(f"variable {atom.name} is used outside its loop")


def _is_tight(form: Linear) -> bool:
    """Whether the bounds are reached: only where no operation correlates with another term."""
    return sum(not isinstance(atom, Var) for atom in form.terms) <= 0
