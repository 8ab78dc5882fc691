"""Expressions of a loop nest as values. A value is a vector where it varies over the lanes, else a scalar."""

from __future__ import annotations

from tilewright.codegen.arithmetic import binary
from tilewright.codegen.builder import Value
from tilewright.codegen.convert import compute_dtype, convert
from tilewright.codegen.frame import Frame
from tilewright.codegen.indices import Indices
from tilewright.codegen.math import emit_function
from tilewright.codegen.memory import Memory
from tilewright.ir import Index, Load, Test
from tilewright.te import Binary, Cast, Const, Expr, Select, Unary, is_float


class Values:
    """Writes expressions for one function."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.indices = Indices(frame, self.emit)
        self.memory = Memory(frame, self.indices)
        self._guard: Value | None = None  # holds where the expression being written is needed

    def emit(self, e: Expr) -> Value:
        b = self.frame.builder
        if isinstance(e, Load):
            return self.memory.load(e, e.buffer, e.indices, self._guard)
        if isinstance(e, Binary):
            if e.op in ("and", "or"):
                return self._logic(e)
            x, y = self._alike(self.emit(e.a), self.emit(e.b))
            return binary(b, e.op, x, y)
        if isinstance(e, Const):
            return b.const(e.value, compute_dtype(e.dtype))
        if isinstance(e, Select):
            return self._select(e)
        if isinstance(e, Unary):
            return self._unary(e.op, self.emit(e.x))
        if isinstance(e, Cast):
            return convert(b, self.frame.target, self.emit(e.x), e.dtype)
        if isinstance(e, Index):
            return self.indices.value(e.form)
        assert isinstance(e, Test), f"unexpected expression {e!r}"
        return self._test(e)

    def _alike(self, x: Value, y: Value) -> tuple[Value, Value]:
        """Both with as many lanes as the wider one."""
        lanes = max(x.lanes, y.lanes)
        b = self.frame.builder
        return b.broadcast(x, lanes), b.broadcast(y, lanes)

    def _unary(self, op: str, x: Value) -> Value:
        b = self.frame.builder
        if op == "not":
            return b.binary("xor", x, b.const(1, "bool", x.lanes))
        if is_float(x.dtype):
            return b.fneg(x) if op == "neg" else emit_function(b, op, x)
        zero = b.const(0, x.dtype, x.lanes)
        negative = b.binary("sub", zero, x)
        if op == "neg":
            return negative
        return x if x.dtype == "uint8" else b.select(b.compare("slt", x, zero), negative, x)

    def _test(self, e: Test) -> Value:
        b = self.frame.builder
        known = self.frame.decide(e.op, e.form)
        if known is not None:
            return b.const(known, "bool")
        x = self.indices.value(e.form)
        return b.compare({"ge": "sge"}.get(e.op, e.op), x, b.const(0, "int64", x.lanes))

    def _logic(self, e: Binary) -> Value:
        """`and` and `or`; a side that is known decides or drops out."""
        x = self.emit(e.a)
        decides = "false" if e.op == "and" else "true"
        if x.text == decides:
            return x
        y = self.emit(e.b)
        if y.text == decides or x.text in ("true", "false"):
            return y
        if y.text in ("true", "false"):
            return x
        return self.frame.builder.binary(e.op, *self._alike(x, y))

    def _select(self, e: Select) -> Value:
        cond = self.emit(e.cond)
        if cond.text in ("true", "false"):
            return self.emit(e.a if cond.text == "true" else e.b)
        b = self.frame.builder
        opposite = b.binary("xor", cond, b.const(1, "bool", cond.lanes))
        x, y = self._alike(self._under(cond, e.a), self._under(opposite, e.b))
        if cond.lanes > 1:
            x, y = b.broadcast(x, cond.lanes), b.broadcast(y, cond.lanes)
        return b.select(cond, x, y)

    def _under(self, cond: Value, e: Expr) -> Value:
        """`e` where `cond` holds: loads that may be out of bounds elsewhere are guarded by it."""
        outer = self._guard
        self._guard = cond if outer is None else self.frame.builder.binary("and", *self._alike(outer, cond))
        value = self.emit(e)
        self._guard = outer
        return value
