"""Scatters, turned round: each element of the result looks for the updates that go to it.

That costs as many comparisons as there are updates that could go to an element, so large ones are not compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilewright import te
from tilewright.operators.indexing import check_indices, from_front
from tilewright.operators.operands import own_axis, replaced
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError, operator
from tilewright.te import Axis, Expr, Tensor

_MAX_COMPARISONS = 1 << 24

_COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": te.maximum,
    "min": te.minimum,
}
_REDUCE: dict[str, Callable[[Expr, Sequence[Axis]], Expr]] = {
    "add": te.sum,
    "mul": te.prod,
    "max": te.max,
    "min": te.min,
}


def _reduction_of(call: Call) -> str:
    reduction = call.attribute("reduction", "none")
    if reduction != "none" and reduction not in _REDUCE:
        raise NotCompilableError(f"{call.node.op} has no reduction {reduction}")
    return reduction


def _check_cost(call: Call, num_elements: int, num_updates: int) -> None:
    if num_elements * num_updates > _MAX_COMPARISONS:
        raise NotCompilableError(
            f"{call.node.op} would compare {num_elements} elements with {num_updates} updates each; "
            f"up to {_MAX_COMPARISONS} comparisons are compiled"
        )


def _neutral(reduction: str, dtype: str) -> Expr:
    """What changes nothing in a reduction."""
    if reduction in ("add", "mul"):
        return te.constant(int(reduction == "mul"), dtype)
    kind = te.DTYPES[dtype]
    if kind.kind == "float":
        return te.constant(-math.inf if reduction == "max" else math.inf, dtype)
    low, high = (0, 2**kind.bits - 1) if kind.kind == "uint" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
    return te.constant(low if reduction == "max" else high, dtype)


def _all(conditions: Sequence[Expr]) -> Expr:
    return te.logical_and(te.constant(True, "bool"), *conditions)


@operator("ScatterElements", "Scatter", facts=Facts(axis=0))
def scatter_elements(call: Call) -> Tensor:
    """Updates written at indices along an axis, or combined with what stands there."""
    X, I, updates = (call.tensor(p) for p in range(3))  # noqa: E741
    axis = own_axis(call, X.ndim)
    reduction = _reduction_of(call)
    is_inside = I.ndim == X.ndim and all(I.shape[d] <= X.shape[d] for d in range(X.ndim) if d != axis)
    if I.shape != updates.shape or not is_inside:
        raise MisfitError(f"{call.node.op} has indices {I.shape} and updates {updates.shape} for {X.shape}")
    check_indices(call, 1, X.shape[axis : axis + 1])
    _check_cost(call, math.prod(X.shape), I.shape[axis])
    # Along the other axes the updates may end before the elements do.
    reached = tuple(extent if d == axis else I.shape[d] for d, extent in enumerate(X.shape))
    k = te.reduce_axis(I.shape[axis], "k")

    def is_hit(i: Sequence[Expr]) -> Expr:
        return te.equal(from_front(I[replaced(i, axis, k)], X.shape[axis]), i[axis])

    def is_reached(i: Sequence[Expr]) -> Expr:
        return _all([i[d] < extent for d, extent in enumerate(reached) if extent < X.shape[d]])

    if reduction == "none":
        last = te.compute(reached, lambda *i: _last_number(is_hit(i), [k]), call.name("last"))

        def written(i: Sequence[Expr]) -> Expr:
            return te.select(
                last[tuple(i)] >= 0, updates[replaced(i, axis, te.maximum(last[tuple(i)], 0))], X[tuple(i)]
            )

        return te.compute(X.shape, lambda *i: te.select(is_reached(i), written(i), X[i]), call.name())
    neutral = _neutral(reduction, X.dtype)
    total = te.compute(
        reached,
        lambda *i: _REDUCE[reduction](te.select(is_hit(i), updates[replaced(i, axis, k)], neutral), [k]),
        call.name("total"),
    )
    combine = _COMBINE[reduction]
    return te.compute(X.shape, lambda *i: te.select(is_reached(i), combine(X[i], total[i]), X[i]), call.name())


def _last_number(is_hit: Expr, axes: Sequence[Axis]) -> Expr:
    """The largest row-major number of the updates that hit; -1 where none does."""
    number: Expr = axes[0]
    for axis in axes[1:]:
        number = number * axis.extent + axis
    return te.max(te.select(is_hit, number, te.constant(-1, "int64")), axis=axes)


@operator("ScatterND")
def scatter_nd(call: Call) -> Tensor:
    """Slices written at tuples of indices, or combined with what stands there."""
    X, I, updates = (call.tensor(p) for p in range(3))  # noqa: E741
    reduction = _reduction_of(call)
    if I.ndim < 2 or I.shape[-1] > X.ndim or updates.shape != (*I.shape[:-1], *X.shape[I.shape[-1] :]):
        raise MisfitError(f"ScatterND has indices {I.shape} and updates {updates.shape} for {X.shape}")
    *outer, depth = I.shape
    check_indices(call, 1, X.shape[:depth])
    axes = [te.reduce_axis(extent, f"k{d}") for d, extent in enumerate(outer)]

    def is_hit(i: Sequence[Expr]) -> Expr:
        return _all([te.equal(from_front(I[(*axes, d)], X.shape[d]), i[d]) for d in range(depth)])

    if reduction == "none":
        _check_cost(call, math.prod(X.shape[:depth]), math.prod(outer))
        last = te.compute(X.shape[:depth], lambda *i: _last_number(is_hit(i), axes), call.name("last"))
        return te.compute(X.shape, lambda *i: _written(X, updates, last, i), call.name())
    _check_cost(call, math.prod(X.shape), math.prod(outer))
    neutral = _neutral(reduction, X.dtype)
    total = te.compute(
        X.shape,
        lambda *i: _REDUCE[reduction](te.select(is_hit(i), updates[(*axes, *i[depth:])], neutral), axes),
        call.name("total"),
    )
    return te.compute(X.shape, lambda *i: _COMBINE[reduction](X[i], total[i]), call.name())


def _written(X: Tensor, updates: Tensor, last: Tensor, i: Sequence[Expr]) -> Expr:
    """An element of the update of that row-major number, or of X where that is -1."""
    number = last[tuple(i[: last.ndim])]
    rest = te.maximum(number, 0)
    place: list[Expr] = []
    for extent in reversed(updates.shape[: updates.ndim - (X.ndim - last.ndim)]):
        place.insert(0, rest % extent)
        rest = rest // extent
    return te.select(number >= 0, updates[(*place, *i[last.ndim :])], X[tuple(i)])
