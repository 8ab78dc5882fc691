"""What a task computes, by NumPy: the oracle that compiled kernels are checked against.

It shares nothing with the compiler. Every stage is evaluated over its whole index grid at once, in blocks so that
memory stays bounded. Float functions and reductions run in float64, so what differs from a kernel is the kernel's
own rounding. float16 and bfloat16 compute in float32 and are rounded where a stage is stored, and at explicit casts.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ExpressionError, KernelArgumentError
from tilewright.te.dtype import bfloat16_to_float32, float32_to_bfloat16, is_float, numpy_dtype
from tilewright.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary
from tilewright.te.rounding import Noise
from tilewright.te.task import Task
from tilewright.te.tensor import Tensor
from tilewright.te.transform import children, collect_reads

Array: TypeAlias = NDArray[Any]
Block: TypeAlias = tuple[slice, ...]

_BLOCK_POINTS = 1 << 22
_HALF = ("float16", "bfloat16")


def evaluate(task: Task, *arrays: Array, noise: Noise | None = None) -> list[Array]:
    """The outputs of `task` for the given inputs; bfloat16 arrays hold their bits in uint16.

    A read out of bounds raises ExpressionError unless a select leaves it out; an index that depends on data is clamped
    into its tensor, as kernels do. With `noise`, results are off by what rounding may do.

    >>> from tilewright import te
    >>> A = te.placeholder((3,), name="A")
    >>> B = te.compute((3,), lambda i: A[2 - i] * 2.0, name="B")
    >>> evaluate(Task([A], B), np.array([1, 2, 3], np.float32))
    [array([6., 4., 2.], dtype=float32)]
    """
    if len(arrays) != len(task.inputs):
        raise KernelArgumentError(
            f"task {task.name} has {len(task.inputs)} inputs, but {len(arrays)} arrays were given"
        )
    values = {tensor: _load(tensor, array) for tensor, array in zip(task.inputs, arrays, strict=True)}
    with np.errstate(all="ignore"):
        for stage in task.stages:
            values[stage] = _evaluate_stage(stage, values, noise)
        return [_store(values[tensor], tensor.dtype) for tensor in task.outputs]


# --- storage: half types are held as float32 -------------------------------------------------------------------


def _load(tensor: Tensor, array: Array) -> Array:
    if array.shape != tensor.shape or array.dtype != numpy_dtype(tensor.dtype):
        raise KernelArgumentError(
            f"input {tensor.name} must be {numpy_dtype(tensor.dtype)}{list(tensor.shape)}, "
            f"got {array.dtype}{list(array.shape)}"
        )
    if tensor.dtype == "bfloat16":
        return bfloat16_to_float32(array)
    return array.astype(_compute_dtype(tensor.dtype))


def _store(values: Array, dtype: str) -> Array:
    return float32_to_bfloat16(values) if dtype == "bfloat16" else values.astype(numpy_dtype(dtype))


def _compute_dtype(dtype: str) -> np.dtype[np.generic]:
    return np.dtype(np.float32) if dtype in _HALF else numpy_dtype(dtype)


def _round(values: Array, dtype: str) -> Array:
    """`values` as numbers that `dtype` can hold, in the type that it computes in."""
    if dtype == "bfloat16":
        return bfloat16_to_float32(float32_to_bfloat16(values.astype(np.float32)))
    return values.astype(numpy_dtype(dtype)).astype(_compute_dtype(dtype))


# --- one stage -------------------------------------------------------------------------------------------------


def _evaluate_stage(stage: Tensor, arrays: Mapping[Tensor, Array], noise: Noise | None) -> Array:
    body = stage.body
    assert body is not None
    result = np.empty(stage.shape, _compute_dtype(stage.dtype))
    num_inner = math.prod(axis.extent for axis in body.axes) if isinstance(body, Reduce) else 1
    for block in _blocks(stage.shape, max(1, _BLOCK_POINTS // num_inner)):
        if isinstance(body, Reduce):
            result[block] = _reduce_block(stage, body, block, arrays, noise)
        else:
            result[block] = _Grid(stage, arrays, stage.axes, block, noise).evaluate(body)
    return _round(result if noise is None else noise.of_stage(stage, result), stage.dtype)


def _reduce_block(
    stage: Tensor, body: Reduce, spatial: Block, arrays: Mapping[Tensor, Array], noise: Noise | None
) -> Array:
    shape = _sizes(spatial)
    limit = max(1, _BLOCK_POINTS // math.prod(shape))
    total: list[Array] | None = None
    for reduced in _blocks(tuple(axis.extent for axis in body.axes), limit):
        grid = _Grid(stage, arrays, (*stage.axes, *body.axes), (*spatial, *reduced), noise)
        whole = (*shape, *_sizes(reduced))
        values = [np.broadcast_to(grid.evaluate(v), whole).reshape(*shape, -1) for v in body.values]
        part = _reduce(body, values)
        total = part if total is None else _combine(body.op, total, part)
    assert total is not None
    return total[-1]


def _blocks(extents: tuple[int, ...], limit: int) -> Iterator[Block]:
    """Cut a box into blocks of at most `limit` points, in row-major order: the last axes stay whole."""
    steps: list[int] = []
    for extent in reversed(extents):
        steps.append(max(1, min(extent, limit)))
        limit //= extent
    steps.reverse()
    starts = itertools.product(*(range(0, e, step) for e, step in zip(extents, steps, strict=True)))
    for corner in starts:
        yield tuple(slice(a, min(a + step, e)) for a, step, e in zip(corner, steps, extents, strict=True))


def _sizes(block: Block) -> tuple[int, ...]:
    return tuple(s.stop - s.start for s in block)


# --- reductions: over the last dimension, then of two parts ------------------------------------------------------


def _reduce(body: Reduce, values: list[Array]) -> list[Array]:
    if body.op in ("argmax", "argmin"):
        value, index = values
        first = np.expand_dims((np.argmax if body.op == "argmax" else np.argmin)(value, axis=-1), -1)
        return [np.take_along_axis(x, first, axis=-1)[..., 0] for x in (value, index)]
    (value,) = values
    if body.op in ("max", "min"):
        return [_PAIRWISE[body.op].reduce(value, axis=-1)]
    wide = np.dtype(np.float64) if is_float(body.dtype) else value.dtype
    return [_PAIRWISE[body.op].reduce(value, axis=-1, dtype=wide)]


def _combine(op: str, earlier: list[Array], later: list[Array]) -> list[Array]:
    if op in ("argmax", "argmin"):
        old, new = earlier[0], later[0]
        # Strictly better, so that the first of equals stays; NaN beats every number.
        better = (new > old if op == "argmax" else new < old) | ((new != new) & (old == old))
        return [np.where(better, b, a) for a, b in zip(earlier, later, strict=True)]
    return [_PAIRWISE[op](earlier[0], later[0])]


_PAIRWISE: dict[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


# --- expressions over a grid -------------------------------------------------------------------------------------


class _Grid:
    """Evaluates expressions at every point of one block of a stage's axes."""

    def __init__(
        self,
        stage: Tensor,
        arrays: Mapping[Tensor, Array],
        axes: Sequence[Axis],
        block: Block,
        noise: Noise | None,
    ) -> None:
        self._stage = stage
        self._arrays = arrays
        self._noise = noise
        grids = np.ogrid[block] if block else ()
        self._values: dict[Expr, Array] = dict(zip(axes, grids, strict=True))
        self._outside: dict[Expr, Array] = {}

    def evaluate(self, root: Expr) -> Array:
        result = self._value(root)
        if self._outside:
            self._check_reads(root)
        return result

    def _value(self, e: Expr) -> Array:
        if e not in self._values:
            operands = [self._value(x) for x in children(e)]
            self._values[e] = self._moved(self._noise, e, operands) if self._noise else self._applied(e, operands)
        return self._values[e]

    def _moved(self, noise: Noise, e: Expr, operands: list[Array]) -> Array:
        x = noise.before_step(e, operands)
        return noise.of_operation(self._stage, e, x, self._applied(e, x))

    def _applied(self, e: Expr, operands: list[Array]) -> Array:
        return np.asarray(self._apply(e, operands))

    def _apply(self, e: Expr, x: list[Array]) -> Array:
        if isinstance(e, Const):
            return np.asarray(e.value, _compute_dtype(e.dtype))
        if isinstance(e, Unary):
            return _UNARY[e.op](x[0])
        if isinstance(e, Binary):
            return _BINARY[e.op](x[0], x[1])
        if isinstance(e, Select):
            return np.where(x[0], x[1], x[2])
        if isinstance(e, Cast):
            return _round(x[0], e.dtype)
        assert isinstance(e, Read)
        shape = e.tensor.shape
        outside = [
            (value < 0) | (value >= extent)
            for index, value, extent in zip(e.indices, x, shape, strict=True)
            if not collect_reads(index)
        ]
        if any(o.any() for o in outside):
            self._outside[e] = functools.reduce(np.logical_or, outside)
        inside = tuple(np.clip(index, 0, extent - 1) for index, extent in zip(x, shape, strict=True))
        return np.asarray(self._arrays[e.tensor][inside])

    def _check_reads(self, root: Expr) -> None:
        """Raise if a read that left its tensor is needed: no select on every way to the root leaves it out."""
        needed: dict[Expr, Array] = {root: np.asarray(True)}
        # Operands were evaluated before the nodes that use them, so backwards every user comes first.
        for e in reversed(list(self._values)):
            if e not in needed:
                continue
            mask = needed[e]
            if e in self._outside and (mask & self._outside[e]).any():
                raise ExpressionError(
                    f"compute {self._stage.name} reads `{e}` out of bounds; correct the index, "
                    "or the condition of the select that guards it"
                )
            for operand, part in _operand_masks(e, mask, self._values):
                needed[operand] = needed[operand] | part if operand in needed else part


def _operand_masks(e: Expr, mask: Array, values: Mapping[Expr, Array]) -> list[tuple[Expr, Array]]:
    if isinstance(e, Select):
        taken = values[e.cond]
        return [(e.cond, mask), (e.a, mask & taken), (e.b, mask & ~taken)]
    return [(x, mask) for x in children(e)]


def _in_float64(fn: Callable[..., Array]) -> Callable[..., Array]:
    def rounded(*x: Array) -> Array:
        return np.asarray(fn(*(v.astype(np.float64) for v in x))).astype(x[0].dtype)

    return rounded


def _sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _dot4(a: Array, b: Array) -> Array:
    """Bytes as the machine has them in a word, the first lowest; sums wrap around as those of int32 do."""
    total: Array = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.int32)
    for shift in (0, 8, 16, 24):
        unsigned, signed = (a >> shift) & 255, (b >> shift).astype(np.int8).astype(np.int32)
        total = total + unsigned * signed
    return total


_erf = np.frompyfunc(math.erf, 1, 1)

_UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "not": np.logical_not,
    "floor": np.floor,
    "ceil": np.ceil,
    "exp": _in_float64(np.exp),
    "log": _in_float64(np.log),
    "sqrt": _in_float64(np.sqrt),
    "rsqrt": _in_float64(lambda x: 1.0 / np.sqrt(x)),
    "tanh": _in_float64(np.tanh),
    "erf": _in_float64(_erf),
    "sigmoid": _in_float64(_sigmoid),
    "sin": _in_float64(np.sin),
    "cos": _in_float64(np.cos),
    "tan": _in_float64(np.tan),
    "asin": _in_float64(np.arcsin),
    "acos": _in_float64(np.arccos),
    "atan": _in_float64(np.arctan),
    "sinh": _in_float64(np.sinh),
    "cosh": _in_float64(np.cosh),
    "asinh": _in_float64(np.arcsinh),
    "acosh": _in_float64(np.arccosh),
    "atanh": _in_float64(np.arctanh),
}

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": _in_float64(np.power),
    "max": np.maximum,
    "min": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "dot4": _dot4,
}
