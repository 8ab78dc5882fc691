"""Tensors: placeholders and computed tensors, with their shapes checked as they are built."""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import FunctionType
from typing import NoReturn, SupportsIndex, TypeAlias

from tilewright.errors import ExpressionError
from tilewright.te.dtype import DTYPES, check_dtype, is_int
from tilewright.te.expr import Axis, Const, Expr, ExprLike, Read, Reduce, as_expr, cast
from tilewright.te.unevaluated import Unevaluated

Shape: TypeAlias = "int | Sequence[int]"
# What NumPy gives an array, and a program a loop.
_MAX_DIMENSIONS = 64
_MAX_POINTS = 2**63
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Tensor(Unevaluated):
    """A placeholder (`body` is None) or a computed tensor: `body` over `axes` gives each element."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[Axis, ...] = ()
    body: Expr | None = None
    is_constant: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_placeholder(self) -> bool:
        return self.body is None

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != self.ndim:
            raise ExpressionError(
                f"tensor {self.name} has {self.ndim} dimensions {self.shape}, but {len(given)} indices were given; "
                f"give one for each, as in {self.name}[{self._example_axes}]"
            )
        exprs = tuple(self._index(d, index) for d, index in enumerate(given))
        return Read(self.dtype, self, exprs)

    def _index(self, dim: int, index: ExprLike) -> Expr:
        e = as_expr(index, "int64")
        if not is_int(e.dtype):
            raise ExpressionError(
                f"index {dim} of tensor {self.name} is `{e}` of type {e.dtype}; an index must be an integer"
            )
        if isinstance(e, Const) and not 0 <= e.value < self.shape[dim]:
            raise ExpressionError(f"index {dim} of tensor {self.name} is {e.value}, outside 0..{self.shape[dim] - 1}")
        return cast(e, "int64")

    def __setitem__(self, indices: object, value: object) -> NoReturn:
        raise ExpressionError(f"tensor {self.name} cannot be written to; te.compute makes a new tensor of its elements")

    def __bool__(self) -> bool:
        return True  # as any object; `if` would ask `__len__`

    def _refuse_arithmetic(self, *others: object) -> NoReturn:
        raise ExpressionError(
            f"tensor {self.name} has no arithmetic of its own; write it for an element, as in "
            f"te.compute({self.shape}, lambda {self._example_axes}: {self.name}[{self._example_axes}] ...)"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_arithmetic
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _refuse_arithmetic
    __matmul__ = __rmatmul__ = __neg__ = __abs__ = __invert__ = __and__ = __or__ = _refuse_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = _refuse_arithmetic

    @property
    def _example_axes(self) -> str:
        return ", ".join("ijklmn"[: self.ndim]) if self.ndim <= 6 else "*i"

    def _described(self) -> str:
        return f"tensor {self.name}"

    def __str__(self) -> str:
        from tilewright.te.printer import format_tensor

        return format_tensor(self)

    def __repr__(self) -> str:
        return f"<Tensor {self}>"


def placeholder(shape: Shape, dtype: str = "float32", name: str = "placeholder", *, constant: bool = False) -> Tensor:
    """An input. `constant=True` marks weights: they are packed once, in the order the schedule reads them.

    >>> placeholder((4, 8), name="A")[0, 1].dtype
    'float32'
    """
    _check_name(name, "placeholder")
    dims, element = _shape(shape, name), check_dtype(dtype)
    _check_size(name, dims, element)
    return Tensor(name, dims, element, is_constant=constant)


def reduce_axis(extent: int | tuple[int, int], name: str = "k") -> Axis:
    """An axis to reduce over: `extent` values from zero. (0, n) is accepted for n."""
    _check_name(name, "reduce axis")
    low, high = extent if isinstance(extent, tuple) and len(extent) == 2 else (0, extent)
    if low != 0:
        raise ExpressionError(f"reduce axis {name} starts at {low}; axes start at 0, add the offset to the index")
    return Axis("int64", name, _positive(high, f"reduce axis {name}"), True)


def compute(shape: Shape, function: Callable[..., ExprLike], name: str = "compute", dtype: str | None = None) -> Tensor:
    """A tensor whose element at (i, j, ...) is `function(i, j, ...)`.

    >>> A = placeholder((4, 8), name="A")
    >>> print(compute((8, 4), lambda i, j: A[j, i] * 2.0, name="T"))
    T[i, j] = A[j, i] * 2.0
    """
    _check_name(name, "compute")
    dims = _shape(shape, name)
    axes = tuple(Axis("int64", n, e, False) for n, e in zip(_axis_names(function, len(dims), name), dims, strict=True))
    body = as_expr(function(*axes), dtype)
    if dtype is not None:
        body = cast(body, check_dtype(dtype))
    return computed(name, axes, body)


def computed(name: str, axes: tuple[Axis, ...], body: Expr) -> Tensor:
    """A tensor whose element is `body` over `axes`, once that is checked."""
    from tilewright.te.check import check_body

    _check_name(name, "compute")
    try:
        check_body(name, axes, body)
    except RecursionError:
        raise ExpressionError(
            f"the expression of compute {name} is nested too deeply; give a part of it a compute of its own"
        ) from None
    shape = tuple(axis.extent for axis in axes)
    reduced = tuple(axis.extent for axis in body.axes) if isinstance(body, Reduce) else ()
    _check_size(name, shape, body.dtype, reduced)
    return Tensor(name, shape, body.dtype, axes, body)


def spatial_axis(extent: int, name: str) -> Axis:
    """An axis of a compute, which any identifier of Python may name, as the parameters of its function do."""
    if not name.isidentifier():
        raise ExpressionError(f"axis name {name!r} is not an identifier; use letters, digits and _")
    return Axis("int64", name, _positive(extent, f"axis {name}"), False)


def _axis_names(function: Callable[..., ExprLike], ndim: int, name: str) -> list[str]:
    if _takes_any_number(function):
        return [f"i{d}" for d in range(ndim)]
    try:
        every = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ExpressionError(
            f"compute {name} is given {function!r} instead of a function of its axes; write one, as in "
            "lambda i, j: A[i, j]"
        ) from None
    parameters = [p for p in every if p.default is inspect.Parameter.empty]  # a default binds a value, not an axis
    if len(parameters) == 1 and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return [f"i{d}" for d in range(ndim)]
    if any(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters):
        raise ExpressionError(f"compute {name} gives its function the axes by position; write it without the *")
    if len(parameters) != ndim:
        raise ExpressionError(f"compute {name} has {ndim} dimensions, but its function takes {len(parameters)} axes")
    return [p.name for p in parameters]


def _takes_any_number(function: Callable[..., ExprLike]) -> bool:
    """Whether the function is `lambda *i: ...`, as operators of networks are; `inspect` takes long to say so."""
    if not isinstance(function, FunctionType):
        return False
    code = function.__code__
    return bool(code.co_flags & inspect.CO_VARARGS) and not code.co_argcount and not code.co_kwonlyargcount


def _shape(shape: Shape, name: str) -> tuple[int, ...]:
    if isinstance(shape, str | bytes | bytearray | Set | Mapping) or not isinstance(shape, int | Iterable):
        raise ExpressionError(f"the shape of {name} is {shape!r}; it must be a whole number or a tuple of them")
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(_positive(e, f"dimension {d} of {name}") for d, e in enumerate(dims))


def _positive(extent: object, what: str) -> int:
    if type(extent) is int:  # nearly always; the other checks take ten times as long
        value = extent
    elif isinstance(extent, bool) or not isinstance(extent, SupportsIndex):
        raise ExpressionError(f"{what} is {extent!r}; an extent must be a whole number")
    else:
        value = operator.index(extent)
    if value <= 0:
        raise ExpressionError(f"{what} is {value}; an extent must be at least 1")
    if value >= 2**31:
        raise ExpressionError(f"{what} is {value}; an extent must be below 2**31")
    return value


def _check_size(name: str, shape: tuple[int, ...], dtype: str, reduced: tuple[int, ...] = ()) -> None:
    """That memory and loops of that size can be counted."""
    if len(shape) + len(reduced) > _MAX_DIMENSIONS:
        raise ExpressionError(
            f"a tensor has {_MAX_DIMENSIONS} dimensions and reduce axes at most, got {len(shape) + len(reduced)} "
            f"of {name}"
        )
    num_points = math.prod(shape) * math.prod(reduced)
    if max(num_points, math.prod(shape) * DTYPES[dtype].bytes) >= _MAX_POINTS:
        raise ExpressionError(
            f"a tensor has less than 2**63 bytes, and less than 2**63 elements times those that are reduced; {name} is "
            f"{dtype}{list(shape)}" + (f" reduced over {list(reduced)}" if reduced else "")
        )


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not _NAME.match(name):
        raise ExpressionError(f"{what} name {name!r} is not an identifier; use letters, digits and _")
