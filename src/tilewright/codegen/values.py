"""Expressions of a loop nest as values. A value is a vector where it varies over the lanes, else a scalar.

A node that stands in several places of an expression is written once, if it is legal there: what is written under the
guard of a select is known under that guard alone.
"""

from __future__ import annotations

from tilewright.codegen.arithmetic import binary
from tilewright.codegen.builder import Value
from tilewright.codegen.convert import compute_dtype, convert
from tilewright.codegen.dot import dot4
from tilewright.codegen.frame import Frame
from tilewright.codegen.function_memory import FunctionMemory
from tilewright.codegen.indices import Indices
from tilewright.codegen.math import emit_function
from tilewright.ir import Index, Load, Test, operands
from tilewright.te import DOT4, Binary, Cast, Const, Expr, Select, Unary, is_float, parts_of_word


class Values:
    """Writes expressions for one function."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.indices = Indices(frame, self._value)
        self.memory = FunctionMemory(frame, self.indices)
        self._guards: list[Value | None] = [None]  # the last holds where the expression being written is needed
        self._known: list[dict[int, Value]] = [{}]  # for each guard the nodes that are written, by their ids
        self._is_safe: dict[int, bool] = {}

    def emit(self, e: Expr) -> Value:
        """The value of an expression of one statement, at the place that is being written."""
        self._known = [{}]
        self._is_safe = {}
        return self._value(e)

    def emit_operands(self, e: Binary) -> tuple[Value, Value]:
        """The values of both operands of an expression that is a statement's, with the same lanes."""
        self._known = [{}]
        self._is_safe = {}
        return self._alike(self._value(e.a), self._value(e.b))

    def chosen(self, e: Expr) -> Expr:
        """What a select comes to whose condition is known at the place that is being written."""
        while isinstance(e, Select):
            holds = self._holds(e.cond)
            if holds is None:
                break
            e = e.a if holds else e.b
        return e

    def _holds(self, cond: Expr) -> bool | None:
        """Whether a condition holds, where the ranges of loops tell; nothing is written, as no value is needed."""
        if isinstance(cond, Test):
            return self.frame.decide(cond.op, cond.form)
        if not isinstance(cond, Binary) or cond.op not in ("and", "or"):
            return None
        decides = cond.op == "or"
        sides = self._holds(cond.a), self._holds(cond.b)
        return decides if decides in sides else None if None in sides else not decides

    def _value(self, e: Expr) -> Value:
        if isinstance(e, Const):
            return self.frame.builder.const(e.value, compute_dtype(e.dtype))
        for known in self._known:
            value = known.get(id(e))
            if value is not None:
                return value
        if self._guards[-1] is not None and self._reads_inside(e):
            value = self._unguarded(e)
        else:
            value = self._known[-1][id(e)] = self._write(e)
        return value

    def _write(self, e: Expr) -> Value:
        b = self.frame.builder
        if isinstance(e, Load):
            return self.memory.load(e, e.buffer, e.indices, self._guards[-1])
        if isinstance(e, Binary):
            if e.op in ("and", "or"):
                return self._logic(e)
            word = self._word(e)
            if word is not None:
                return word
            x, y = self._alike(self._value(e.a), self._value(e.b))
            if e.op == DOT4:
                return dot4(b, self.frame.target, b.const(0, x.dtype, x.lanes), x, y)
            return binary(b, e.op, x, y)
        if isinstance(e, Select):
            return self._select(e)
        if isinstance(e, Unary):
            return self._unary(e.op, self._value(e.x))
        if isinstance(e, Cast):
            return convert(b, self.frame.target, self._value(e.x), e.dtype)
        if isinstance(e, Index):
            return self.indices.value(e.form)
        assert isinstance(e, Test), f"unexpected expression {e!r}"
        return self._test(e)

    def _word(self, e: Binary) -> Value | None:
        """Four bytes that lie side by side and are put together, by one load; None where it is something else."""
        loads = parts_of_word(e)
        if loads is None or not all(isinstance(load, Load) for load in loads):
            return None
        return self.memory.load_word([load for load in loads if isinstance(load, Load)], self._guards[-1])

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
        x = self._value(e.a)
        decides = "false" if e.op == "and" else "true"
        if x.text == decides:
            return x
        y = self._value(e.b)
        if y.text == decides or x.text in ("true", "false"):
            return y
        if y.text in ("true", "false"):
            return x
        return self.frame.builder.binary(e.op, *self._alike(x, y))

    def _select(self, e: Select) -> Value:
        cond = self._value(e.cond)
        if cond.text in ("true", "false"):
            return self._value(e.a if cond.text == "true" else e.b)
        b = self.frame.builder
        opposite = b.binary("xor", cond, b.const(1, "bool", cond.lanes))
        x, y = self._alike(self._under(cond, e.a), self._under(opposite, e.b))
        if cond.lanes > 1:
            x, y = b.broadcast(x, cond.lanes), b.broadcast(y, cond.lanes)
        return b.select(cond, x, y)

    def _under(self, cond: Value, e: Expr) -> Value:
        """`e` where `cond` holds: loads that may be out of bounds elsewhere are guarded by it."""
        outer = self._guards[-1]
        self._guards.append(cond if outer is None else self.frame.builder.binary("and", *self._alike(outer, cond)))
        self._known.append({})
        value = self._value(e)
        self._guards.pop()
        self._known.pop()
        return value

    def _unguarded(self, e: Expr) -> Value:
        """`e` as it is where no guard is needed, for all places."""
        guards, known = self._guards, self._known
        self._guards, self._known = guards[:1], known[:1]
        value = self._value(e)
        self._guards, self._known = guards, known
        return value

    def _reads_inside(self, e: Expr) -> bool:
        """Whether nothing in `e` can be out of bounds, so that no guard changes it."""
        known = self._is_safe.get(id(e))
        if known is None:
            is_inside = not isinstance(e, Load) or self.memory.is_inside(e.buffer, e.indices)
            known = self._is_safe[id(e)] = is_inside and all(map(self._reads_inside, operands(e)))
        return known
