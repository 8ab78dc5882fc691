"""Losses of classification: the negative log likelihood of the right class, and the cross entropy of a softmax."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import te
from tilewright.operators.precision import wide_dtype, widen
from tilewright.operators.reductions import Reduction
from tilewright.operators.registry import Call, MisfitError, operator
from tilewright.operators.softmax import log_softmax_over
from tilewright.te import Expr, Tensor


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(call: Call) -> Tensor:
    _check_shapes(call)
    return _loss(call, call.tensor(0))


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(call: Call) -> tuple[Tensor, ...]:
    """With the logarithms of the softmax as a second output."""
    scores = call.tensor(0)
    _check_shapes(call)
    logarithms = log_softmax_over(call, scores, Reduction(scores.shape, (1,), keeps_dims=True), scores.dtype)
    return _loss(call, logarithms), logarithms


def _check_shapes(call: Call) -> None:
    scores, target, weight = call.tensor(0), call.tensor(1), call.optional(2)
    if scores.ndim < 2 or (scores.shape[0], *scores.shape[2:]) != target.shape:
        raise MisfitError(f"there are targets of shape {target.shape} for scores of shape {scores.shape}")
    if weight is not None and weight.shape != scores.shape[1:2]:
        raise MisfitError(f"there are weights of shape {weight.shape} for {scores.shape[1]} classes")


def _loss(call: Call, likelihood: Tensor) -> Tensor:
    """What the right classes lack in log likelihood [N, C, ...]: of each element, their sum, or their weighted mean."""
    target, weight = call.tensor(1), call.optional(2)
    ignored: int | None = call.attribute("ignore_index", None)
    reduction = call.attribute("reduction", "mean")
    dtype = wide_dtype(likelihood.dtype)

    def counted(i: Sequence[Expr], value: Expr) -> Expr:
        """`value`, or zero for a class that is ignored."""
        return (
            value if ignored is None else te.select(te.equal(target[tuple(i)], ignored), te.constant(0, dtype), value)
        )

    def weight_of(i: Sequence[Expr]) -> Expr:
        return te.constant(1, dtype) if weight is None else widen(weight[target[tuple(i)]])

    def lack(i: Sequence[Expr]) -> Expr:
        n, *rest = i
        value = -widen(likelihood[(n, target[tuple(i)], *rest)])
        return counted(i, value if weight is None else value * weight_of(i))

    if reduction == "none":
        return te.compute(target.shape, lambda *i: lack(i), call.name("loss"), likelihood.dtype)
    over = [te.reduce_axis(extent, f"k{d}") for d, extent in enumerate(target.shape)]
    total = te.compute((), lambda: te.sum(lack(over), axis=over), call.name("total"))
    if reduction == "sum":
        return te.compute((), lambda: total[()], call.name("loss"), likelihood.dtype)
    number = te.compute((), lambda: te.sum(counted(over, weight_of(over)), axis=over), call.name("number"))
    return te.compute((), lambda: total[()] / number[()], call.name("loss"), likelihood.dtype)
