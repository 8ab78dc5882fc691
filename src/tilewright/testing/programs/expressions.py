"""Programs of any expressions: what no operator is like, but may be written.

Their arithmetic is exact, so that no order of operations changes an element: integers wrap around, floats are small
whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright import te
from tilewright.te import Axis, Expr, Task, Tensor
from tilewright.testing.programs.draw import INTEGERS, Draw

_DTYPES = (*INTEGERS, "bool", "float32", "float64", "float16", "bfloat16")
_MOST = 33  # of an extent: stages run over several axes
_LARGEST_FLOAT = 100.0
_REDUCTIONS = {
    "int": ("sum", "prod", "max", "min", "argmax", "argmin"),
    "float": ("sum", "max", "min", "argmax", "argmin"),
    "bool": ("max", "min"),
}


def expressions(draw: Draw) -> Task:
    author = _Author(draw)
    for n in range(draw.pick(1, 2, 3)):
        shape = tuple(draw.extent(_MOST) for _ in range(draw.pick(0, 1, 2, 2, 3)))
        author.tensors.append(te.placeholder(shape, draw.name(*_DTYPES), f"A{n}", constant=draw.chance(0.15)))
    stages = [author.stage(f"S{n}") for n in range(draw.pick(1, 2, 3, 4))]
    outputs = [stages[-1], *(stage for stage in stages[:-1] if draw.chance(0.3))]
    used = te.topological_order(tuple(outputs))
    return Task([tensor for tensor in author.tensors if tensor.is_placeholder and tensor in used], outputs, "any")


def _kind(dtype: str) -> str:
    return te.DTYPES[dtype].kind.removeprefix("u")


@dataclass(slots=True)
class _Author:
    """Writes one stage after the other; `axes` are those of the stage that is written."""

    draw: Draw
    tensors: list[Tensor] = field(default_factory=list)
    axes: tuple[Axis, ...] = ()

    def stage(self, name: str) -> Tensor:
        draw = self.draw
        shape = tuple(draw.extent(_MOST) for _ in range(draw.pick(0, 1, 1, 2, 2, 2, 3)))
        reduced = tuple(te.reduce_axis(draw.extent(_MOST), f"r{n}") for n in range(draw.pick(0, 0, 1, 1, 2)))
        write = (self._integer, self._integer, self._float, self._bool)[draw.pick(0, 1, 2, 3)]
        depth = draw.pick(1, 2, 2, 3)

        def element(*axes: Axis) -> Expr:
            self.axes = (*axes, *reduced)
            value = write(depth)
            if not reduced:
                return value
            reduce: Callable[..., Expr] = getattr(te, draw.name(*_REDUCTIONS[_kind(value.dtype)]))
            return reduce(value, axis=reduced)

        made = te.compute(shape, element, name)
        if te.is_float(made.dtype):
            made = te.compute(shape, lambda *i: self._small(made[i]), f"{name}_small")
        self.tensors.append(made)
        return made

    def _small(self, value: Expr) -> Expr:
        bounded = te.minimum(te.maximum(value, -_LARGEST_FLOAT), _LARGEST_FLOAT)
        return te.cast(bounded, self.draw.name("float16", "bfloat16")) if self.draw.chance(0.2) else bounded

    # --- reads -------------------------------------------------------------------------------------------------------

    def _axis(self) -> Axis:
        return self.axes[self.draw.pick(*range(len(self.axes)))]

    def _read(self, kind: str) -> Expr | None:
        """An element of a tensor of that kind; None if there is none."""
        known = [tensor for tensor in self.tensors if _kind(tensor.dtype) == kind]
        if not known:
            return None
        tensor = known[self.draw.pick(*range(len(known)))]
        indices = [self._index(extent) for extent in tensor.shape]
        if not indices or not self.axes or self.draw.chance(0.8):
            return tensor[tuple(indices)]
        dim = self.draw.pick(*range(len(indices)))
        at = self._axis() * self.draw.pick(1, 2) + self._axis() * self.draw.pick(-1, 0, 1) - self.draw.pick(0, 1, 3)
        indices[dim] = at
        inside = (at >= 0) & (at < tensor.shape[dim])
        element, outside = tensor[tuple(indices)], te.constant(0, tensor.dtype)
        return te.select(inside, element, outside) if self.draw.chance() else te.select(~inside, outside, element)

    def _index(self, extent: int, may_read: bool = True) -> Expr:
        """Any index that stays inside."""
        draw = self.draw
        if not self.axes or draw.chance(0.1):
            return te.constant(draw.pick(0, extent - 1), "int64")
        axis, other = self._axis(), self._axis()
        if axis.extent <= extent and draw.chance(0.4):
            return axis if draw.chance(0.7) else extent - 1 - axis
        kind = draw.pick(*range(8 if may_read else 7))
        if kind == 0:
            return axis % extent
        if kind == 1:
            return axis // -(-axis.extent // extent)
        if kind == 2:
            return (axis * other.extent + other) % extent
        if kind == 3:
            return (axis * draw.pick(1, -1, 3) - draw.pick(1, 7, 40)) % extent
        if kind == 4:
            return _clamped(axis * draw.pick(1, 2, 3) + other * draw.pick(-2, -1, 1) - draw.pick(0, 1, 5), extent)
        if kind == 5:
            return _clamped((axis - draw.pick(1, 3, 9)) // draw.pick(2, 3, -2), extent)
        if kind == 6:
            return te.select(axis < draw.pick(1, 2, 7), axis % extent, extent - 1)
        integers = [tensor for tensor in self.tensors if _kind(tensor.dtype) == "int"]
        if not integers:
            return axis % extent
        source = integers[draw.pick(*range(len(integers)))]
        read = source[tuple(self._index(size, may_read=False) for size in source.shape)]
        return read if draw.chance(0.3) else te.cast(read, "int64") % extent  # as it is, it is clamped

    # --- values ------------------------------------------------------------------------------------------------------

    def _integer(self, depth: int) -> Expr:
        draw = self.draw
        dtype = draw.name(*INTEGERS)
        if depth == 0 or draw.chance(0.2):
            read = self._read("int") if draw.chance(0.6) else None
            if read is not None:
                return read
            return te.cast(self._axis(), dtype) if self.axes and draw.chance() else te.constant(draw.pick(0, 7), dtype)
        kind = draw.name("bool", "float", "cast", "select", "neg", "abs", *6 * ("binary",))
        if kind in ("bool", "float", "cast"):
            source = {"bool": self._bool, "float": self._float, "cast": self._integer}[kind]
            return te.cast(source(depth - 1), "int32" if kind == "float" else dtype)
        if kind == "select":
            return te.select(self._bool(depth - 1), self._integer(depth - 1), self._integer(depth - 1))
        if kind in ("neg", "abs"):
            return te.unary(kind, self._integer(depth - 1))
        operator = draw.name("add", "sub", "mul", "floordiv", "mod", "max", "min")
        return te.binary(operator, self._integer(depth - 1), self._integer(depth - 1))

    def _float(self, depth: int) -> Expr:
        draw = self.draw
        if depth == 0 or draw.chance(0.2):
            read = self._read("float") if draw.chance(0.8) else None
            if read is None:
                return te.constant(draw.pick(-3, -1, 0, 2), draw.name("float32", "float64"))
            return te.floor(te.cast(read, "float64" if read.dtype == "float64" else "float32") * 8.0)
        kind = draw.name("bool", "int", "select", "neg", "abs", "twice", *4 * ("binary",))
        if kind == "bool":
            return te.cast(self._bool(depth - 1), "float32")
        if kind == "int":
            return te.cast(self._integer(depth - 1) % 16, draw.name("float32", "float64"))
        if kind == "select":
            return te.select(self._bool(depth - 1), self._float(depth - 1), self._float(depth - 1))
        if kind in ("neg", "abs"):
            return te.unary(kind, self._float(depth - 1))
        if kind == "twice":
            return self._float(depth - 1) * 2.0 + self._float(depth - 1)
        return te.binary(draw.name("add", "sub", "max", "min"), self._float(depth - 1), self._float(depth - 1))

    def _bool(self, depth: int) -> Expr:
        draw = self.draw
        if depth == 0 or draw.chance(0.15):
            read = self._read("bool") if draw.chance() else None
            if read is not None:
                return read
            return self._border() if self.axes else te.constant(draw.chance(), "bool")
        kind = draw.name("not", "and", "or", "int", "select", *3 * ("compare",))
        if kind == "not":
            return ~self._bool(depth - 1)
        if kind in ("and", "or"):
            return te.binary(kind, self._bool(depth - 1), self._bool(depth - 1))
        if kind == "int":
            return te.cast(self._integer(depth - 1), "bool")
        if kind == "select":
            return te.select(self._bool(depth - 1), self._bool(depth - 1), self._bool(depth - 1))
        operand = self._integer if draw.chance() else self._float
        return te.binary(draw.name(*te.COMPARISONS), operand(depth - 1), operand(depth - 1))

    def _border(self) -> Expr:
        """A condition on the axes alone."""
        axis, other = self._axis(), self._axis()
        kind = self.draw.pick(0, 1, 2, 3)
        if kind == 0:
            return axis < other + 1
        if kind == 1:
            return te.equal(axis % 3, 1)
        if kind == 2:
            return axis * 2 >= other - 1
        return (axis > 0) | (other < 3)


def _clamped(index: Expr, extent: int) -> Expr:
    return te.minimum(te.maximum(index, 0), extent - 1)
