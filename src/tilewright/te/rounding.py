"""What rounding may do to the results of a task, found by evaluating it again with noise in the last bits.

Most results are off by about as much as they are rounded. Some are off by far more: the logarithm of a sum that is
nearly zero, or what follows a step, where a float is rounded to a whole number or compared and its last bit decides.
A program that rounds in another order, or by one instruction for a product and a sum, is right there as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.te.comparison import reduction_size
from tilewright.te.dtype import EPSILON, is_float
from tilewright.te.expr import COSTLY_FUNCTIONS, Binary, Cast, Expr, Reduce, Unary
from tilewright.te.task import Task
from tilewright.te.tensor import Tensor

Array = NDArray[Any]

# Where so many values lie exactly on a step they are not rounded, as sums of whole numbers, or what relu makes zero.
_MOST_ON_A_STEP = 0.1
_MOST_GROUPS = 4
_UNITS_OF_AN_OPERATION, _UNITS_OF_A_FUNCTION = 1.0, 4.0
_UNITS_OF_A_SUM = 4.0
# Of float32: products always, and sums unless one operand is far smaller than the other.
_EXACT_IN_FLOAT64: dict[str, np.ufunc] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@dataclass(frozen=True, slots=True)
class Noise:
    """Moves floats by what rounding can be off, or `growth` times that.

    The results of the `stages`; without any, what stands before steps, and the result of each operation. That of the
    other `sign`, 1 or -1, moves all of them to the other side.
    """

    growth: float
    num_summed: int  # elements of the largest sum of the task
    sign: int
    stages: frozenset[Tensor] = frozenset()

    def of_stage(self, stage: Tensor, results: Array) -> Array:
        """The results of a stage as they are stored."""
        if stage not in self.stages:
            return results
        return self._to_either_side(results, _error(results, stage.dtype, _num_summed(stage)))

    def of_operation(self, stage: Tensor, e: Expr, operands: list[Array], values: Array) -> Array:
        """What an operation gives; conversions and the choice of an operand are exact.

        What is summed up is left as it is: next to the sum, its own rounding is nothing.
        """
        is_rounded = isinstance(e, Unary) or (isinstance(e, Binary) and e.op not in ("max", "min"))
        if self.stages or not is_rounded or not is_float(e.dtype) or isinstance(stage.body, Reduce):
            return values
        units = _UNITS_OF_A_FUNCTION if _is_function(e) else _UNITS_OF_AN_OPERATION
        error = np.where(_is_exact(e, operands, values), 0.0, units * _unit(e.dtype) * np.abs(values))
        return self._to_either_side(values, error)

    def before_step(self, e: Expr, operands: list[Array]) -> list[Array]:
        """The operands of `e`; that of a step is moved."""
        if self.stages or not is_step(e):
            return operands
        first, *others = operands
        place = _place_of_step(e, operands)
        if np.mean(first == place) > _MOST_ON_A_STEP:
            return operands
        dtype = _float_before(e).dtype
        error = _error(first, dtype, self.num_summed) + _error(place, dtype, self.num_summed)
        return [_off(first, self.sign * self.growth * error), *others]

    def _to_either_side(self, values: Array, error: Array) -> Array:
        """Some up, some down; the other noise does the opposite."""
        rng = np.random.default_rng(values.size)
        signs = rng.integers(0, 2, values.shape, dtype=np.int8) * np.int8(2) - np.int8(1)
        return _off(values, self.sign * self.growth * signs * error)


def _off(values: Array, error: Array) -> Array:
    """The values so far off; infinities are what they are."""
    return np.where(np.isfinite(values), values + error, values).astype(values.dtype)


def noises(task: Task, growth: float) -> Iterator[Noise]:
    """Noise of all kinds: what it makes of the results, added up, is what rounding can be off by."""
    num_summed = reduction_size(task)
    rounded = [stage for stage in task.stages if is_float(stage.dtype) and _is_rounded_more(stage)]
    groups = [frozenset(rounded[first::_MOST_GROUPS]) for first in range(min(len(rounded), _MOST_GROUPS))]
    for stages in (frozenset[Tensor](), *groups):
        yield from (Noise(growth, num_summed, sign, stages) for sign in (-1, 1))


def is_step(e: Expr) -> bool:
    """Whether it leaps where its first operand, a float, moves a little."""
    if isinstance(e, Unary):
        return e.op in ("floor", "ceil")
    if isinstance(e, Cast):
        return is_float(e.x.dtype) and not is_float(e.dtype)
    return isinstance(e, Binary) and e.op in ("lt", "le", "gt", "ge") and is_float(e.a.dtype)


def _float_before(e: Expr) -> Expr:
    if isinstance(e, Binary):
        return e.a
    assert isinstance(e, Unary | Cast), f"{e!r} is no step"
    return e.x


def _place_of_step(e: Expr, operands: list[Array]) -> Array:
    """Where the nearest step is."""
    if isinstance(e, Binary):
        return operands[1]
    return np.zeros_like(operands[0]) if e.dtype == "bool" else np.rint(operands[0])


def _is_exact(e: Expr, operands: list[Array], values: Array) -> Array:
    """Where the result of an operation is not rounded, such as half of a whole number."""
    if not isinstance(e, Binary) or e.op not in _EXACT_IN_FLOAT64 or e.dtype == "float64":
        return np.asarray(isinstance(e, Unary) and not _is_function(e))
    return np.asarray(_EXACT_IN_FLOAT64[e.op](*(x.astype(np.float64) for x in operands)) == values)


def _is_function(e: Expr) -> bool:
    return isinstance(e, Unary | Binary) and e.op in COSTLY_FUNCTIONS


def _is_rounded_more(stage: Tensor) -> bool:
    """Whether its results are rounded by more than single operations are: by sums, or by a half type."""
    is_sum = isinstance(stage.body, Reduce) and stage.body.op in ("sum", "prod")
    return is_sum or _unit(stage.dtype) < EPSILON[stage.dtype]


def _num_summed(stage: Tensor) -> int:
    return math.prod(axis.extent for axis in stage.body.axes) if isinstance(stage.body, Reduce) else 1


def _unit(dtype: str) -> float:
    """The relative error of one operation; half types compute in float32."""
    return min(EPSILON[dtype], EPSILON["float32"])


def _error(values: Array, dtype: str, num_summed: int) -> Array:
    """How far sums of so many elements may be off, each and next to the others; whole numbers are not rounded."""
    finite = values[np.isfinite(values)]
    if np.array_equal(finite, np.rint(finite)) and np.all(np.abs(finite) < 1 / EPSILON[dtype]):
        return np.zeros_like(values)
    root_mean_square = math.sqrt(float(np.mean(np.square(finite, dtype=np.float64)))) if finite.size else 0.0
    of_all = _UNITS_OF_A_SUM * _unit(dtype) * math.sqrt(num_summed) * root_mean_square if num_summed > 1 else 0.0
    return np.asarray(_UNITS_OF_A_SUM * EPSILON[dtype] * np.abs(values) + of_all)
