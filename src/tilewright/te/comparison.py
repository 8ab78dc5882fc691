"""Random inputs for a task, and the comparison of a kernel's outputs with the reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.te.dtype import DTYPES, EPSILON, bfloat16_to_float32, float32_to_bfloat16, is_float, numpy_dtype
from tilewright.te.expr import Cast, Expr, Reduce
from tilewright.te.task import Task
from tilewright.te.tensor import Tensor
from tilewright.te.transform import collect_reads, visit

_LARGEST_INTEGER = 1000


def random_inputs(task: Task, rng: np.random.Generator) -> list[NDArray[Any]]:
    """An array for each input: floats in [-1, 1), small integers of either sign, any bool.

    An integer input that serves as an index stays within the dimensions it indexes.
    """
    limits = _index_limits(task)
    return [_random_array(tensor, limits.get(tensor), rng) for tensor in task.inputs]


def reduction_size(task: Task) -> int:
    """The most elements that one element of any stage is reduced from; 1 without a reduction."""
    bodies = [stage.body for stage in task.stages]
    return max(math.prod(axis.extent for axis in b.axes) if isinstance(b, Reduce) else 1 for b in bodies)


def is_rounded(tensor: Tensor) -> bool:
    """Whether it holds bytes that were floats: where one lies between two of them, either is right."""
    found = False

    def check(e: Expr) -> None:
        nonlocal found
        found = found or (isinstance(e, Cast) and is_float(e.x.dtype) and e.dtype == tensor.dtype)

    if tensor.body is not None and tensor.dtype in ("int8", "uint8"):
        visit(tensor.body, check)
    return found


def assert_matches(
    actual: NDArray[Any],
    expected: NDArray[Any],
    dtype: str,
    reduction_size: int = 1,
    error_growth: float = 1.0,
    rounded: bool = False,
    spread: NDArray[Any] | None = None,
) -> None:
    """Raise AssertionError unless `actual` equals `expected` up to rounding.

    Integers and bools must be equal; those that are `rounded` floats may differ by one. Floats may differ by some units
    in the last place of `dtype`, and absolutely by what rounding in a reduction of that size can add up to, or by
    `error_growth` times all that; NaN equals NaN. With a `spread`, each element may differ by so much more.
    """
    assert actual.shape == expected.shape, f"shape is {actual.shape}, expected {expected.shape}"
    assert actual.dtype == expected.dtype, f"dtype is {actual.dtype}, expected {expected.dtype}"
    a, e = _numbers(actual, dtype), _numbers(expected, dtype)
    if is_float(dtype):
        rtol, atol = (error_growth * tolerance for tolerance in _tolerances(e, dtype, reduction_size))
        wrong = ~np.isclose(a, e, rtol, atol, equal_nan=True)
    else:
        rtol, atol = 0.0, float(rounded)
        wrong = np.abs(a.astype(np.int64) - e.astype(np.int64)) > 1 if rounded else a != e
    if spread is not None:
        allowed = spread + (rtol * np.abs(e) + atol if is_float(dtype) else atol)
        wrong &= ~(difference(actual, expected, dtype) <= allowed)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{np.count_nonzero(wrong)} of {wrong.size} elements of type {dtype} differ; the first at {first}: "
            f"{a[first]}, expected {e[first]} (rtol {rtol:.3g}, atol {atol:.3g})"
        )


def difference(a: NDArray[Any], b: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """How far apart the elements are; infinitely where one of two is NaN, or of two infinities."""
    if not is_float(dtype):
        return np.abs(a.astype(np.int64) - b.astype(np.int64)).astype(np.float64)
    x, y = _numbers(a, dtype), _numbers(b, dtype)
    with np.errstate(invalid="ignore"):
        apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    return np.where(np.isnan(apart), np.inf, apart)


def _tolerances(expected: NDArray[Any], dtype: str, reduction_size: int) -> tuple[float, float]:
    epsilon = EPSILON[dtype]
    finite = expected[np.isfinite(expected)]
    root_mean_square = math.sqrt(float(np.mean(np.square(finite)))) if finite.size else 0.0
    scale = max(1.0, root_mean_square)
    if DTYPES[dtype].bits == 16:
        # They accumulate in float32, so only what is stored is rounded.
        return 4 * epsilon, 4 * epsilon * scale
    return 16 * epsilon, 4 * epsilon * (4 + math.sqrt(reduction_size)) * scale


def _numbers(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    if dtype == "bfloat16":
        return bfloat16_to_float32(array).astype(np.float64)
    return array.astype(np.float64) if is_float(dtype) else array


def _random_array(tensor: Tensor, limit: int | None, rng: np.random.Generator) -> NDArray[Any]:
    kind = DTYPES[tensor.dtype]
    if kind.kind == "float":
        values = rng.uniform(-1.0, 1.0, tensor.shape)
        if tensor.dtype == "bfloat16":
            return float32_to_bfloat16(values)
        return values.astype(numpy_dtype(tensor.dtype))
    if kind.kind == "bool":
        return rng.integers(0, 2, tensor.shape).astype(np.bool_)
    low, high = (0, 2**kind.bits) if kind.kind == "uint" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1))
    low, high = max(low, -_LARGEST_INTEGER), min(high, _LARGEST_INTEGER)
    if limit is not None:
        low, high = 0, min(high, limit)
    return rng.integers(low, high, tensor.shape, dtype=np.int64).astype(numpy_dtype(tensor.dtype))


def _index_limits(task: Task) -> dict[Tensor, int]:
    """For each input that is read in an index, the smallest dimension it indexes."""
    limits: dict[Tensor, int] = {}
    for stage in task.stages:
        assert stage.body is not None
        for read in collect_reads(stage.body):
            for index, extent in zip(read.indices, read.tensor.shape, strict=True):
                for source in collect_reads(index):
                    limits[source.tensor] = min(extent, limits.get(source.tensor, extent))
    return limits
