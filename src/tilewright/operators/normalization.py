"""Normalisations of rows: layer norm, root mean square, and mean and variance over any axes."""

from __future__ import annotations

from tilewright import te
from tilewright.operators.moments import moments, reciprocal_deviation
from tilewright.operators.operands import axes_of, element, own_axis
from tilewright.operators.precision import widen
from tilewright.operators.reductions import Reduction
from tilewright.operators.registry import Call, Facts, NotCompilableError, operator
from tilewright.te import Expr, Tensor

_STASH = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


@operator("LayerNormalization", facts=Facts(axis=-1))
def layer_normalization(call: Call) -> tuple[Tensor, ...]:
    """The rows from `axis` on, centred and scaled; with the mean and the reciprocal deviation where they are wanted."""
    X, scale, bias = call.tensor(0), call.tensor(1), call.optional(2)
    plan = _rows(call, X)
    found = moments(call, lambda i: X[i], plan)
    deviation = reciprocal_deviation(call, found, call.attribute("epsilon", 1e-5))

    def normal(*i: Expr) -> Expr:
        row = plan.result(i)
        value = (widen(X[i]) - found.mean(row)) * deviation[row] * widen(element(scale, i))
        return value if bias is None else value + widen(element(bias, i))

    outputs = [te.compute(X.shape, normal, call.name("normal"), X.dtype)]
    stash = _STASH.get(call.attribute("stash_type", 1))
    if stash is None:
        raise NotCompilableError(f"{call.node.op} has no stash_type {call.attribute('stash_type', 1)}")
    if len(call.node.outputs) > 1:
        outputs.append(te.compute(plan.output_shape, lambda *i: found.mean(i), call.name("mean"), stash))
    if len(call.node.outputs) > 2:
        outputs.append(te.compute(plan.output_shape, lambda *i: deviation[i], call.name("reciprocal"), stash))
    return tuple(outputs)


@operator("RMSNormalization", facts=Facts(axis=-1))
def rms_normalization(call: Call) -> Tensor:
    """The rows from `axis` on, divided by the root of the mean of their squares."""
    X, scale = call.tensor(0), call.tensor(1)
    plan = _rows(call, X)
    over = plan.reduce_axes()
    epsilon = call.attribute("epsilon", 1e-5)

    def square(*i: Expr) -> Expr:
        x = widen(X[plan.source(i, over)])
        return te.sum(x * x, axis=over)

    squares = te.compute(plan.output_shape, square, call.name("squares"))
    deviation = te.compute(
        plan.output_shape, lambda *i: te.rsqrt(squares[i] * (1.0 / plan.num_elements) + epsilon), call.name("deviation")
    )

    def normal(*i: Expr) -> Expr:
        return widen(X[i]) * deviation[plan.result(i)] * widen(element(scale, i))

    return te.compute(X.shape, normal, call.name("normal"), X.dtype)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(call: Call) -> Tensor:
    X = call.tensor(0)
    axes = axes_of(call, call.attribute("axes", [0, 2, 3]), X.ndim)
    plan = Reduction(X.shape, tuple(sorted(axes)), keeps_dims=True)
    found = moments(call, lambda i: X[i], plan)
    deviation = te.compute(plan.output_shape, lambda *i: te.sqrt(found.variance(i)) + 1e-9, call.name("deviation"))

    def normal(*i: Expr) -> Expr:
        row = plan.result(i)
        return (widen(X[i]) - found.mean(row)) / deviation[row]

    return te.compute(X.shape, normal, call.name("normal"), X.dtype)


def _rows(call: Call, X: Tensor) -> Reduction:
    axis = own_axis(call, X.ndim)
    return Reduction(X.shape, tuple(range(axis, X.ndim)), keeps_dims=True)
