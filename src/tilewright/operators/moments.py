"""Mean and variance as stages: the sum, the sum of squared distances from the mean, and the reciprocal deviation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright import te
from tilewright.operators.precision import widen
from tilewright.operators.reductions import Reduction
from tilewright.operators.registry import Call
from tilewright.te import Expr, ExprLike, Tensor


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the reduced axes of a plan that keeps them as axes of extent 1.

    They are multiplied by 1 / number where they are read: a product costs nothing there, unlike a stage or a division.
    """

    total: Tensor
    squares: Tensor
    number: int

    def mean(self, indices: Sequence[ExprLike]) -> Expr:
        return self.total[tuple(indices)] * (1.0 / self.number)

    def variance(self, indices: Sequence[ExprLike]) -> Expr:
        return self.squares[tuple(indices)] * (1.0 / self.number)


def moments(call: Call, read: Callable[[tuple[Expr, ...]], Expr], plan: Reduction) -> Moments:
    """Mean and variance of the elements that `read` gives. Two passes: a difference of large squares would cancel."""
    over = plan.reduce_axes()
    total = te.compute(
        plan.output_shape, lambda *i: te.sum(widen(read(plan.source(i, over))), axis=over), call.name("total")
    )
    again = plan.reduce_axes()
    number = plan.num_elements

    def square(*i: Expr) -> Expr:
        distance = widen(read(plan.source(i, again))) - total[i] * (1.0 / number)
        return te.sum(distance * distance, axis=again)

    return Moments(total, te.compute(plan.output_shape, square, call.name("squares")), number)


def reciprocal_deviation(call: Call, found: Moments, epsilon: float) -> Tensor:
    """1 / sqrt(variance + epsilon)."""
    shape = found.squares.shape
    return te.compute(shape, lambda *i: te.rsqrt(found.variance(i) + epsilon), call.name("deviation"))
