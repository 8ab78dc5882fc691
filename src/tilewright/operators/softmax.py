"""Softmax and its logarithm, as the stages largest, power, total and quotient, so that rows can stay in the cache."""

from __future__ import annotations

from tilewright import te
from tilewright.operators.matmul import matmul_of, multiply
from tilewright.operators.node import OWN
from tilewright.operators.operands import element
from tilewright.operators.precision import widen
from tilewright.operators.reductions import ALONG_ROWS, Reduction, rows_of
from tilewright.operators.registry import Call, operator
from tilewright.te import Expr, Tensor

ATTENTION = "SoftmaxMatMul"
"""A pass puts this operator, of our own domain, into the place of a Softmax and the MatMul that reads it."""


@operator("Softmax", facts=ALONG_ROWS)
def softmax(call: Call) -> Tensor:
    X, plan = call.tensor(0), rows_of(call)
    return softmax_over(call, X, plan, X.dtype)


@operator("LogSoftmax", facts=ALONG_ROWS)
def log_softmax(call: Call) -> Tensor:
    X, plan = call.tensor(0), rows_of(call)
    return log_softmax_over(call, X, plan, X.dtype)


def softmax_over(call: Call, X: Tensor, plan: Reduction, dtype: str) -> Tensor:
    """exp(x) over the sum of these; the largest element is taken off first, so that nothing overflows."""
    power, total = _powers(call, X, plan)
    return te.compute(X.shape, lambda *i: power[i] / total[plan.result(i)], call.name("softmax"), dtype)


@operator(ATTENTION, domain=OWN)
def softmax_matmul(call: Call) -> Tensor:
    """The softmax of the rows of the first operand times the second: attention, from its scores on.

    Rows are divided by their totals after the product, where they are shorter.
    """
    X, V = call.tensor(0), call.tensor(1)
    plan = Reduction(X.shape, (X.ndim - 1,), keeps_dims=True)
    power, total = _powers(call, X, plan)
    product = matmul_of(call, power, V)
    weighted = multiply(call, product)
    zero = te.constant(0, "int64")
    return te.compute(
        product.shape, lambda *i: weighted[i] / element(total, product.left(i, zero)), call.name("attention"), X.dtype
    )


def _powers(call: Call, X: Tensor, plan: Reduction) -> tuple[Tensor, Tensor]:
    """exp(x) of each element, less the largest of its row, and the sum of these in each row."""
    largest = _largest(call, X, plan)
    power = te.compute(X.shape, lambda *i: te.exp(widen(X[i]) - largest[plan.result(i)]), call.name("power"))
    over = plan.reduce_axes()
    total = te.compute(plan.output_shape, lambda *i: te.sum(power[plan.source(i, over)], axis=over), call.name("total"))
    return power, total


def log_softmax_over(call: Call, X: Tensor, plan: Reduction, dtype: str) -> Tensor:
    """The logarithm of the softmax, which stays finite where the softmax is too small for its type."""
    largest = _largest(call, X, plan)
    over = plan.reduce_axes()

    def powers(*i: Expr) -> Expr:
        return te.sum(te.exp(widen(X[plan.source(i, over)]) - largest[i]), axis=over)

    total = te.compute(plan.output_shape, powers, call.name("total"))
    logarithm = te.compute(plan.output_shape, lambda *i: te.log(total[i]), call.name("logarithm"))

    def logarithm_of(*i: Expr) -> Expr:
        row = plan.result(i)
        return (widen(X[i]) - largest[row]) - logarithm[row]  # their sum would be rounded to the size of the largest

    return te.compute(X.shape, logarithm_of, call.name("log_softmax"), dtype)


def _largest(call: Call, X: Tensor, plan: Reduction) -> Tensor:
    over = plan.reduce_axes()
    return te.compute(
        plan.output_shape, lambda *i: te.max(widen(X[plan.source(i, over)]), axis=over), call.name("largest")
    )
