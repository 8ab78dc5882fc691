"""Operators whose elements depend on shapes and attributes alone: shapes, ranges, constants, unit matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright import te
from tilewright.operators.elementwise import element_type
from tilewright.operators.operands import check_not_empty, known_number, required_integers
from tilewright.operators.registry import Call, Facts, NotCompilableError, operator
from tilewright.te import Expr, Tensor


@operator("Shape")
def shape(call: Call) -> Tensor:
    """The shape of the operand, or a part of it since opset 15."""
    extents = call.tensor(0).shape
    part = extents[call.attribute("start", 0) : call.attribute("end", len(extents))]
    check_not_empty(call, (len(part),))
    return te.compute((len(part),), lambda i: _chosen(part, i), call.name())


def _chosen(numbers: Sequence[int], index: Expr) -> Expr:
    """The number at a place of a short list."""
    result: Expr = te.constant(numbers[-1], "int64")
    for place in reversed(range(len(numbers) - 1)):
        result = te.select(te.equal(index, place), te.constant(numbers[place], "int64"), result)
    return result


@operator("Size")
def size(call: Call) -> Tensor:
    """How many elements the operand has."""
    number = math.prod(call.tensor(0).shape)
    return te.compute((), lambda: te.constant(number, "int64"), call.name())


@operator("ConstantOfShape")
def constant_of_shape(call: Call) -> Tensor:
    """A tensor of one number; by default of 0.0."""
    extents = check_not_empty(call, required_integers(call, 0))
    value: npt.NDArray[np.generic] = call.attribute("value", np.zeros(1, np.float32))
    if value.dtype.name not in te.DTYPES:
        raise NotCompilableError(f"ConstantOfShape gives {value.dtype.name}, which kernels do not know")
    number = te.constant(value.reshape(-1)[0].item(), value.dtype.name)
    return te.compute(extents, lambda *i: number, call.name())


@operator("Range", facts=Facts(shaped_by_floats=True))
def number_range(call: Call) -> Tensor:
    """The numbers from a start in steps up to a limit, which all have to be known ahead."""
    for position in range(3):
        call.value(position)
    start, limit, step = (known_number(call, position) for position in range(3))
    if start is None or limit is None or step is None:
        raise NotCompilableError("Range has operands that are no scalars")
    dtype = call.tensor(0).dtype
    if step == 0:
        raise NotCompilableError("Range has a step of 0")
    (number,) = check_not_empty(call, (max(0, math.ceil((limit - start) / step)),))
    # Floats are multiplied, not added up, and so keep their digits.
    return te.compute((number,), lambda i: te.cast(i, dtype) * te.constant(step, dtype) + start, call.name(), dtype)


@operator("EyeLike")
def eye_like(call: Call) -> Tensor:
    """Ones on a diagonal of a matrix of the operand's shape."""
    X = call.tensor(0)
    number = call.attribute("dtype", 0)
    dtype = element_type(call, number) if number else X.dtype
    diagonal = call.attribute("k", 0)
    return te.compute(X.shape, lambda i, j: te.cast(te.equal(j - i, diagonal), dtype), call.name())
