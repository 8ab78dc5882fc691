"""Reductions over axes: sums, norms, extremes, the places of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from tilewright import te
from tilewright.operators.elementwise import absolute
from tilewright.operators.node import Node
from tilewright.operators.operands import axis_of, known_integers, own_axis
from tilewright.operators.precision import widen
from tilewright.operators.registry import Call, Facts, operator
from tilewright.te import Axis, Expr, Tensor


@dataclass(frozen=True, slots=True)
class Reduction:
    """Which axes of a tensor are reduced, and whether they stay as axes of extent 1."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keeps_dims: bool

    @property
    def output_shape(self) -> tuple[int, ...]:
        kept = self.keeps_dims
        return tuple(1 if d in self.axes else n for d, n in enumerate(self.shape) if kept or d not in self.axes)

    @property
    def num_elements(self) -> int:
        """How many elements one is reduced from."""
        return math.prod(self.shape[d] for d in self.axes)

    def reduce_axes(self) -> list[Axis]:
        """New reduce axes, one for each axis."""
        return [te.reduce_axis(self.shape[d], f"k{d}") for d in self.axes]

    def source(self, indices: Sequence[Expr], reduced: Sequence[Expr]) -> tuple[Expr, ...]:
        """Where an element of the output reads its operand."""
        kept = iter([x for d, x in enumerate(indices) if d not in self.axes] if self.keeps_dims else indices)
        inner = iter(reduced)
        return tuple(next(inner) if d in self.axes else next(kept) for d in range(len(self.shape)))

    def result(self, indices: Sequence[Expr]) -> tuple[te.ExprLike, ...]:
        """Where an element of the operand's shape finds what it was reduced to, if the axes stay."""
        return tuple(0 if d in self.axes else x for d, x in enumerate(indices))


def reduced(
    call: Call, X: Tensor, plan: Reduction, op: Callable[..., Expr], before: Callable[[Expr], Expr], hint: str = ""
) -> Tensor:
    """The reduction `op` of `before` of the elements; without axes to reduce, `before` of each."""
    if not plan.axes:
        return te.compute(X.shape, lambda *i: before(X[i]), call.name(hint))
    axes = plan.reduce_axes()
    return te.compute(plan.output_shape, lambda *i: op(before(X[plan.source(i, axes)]), axis=axes), call.name(hint))


def reduced_axes(node: Node, ndim: int, operand: Sequence[int] | None) -> Sequence[int]:
    """The axes that a node reduces, as it counts them: those of its second operand, in older opsets of an attribute.

    Where it names none, it reduces all.
    """
    given = operand or cast("Sequence[int] | None", node.attributes.get("axes"))
    if given:
        return given
    return () if node.attributes.get("noop_with_empty_axes", 0) else range(ndim)


def plan_of(call: Call) -> Reduction:
    """The reduction that a node asks for."""
    X = call.tensor(0)
    chosen = {axis_of(call, axis, X.ndim) for axis in reduced_axes(call.node, X.ndim, known_integers(call, 1))}
    return Reduction(X.shape, tuple(sorted(chosen)), bool(call.attribute("keepdims", 1)))


def _reduction(
    op: Callable[..., Expr],
    before: Callable[[Expr], Expr] = lambda x: x,
    after: Callable[[Expr], Expr] | None = None,
) -> Callable[[Call], Tensor]:
    """The lowering of `after` of the reduction `op` of `before` of the elements."""

    def lower(call: Call) -> Tensor:
        X = call.tensor(0)
        total = reduced(call, X, plan_of(call), op, before)
        if after is None:
            return total
        return te.compute(total.shape, lambda *i: te.cast(after(total[i]), X.dtype), call.name())

    return lower


def _square(x: Expr) -> Expr:
    return x * x


def _as_float(x: Expr) -> Expr:
    """Integers as floats, so that their squares stay what they are."""
    return widen(x) if te.is_float(x.dtype) else te.cast(x, "float64")


_REDUCTIONS = {
    "ReduceSum": _reduction(te.sum),
    "ReduceProd": _reduction(te.prod),
    "ReduceMax": _reduction(te.max),
    "ReduceMin": _reduction(te.min),
    "ReduceL1": _reduction(te.sum, absolute),
    "ReduceL2": _reduction(te.sum, lambda x: _square(_as_float(x)), te.sqrt),
    "ReduceSumSquare": _reduction(te.sum, _square),
    "ReduceLogSum": _reduction(te.sum, widen, te.log),
}

for _name, _lowering in _REDUCTIONS.items():
    operator(_name, facts=Facts(reduces=True))(_lowering)


@operator("ReduceMean", facts=Facts(reduces=True))
def reduce_mean(call: Call) -> Tensor:
    """The mean; of integers rounded towards zero."""
    X, plan = call.tensor(0), plan_of(call)
    total = reduced(call, X, plan, te.sum, widen, "total")
    number = float(plan.num_elements)

    def mean(x: Expr) -> Expr:
        return te.cast(_as_float(x) / number, X.dtype)

    return te.compute(total.shape, lambda *i: mean(total[i]), call.name())


@operator("ReduceLogSumExp", facts=Facts(reduces=True))
def reduce_log_sum_exp(call: Call) -> Tensor:
    """log(sum(exp(x))); the largest finite element is taken off first, so that nothing overflows."""
    X, plan = call.tensor(0), plan_of(call)
    largest = reduced(call, X, plan, te.max, lambda x: x, "largest")
    axes = plan.reduce_axes()

    def shift(i: Sequence[Expr]) -> Expr:
        found = largest[tuple(i)]
        return te.select(te.abs(found) < math.inf, found, te.constant(0, X.dtype))

    def power(*i: Expr) -> Expr:
        value = te.exp(widen(X[plan.source(i, axes)]) - widen(shift(i)))
        return te.sum(value, axis=axes) if axes else value

    total = te.compute(largest.shape, power, call.name("total"))
    return te.compute(total.shape, lambda *i: te.cast(te.log(total[i]) + shift(i), X.dtype), call.name())


@operator("ArgMax", "ArgMin", facts=Facts(axis=0))
def arg_extreme(call: Call) -> Tensor:
    """The place of the largest or smallest element along an axis: the first of equals, or the last if asked for."""
    X = call.tensor(0)
    axis = own_axis(call, X.ndim)
    plan = Reduction(X.shape, (axis,), bool(call.attribute("keepdims", 1)))
    return arg_reduced(call, X, plan, bool(call.attribute("select_last_index", 0)))


def arg_reduced(call: Call, X: Tensor, plan: Reduction, is_last: bool = False) -> Tensor:
    """The places along the one axis of `plan`. The last of equals is the first one from the end."""
    op = te.argmin if call.node.op == "ArgMin" else te.argmax
    (k,) = plan.reduce_axes()
    end = k.extent - 1
    if not is_last:
        return te.compute(plan.output_shape, lambda *i: op(X[plan.source(i, [k])], axis=k), call.name())
    from_end = te.compute(plan.output_shape, lambda *i: op(X[plan.source(i, [end - k])], axis=k), call.name("from_end"))
    return te.compute(from_end.shape, lambda *i: end - from_end[i], call.name())


def _rows_axis(node: Node) -> int:
    return -1 if node.opset >= 13 else 1


ALONG_ROWS = Facts(axis=_rows_axis)
"""What is known of Softmax and its kin."""


def rows_of(call: Call) -> Reduction:
    """Along one axis; before opset 13 along all axes from it on, as if they were one."""
    X = call.tensor(0)
    axis = own_axis(call, X.ndim)
    return Reduction(X.shape, tuple(range(axis, X.ndim)) if call.node.opset < 13 else (axis,), keeps_dims=True)


@operator("Hardmax", facts=ALONG_ROWS)
def hardmax(call: Call) -> Tensor:
    """1 at the first largest element along an axis, 0 elsewhere; before opset 13 along all axes from it on."""
    X = call.tensor(0)
    one, zero = te.constant(1, X.dtype), te.constant(0, X.dtype)
    plan = rows_of(call)
    inner = plan.reduce_axes()
    place = te.compute(
        plan.output_shape, lambda *i: te.argmax(X[plan.source(i, inner)], axis=inner), call.name("place")
    )

    def choose(*i: Expr) -> Expr:
        number: Expr = i[plan.axes[0]]
        for d in plan.axes[1:]:
            number = number * X.shape[d] + i[d]
        return te.select(te.equal(place[plan.result(i)], number), one, zero)

    return te.compute(X.shape, choose, call.name())


@operator("LpNormalization", facts=Facts(axis=-1))
def lp_normalization(call: Call) -> Tensor:
    """Elements divided by the 1-norm or the 2-norm along an axis; zero where that is zero."""
    X = call.tensor(0)
    plan = Reduction(X.shape, (own_axis(call, X.ndim),), True)
    is_first = call.attribute("p", 2) == 1
    size = absolute if is_first else _square
    total = reduced(call, X, plan, te.sum, lambda x: size(widen(x)), "total")

    def divided(*i: Expr) -> Expr:
        found = total[plan.result(i)]
        length = found if is_first else te.sqrt(found)
        return te.cast(te.select(te.equal(length, 0.0), te.constant(0, length.dtype), X[i] / length), X.dtype)

    return te.compute(X.shape, divided, call.name())
