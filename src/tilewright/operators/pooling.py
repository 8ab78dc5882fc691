"""Pools: the largest element, the mean or the norm of each window, or of each whole image.

A small window is written out, element by element: the loops that remain run along the channels, in vectors, where a
reduction would have its short loops innermost.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

from tilewright import te
from tilewright.operators.layout import Layout, spatial_operator
from tilewright.operators.precision import widen
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError
from tilewright.operators.window import Window, pad_windows, windows
from tilewright.te import DTYPES, Expr, Tensor

_MAX_WRITTEN_OUT = 128

Finish: TypeAlias = Callable[[Expr, Sequence[Expr]], Expr]
"""What is done to the result of a window, given with its spatial position."""


@spatial_operator("MaxPool", Facts(prefers_channels_last=True, checks_shapes=True))
def max_pool(call: Call, layout: Layout) -> Tensor | tuple[Tensor, ...]:
    X = call.tensor(0)
    dimensions = _pool_windows(call, layout, X)
    P = pad_windows(call, X, layout, dimensions, te.constant(_lowest(X.dtype), X.dtype))
    largest = _pool(call, P, layout, dimensions, "max", lambda x: x, None)
    if len(call.node.outputs) < 2 or not call.node.outputs[1]:
        return largest
    return largest, _indices(call, P, layout, dimensions)


@spatial_operator("AveragePool", Facts(prefers_channels_last=True, checks_shapes=True))
def average_pool(call: Call, layout: Layout) -> Tensor:
    X = call.tensor(0)
    dimensions = _pool_windows(call, layout, X)
    P = pad_windows(call, X, layout, dimensions)
    is_padding_counted = bool(call.attribute("count_include_pad", 0))

    def mean(total: Expr, outputs: Sequence[Expr]) -> Expr:
        number, factors = 1, []
        for w, y in zip(dimensions, outputs, strict=True):
            count = _num_elements(w, y, is_padding_counted)
            if isinstance(count, int):
                number *= count
            else:
                factors.append(count)
        if not factors:
            return total * (1.0 / number)
        # A window that meets no element at all has the mean 0.
        return total / te.cast(te.maximum(reduce(operator.mul, factors) * number, 1), total.dtype)

    return _pool(call, P, layout, dimensions, "sum", lambda x: x, mean)


@spatial_operator("LpPool", Facts(prefers_channels_last=True, checks_shapes=True))
def lp_pool(call: Call, layout: Layout) -> Tensor:
    X = call.tensor(0)
    dimensions = _pool_windows(call, layout, X)
    P = pad_windows(call, X, layout, dimensions)
    power, root = _norm(call.attribute("p", 2))
    return _pool(call, P, layout, dimensions, "sum", power, root)


@spatial_operator("GlobalMaxPool", Facts(prefers_channels_last=True))
def global_max_pool(call: Call, layout: Layout) -> Tensor:
    X = call.tensor(0)
    return _pool(call, X, layout, _whole(X, layout), "max", lambda x: x, None)


@spatial_operator("GlobalAveragePool", Facts(prefers_channels_last=True))
def global_average_pool(call: Call, layout: Layout) -> Tensor:
    X = call.tensor(0)
    number = math.prod(layout.spatial(X.shape))
    return _pool(call, X, layout, _whole(X, layout), "sum", lambda x: x, lambda total, _: total * (1.0 / number))


@spatial_operator("GlobalLpPool", Facts(prefers_channels_last=True))
def global_lp_pool(call: Call, layout: Layout) -> Tensor:
    X = call.tensor(0)
    power, root = _norm(call.attribute("p", 2))
    return _pool(call, X, layout, _whole(X, layout), "sum", power, root)


def _pool_windows(call: Call, layout: Layout, X: Tensor) -> tuple[Window, ...]:
    kernel: Sequence[int] = call.attribute("kernel_shape", ())
    sizes = layout.spatial(X.shape)
    if len(kernel) != len(sizes):
        raise NotCompilableError(f"{call.node.op} has a kernel_shape of {len(kernel)} for {len(sizes)} dimensions")
    return windows(call, sizes, kernel, may_exceed=True)


def _whole(X: Tensor, layout: Layout) -> list[Window]:
    """One window over each dimension."""
    return [Window(size, size, 1, 1, 0, 0, 1) for size in layout.spatial(X.shape)]


def _lowest(dtype: str) -> float:
    kind = DTYPES[dtype]
    return -math.inf if kind.kind == "float" else 0 if kind.kind == "uint" else -(2 ** (kind.bits - 1))


def _norm(p: int) -> tuple[Callable[[Expr], Expr], Finish]:
    """What is summed for a p-norm, and what is done with the sum."""
    if p < 1:
        raise MisfitError(f"its p is {p}, but must be 1 at least")
    if p == 1:
        return te.abs, lambda total, _: total
    if p == 2:
        return lambda x: x * x, lambda total, _: te.sqrt(total)
    return lambda x: te.pow(te.abs(x), float(p)), lambda total, _: te.pow(total, 1.0 / p)


def _num_elements(w: Window, output: Expr, is_padding_counted: bool) -> int | Expr:
    """How many elements of a window lie in the dimension, or in it and its padding; a number where all have as many."""
    low, high = (0, w.size + w.before + w.after) if is_padding_counted else (w.before, w.before + w.size)
    last_start = (w.output - 1) * w.stride
    if low <= 0 and last_start + w.reach <= high:
        return w.kernel
    start = output * w.stride
    last = te.minimum((high - 1 - start) // w.dilation, w.kernel - 1)
    return last + 1 - te.maximum((low - start + w.dilation - 1) // w.dilation, 0)


def _pool(
    call: Call,
    P: Tensor,
    layout: Layout,
    dimensions: Sequence[Window],
    combine: str,
    element: Callable[[Expr], Expr],
    finish: Finish | None,
) -> Tensor:
    """`combine` ("sum" or "max") of `element` over each window of the padded data, and `finish` of that."""
    batch, _, channels = layout.split(P.shape)
    shape = layout.join(batch, [w.output for w in dimensions], *channels)

    def read(i: Sequence[Expr], taps: Sequence[Expr]) -> Expr:
        n, outputs, c = layout.split(i)
        positions = [w.position(y, r) for w, y, r in zip(dimensions, outputs, taps, strict=True)]
        x = P[layout.join(n, positions, *c)]
        return element(x if combine == "max" else widen(x))

    def done(value: Expr, i: Sequence[Expr]) -> Expr:
        return value if finish is None else finish(value, layout.spatial(i))

    if _is_written_out(layout, dimensions):
        every = list(itertools.product(*([te.constant(r, "int64") for r in range(w.kernel)] for w in dimensions)))
        both: Callable[[Expr, Expr], Expr] = te.maximum if combine == "max" else operator.add
        return te.compute(
            shape, lambda *i: done(reduce(both, (read(i, taps) for taps in every)), i), call.name("pool"), P.dtype
        )
    over = [te.reduce_axis(w.kernel, f"r{d}") for d, w in enumerate(dimensions)]
    pooled = te.compute(shape, lambda *i: te.reduce(combine, (read(i, over),), over), call.name("pooled"))
    if finish is None and pooled.dtype == P.dtype:
        return pooled
    return te.compute(shape, lambda *i: done(pooled[i], i), call.name("pool"), P.dtype)


def _is_written_out(layout: Layout, dimensions: Sequence[Window]) -> bool:
    """Whether windows are small; with channels first, a window over the whole image has the only long axes inside."""
    is_whole = all(w.output == 1 for w in dimensions)
    is_small = math.prod(w.kernel for w in dimensions) <= _MAX_WRITTEN_OUT
    return is_small and (layout.is_channels_last or not is_whole)


def _indices(call: Call, P: Tensor, layout: Layout, dimensions: Sequence[Window]) -> Tensor:
    """Where the largest elements stand: their place in the input with channels first, as one number."""
    batch, _, (num_channels,) = layout.split(P.shape)
    shape = layout.join(batch, [w.output for w in dimensions], num_channels)
    over = [te.reduce_axis(w.kernel, f"r{d}") for d, w in enumerate(dimensions)]

    def largest(*i: Expr) -> Expr:
        n, outputs, c = layout.split(i)
        positions = [w.position(y, r) for w, y, r in zip(dimensions, outputs, over, strict=True)]
        return te.argmax(P[layout.join(n, positions, *c)], axis=over)

    tap = te.compute(shape, largest, call.name("tap"))
    is_column_major = bool(call.attribute("storage_order", 0))

    def place(*i: Expr) -> Expr:
        n, outputs, (c,) = layout.split(i)
        taps, rest = [], tap[i]
        for w in reversed(dimensions):
            taps.append(rest % w.kernel)
            rest = rest // w.kernel
        positions = [
            (w.size, _inside(w, w.position(y, r))) for w, y, r in zip(dimensions, outputs, reversed(taps), strict=True)
        ]
        within: Expr = te.constant(0, "int64")
        for size, position in reversed(positions) if is_column_major else positions:
            within = within * size + position
        return (n * num_channels + c) * math.prod(w.size for w in dimensions) + within

    return te.compute(shape, place, call.name("indices"))


def _inside(w: Window, padded_position: Expr) -> Expr:
    """A position in the input. One before it means that all elements are as low as the padding: the first is meant."""
    position = padded_position - w.before
    return te.select(position < 0, position % w.dilation, position)
