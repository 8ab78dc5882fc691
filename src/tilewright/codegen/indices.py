"""Linear forms as values: scalar addresses split from their constants, and vectors of indices."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.builder import Value
from tilewright.codegen.frame import Binding, Frame
from tilewright.te import Expr, Var
from tilewright.te.index import Atom, FromMemory, Interval, Linear, Operation, atom_bounds, bounds, of_atom

_Key = tuple[Operation, tuple[tuple[Binding, Interval], ...]]


class Indices:
    """Writes linear forms. `emit_memory` writes an index that is read from memory."""

    def __init__(self, frame: Frame, emit_memory: Callable[[Expr], Value]) -> None:
        self.frame = frame
        self.emit_memory = emit_memory
        self._variables: dict[Operation, tuple[Var, ...] | None] = {}
        self._known: dict[_Key, int | Value] = {}

    def evaluate(self, form: Linear) -> tuple[Value | None, int]:
        """A form that is the same in all lanes, as a run-time part (None for none) and a constant.

        Outer loops' terms are added first, so that sums are hoisted out of the inner loops.
        """
        constant = form.const
        parts: list[Value] = []
        for atom, coefficient in form.terms.items():
            value = self._atom(atom)
            if isinstance(value, int):
                constant += coefficient * value
            else:
                parts.append(self._scaled(value, coefficient))
        if not parts:
            return None, constant
        parts.sort(key=lambda part: part.depth)
        total = parts[0]
        for part in parts[1:]:
            total = self.frame.builder.binary("add nsw", total, part)
        return total, constant

    def scalar(self, form: Linear) -> Value:
        """A form that is the same in all lanes, as one value."""
        b = self.frame.builder
        dynamic, constant = self.evaluate(form)
        if dynamic is None:
            return b.const(constant, "int64")
        return dynamic if constant == 0 else b.binary("add nsw", dynamic, b.const(constant, "int64"))

    def value(self, form: Linear) -> Value:
        """The form as a scalar, or as a vector where it varies over the lanes."""
        split = self.frame.split_lane(form)
        if split is not None and split[1] == 0:
            return self.scalar(split[0])
        return self.vector(form)

    def vector(self, form: Linear) -> Value:
        """The form in every lane."""
        b, lanes = self.frame.builder, self.frame.lanes
        split = self.frame.split_lane(form)
        if split is not None:
            first = b.broadcast(self.scalar(split[0]), lanes)
            if split[1] == 0:
                return first
            steps = b.vector([split[1] * lane for lane in range(lanes)], "int64")
            return b.binary("add nsw", first, steps)
        total = b.const(form.const, "int64", lanes)
        for atom, coefficient in form.terms.items():
            total = b.binary("add nsw", total, self._scaled(self._vector_atom(atom), coefficient))
        return total

    def _vector_atom(self, atom: Atom) -> Value:
        b, lanes = self.frame.builder, self.frame.lanes
        if isinstance(atom, Operation):
            return self._operation(atom.op, self.vector(atom.a), self.vector(atom.b))
        if isinstance(atom, FromMemory):
            return b.broadcast(self.emit_memory(atom.value), lanes)
        return self.vector(of_atom(atom))

    def _atom(self, atom: Atom) -> int | Value:
        if isinstance(atom, Var):
            return self.frame.bindings[atom]
        if isinstance(atom, FromMemory):
            return self.emit_memory(atom.value)
        key = self._key(atom)
        if key is None:
            return self._computed(atom)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._computed(atom)
        return known

    def _key(self, atom: Operation) -> _Key | None:
        """The operation, and what its variables stand for and between what, which say what it is.

        In a piece of a loop the ranges are smaller, and more is known there alone. None if it reads memory.
        Loads that are written out have the same few divisions of a fused loop's counter in their addresses.
        """
        if atom not in self._variables:
            self._variables[atom] = _variables(atom)
        own = self._variables[atom]
        frame = self.frame
        return None if own is None else (atom, tuple([(frame.bindings[var], frame.ranges[var]) for var in own]))

    def _computed(self, atom: Operation) -> int | Value:
        low, high = atom_bounds(atom, self.frame.ranges)
        if low == high:
            return low
        if atom.op in ("min", "max"):
            low, high = bounds(atom.a - atom.b, self.frame.ranges)
            if high <= 0 or low >= 0:
                return self.scalar(atom.a if (high <= 0) == (atom.op == "min") else atom.b)
        return self._operation(atom.op, self.scalar(atom.a), self.scalar(atom.b))

    def _operation(self, op: str, x: Value, y: Value) -> Value:
        """min, max, and division by a positive constant, rounding down."""
        b = self.frame.builder
        if op in ("min", "max"):
            return b.intrinsic("smin" if op == "min" else "smax", x, y)
        rest = b.binary("srem", x, y)
        zero, one = b.const(0, "int64", x.lanes), b.const(1, "int64", x.lanes)
        is_negative = b.compare("slt", rest, zero)
        if op == "mod":
            return b.binary("add", rest, b.select(is_negative, y, zero))
        return b.binary("sub", b.binary("sdiv", x, y), b.select(is_negative, one, zero))

    def _scaled(self, value: Value, coefficient: int) -> Value:
        if coefficient == 1:
            return value
        return self.frame.builder.binary("mul nsw", value, self.frame.builder.const(coefficient, "int64", value.lanes))


def _variables(atom: Operation) -> tuple[Var, ...] | None:
    """Those that it depends on; None where it depends on memory, too."""
    found: dict[Var, None] = {}
    for inner in (*atom.a.terms, *atom.b.terms):
        own = (inner,) if isinstance(inner, Var) else _variables(inner) if isinstance(inner, Operation) else None
        if own is None:
            return None
        found |= dict.fromkeys(own)
    return tuple(found)
