"""How operators read their operands: NumPy's broadcasting, numbers that are known ahead, axes from the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright import te
from tilewright.operators.registry import Call, MisfitError, NotCompilableError, axis_attribute
from tilewright.te import Expr, Tensor

Indices: TypeAlias = Sequence[Expr]
Reader: TypeAlias = Callable[[Indices], Expr]

# Each makes the expression deeper by one.
_MOST_OPERANDS = 128


def known(call: Call, position: int) -> npt.NDArray[np.generic] | None:
    """The value of an operand, or None where it was left out or is computed."""
    return call.values[position] if position < len(call.values) else None


def known_integers(call: Call, position: int) -> tuple[int, ...] | None:
    """The elements of an operand that must be known ahead, such as axes; None where it was left out."""
    value = call.value(position)
    return None if value is None else tuple(int(x) for x in value.reshape(-1))


def required_integers(call: Call, position: int) -> tuple[int, ...]:
    """The elements of an operand that must be there and known ahead, such as a shape."""
    found = known_integers(call, position)
    if found is None:
        raise NotCompilableError(f"{call.node.op} has no input {position}")
    return found


def required_integer(call: Call, position: int) -> int:
    """The one element of an operand that must be there and known ahead, such as an axis."""
    found = required_integers(call, position)
    check_lengths(call, 1, found)
    return found[0]


def check_lengths(call: Call, number: int, *operands: Sequence[object]) -> None:
    """Operands and attributes that go together have as many elements as they should."""
    for operand in operands:
        if len(operand) != number:
            raise MisfitError(f"{call.node.op} has {len(operand)} numbers where it needs {number}")


def check_ndim(call: Call, X: Tensor, ndim: int) -> None:
    """An operand has the number of dimensions that the operator is for."""
    if X.ndim != ndim:
        raise NotCompilableError(f"{call.node.op} is for {ndim} dimensions, but its input has the shape {X.shape}")


def broadcast_shape(call: Call, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all `shapes` broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listing = ", ".join(map(str, shapes))
        raise NotCompilableError(f"{call.node.op} cannot broadcast the shapes {listing} to one") from None


def element(X: Tensor, indices: Indices) -> Expr:
    """The element of X at an index of a shape that X broadcasts to."""
    if X.ndim > len(indices):
        raise MisfitError(f"an operand has the shape {X.shape} where it takes at most {len(indices)} dimensions")
    own = indices[len(indices) - X.ndim :]
    return X[tuple(0 if extent == 1 else index for extent, index in zip(X.shape, own, strict=True))]


def reader(call: Call, position: int) -> Reader:
    """How to read an operand at an index that it broadcasts to; one number that is known ahead is that number."""
    X = call.tensor(position)
    number = known_number(call, position) if call.is_computed else None
    if number is None:
        return lambda indices: element(X, indices)
    constant = te.constant(number, X.dtype)
    return lambda indices: constant


def known_number(call: Call, position: int) -> float | None:
    """The only element of an operand, where that is known ahead."""
    X = call.optional(position)
    if X is not None and math.prod(X.shape) != 1:
        return None
    value = known(call, position)
    if value is None or value.size != 1:
        return None
    if X is not None and X.dtype == "bfloat16" and value.dtype == np.uint16:
        value = te.bfloat16_to_float32(value)
    number = value.reshape(-1)[0]
    return int(number) if np.issubdtype(value.dtype, np.integer) else float(number)


def map_elements(call: Call, function: Callable[..., Expr], positions: Sequence[int] | None = None) -> Tensor:
    """The tensor of `function` of the elements of all operands, or of those at `positions`, broadcast to one shape."""
    chosen = range(len(call.tensors)) if positions is None else positions
    if len(chosen) > _MOST_OPERANDS:
        raise NotCompilableError(
            f"{call.node.op} has {len(chosen)} operands, more than the {_MOST_OPERANDS} of a kernel"
        )
    shape = broadcast_shape(call, *(call.tensor(p).shape for p in chosen))
    readers = [reader(call, p) for p in chosen]
    return te.compute(shape, lambda *i: function(*(read(i) for read in readers)), call.name())


def axis_of(call: Call, axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise NotCompilableError(f"{call.node.op} has axis {axis}, but its input has {ndim} dimensions")
    return axis % ndim


def own_axis(call: Call, ndim: int) -> int:
    """The axis that the node works along, counted from the front."""
    return axis_of(call, axis_attribute(call.node), ndim)


def axes_of(call: Call, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, each once."""
    found = tuple(axis_of(call, axis, ndim) for axis in axes)
    if len(set(found)) != len(found):
        raise NotCompilableError(f"{call.node.op} names an axis twice in {tuple(axes)}")
    return found


def check_not_empty(call: Call, shape: Sequence[int]) -> tuple[int, ...]:
    """`shape`, which a kernel can compute only if no dimension is zero."""
    if any(extent < 0 for extent in shape):
        raise MisfitError(f"the output of {call.node.op} would have the shape {tuple(shape)}")
    if 0 in shape:
        raise NotCompilableError(f"the output of {call.node.op} has the shape {tuple(shape)}, which holds no elements")
    return tuple(shape)


def replaced(indices: Indices, axis: int, index: te.ExprLike) -> tuple[te.ExprLike, ...]:
    """`indices` with the one of `axis` replaced."""
    return (*indices[:axis], index, *indices[axis + 1 :])
