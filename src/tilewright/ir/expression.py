"""From the expressions of `te` to those of the loop nest: reads become loads, index arithmetic linear forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.nest import Index, Load, Test
from tilewright.te import COMPARISONS, Binary, Cast, Const, Expr, Read, Select, Unary, Var
from tilewright.te.index import FromMemory, Interval, Linear, LinearForms, clamped, may_wrap, of_atom

if TYPE_CHECKING:
    from tilewright.ir.lower import NestBuilder


class ExpressionLowering:
    """Lowers the expressions of one stage; `axis_values` are its axes as linear forms of the leaf loops."""

    def __init__(self, builder: NestBuilder, axis_values: dict[Var, Linear]) -> None:
        self.builder = builder
        self.axis_values = axis_values
        self.forms = LinearForms(self._value, builder.ranges)
        self._memo: dict[int, tuple[Expr, Expr]] = {}

    def lower(self, e: Expr) -> Expr:
        known = self._memo.get(id(e))
        if known is None:
            known = self._memo[id(e)] = (e, self._lower(e))  # holding e keeps its id from being reused
        return known[1]

    def _lower(self, e: Expr) -> Expr:
        if isinstance(e, Const):
            return e
        if isinstance(e, Read):
            return self._load(e)
        if e.dtype == "int64":
            form = self.forms.of(e)
            if form is not None:
                return Index("int64", form)
        if isinstance(e, Binary):
            test = self._test(e)
            return test if test is not None else Binary(e.dtype, e.op, self.lower(e.a), self.lower(e.b))
        if isinstance(e, Unary):
            return Unary(e.dtype, e.op, self.lower(e.x))
        if isinstance(e, Cast):
            return Cast(e.dtype, self.lower(e.x))
        assert isinstance(e, Select), f"unexpected expression {e!r}"
        return Select(e.dtype, self.lower(e.cond), self.lower(e.a), self.lower(e.b))

    def _value(self, var: Var) -> Linear:
        value = self.axis_values.get(var)
        return self.builder.linear(var) if value is None else value

    def _load(self, read: Read) -> Load:
        name = read.tensor.name
        buffer = self.builder.buffers[name]
        indices = [self._index(index, dim) for index, dim in zip(read.indices, read.tensor.shape, strict=True)]
        bases = self.builder.bases.get(name)
        if bases is not None:
            indices = [index - base for index, base in zip(indices, bases, strict=True)]
        return Load(buffer.dtype, buffer, tuple(indices))

    def _index(self, e: Expr, dim: int) -> Linear:
        """The index; one that is read from memory is clamped, so that no data can make the kernel leave the tensor."""
        form = self.forms.of(e)
        if form is not None:
            return form
        return clamped(of_atom(FromMemory(self.lower(e))), Interval(0, dim - 1), self.builder.ranges)

    def _test(self, e: Binary) -> Expr | None:
        if e.op not in COMPARISONS or e.a.dtype != "int64":
            return None
        a, b = self.forms.of(e.a), self.forms.of(e.b)
        if a is None or b is None:
            return None
        if e.op in ("ge", "gt"):
            a, b = b, a  # a >= b is b <= a
        is_equality = e.op in ("eq", "ne")
        form = a - b if is_equality else b - a + (-1 if e.op in ("lt", "gt") else 0)
        if may_wrap(form, self.builder.ranges):
            return None
        return Test("bool", e.op if is_equality else "ge", form)
