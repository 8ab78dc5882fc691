"""Linear forms: integer index arithmetic in one canonical shape, `sum(coefficient * atom) + const`.

An atom is a loop variable, or an operation that is not linear (`min`, `max`, `floordiv`, `mod`) on linear forms, or
an index read from memory. Equal forms compare equal, so that differences cancel; known ranges of the loop variables
remove most of the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.te import Binary, Cast, Const, Expr, Unary, Var, is_int

Interval: TypeAlias = tuple[int, int]
Ranges: TypeAlias = Mapping[Var, Interval]

_FAR = 1 << 62


@dataclass(frozen=True, slots=True)
class Operation:
    """`op(a, b)` on linear forms."""

    op: str
    a: Linear
    b: Linear


@dataclass(frozen=True, slots=True)
class FromMemory:
    """An index that is read from memory: nothing is known of it."""

    value: Expr


Atom: TypeAlias = Var | Operation | FromMemory


class Linear:
    """An immutable linear form."""

    __slots__ = ("_has_only_variables", "_hash", "const", "terms")

    def __init__(self, terms: dict[Atom, int], const: int) -> None:
        self.terms = terms
        self.const = const
        self._hash: int | None = None
        self._has_only_variables: bool | None = None

    @property
    def has_only_variables(self) -> bool:
        """Whether every atom is a loop variable."""
        if self._has_only_variables is None:
            self._has_only_variables = all(isinstance(atom, Var) for atom in self.terms)
        return self._has_only_variables

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), self.const))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.const == other.const and self.terms == other.terms

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.const + other)
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            total = terms.get(atom, 0) + coefficient
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Linear(terms, self.const + other.const)

    def __sub__(self, other: Linear) -> Linear:
        return self + other * -1

    def __mul__(self, factor: int) -> Linear:
        if factor == 0:
            return Linear({}, 0)
        return Linear({atom: c * factor for atom, c in self.terms.items()}, self.const * factor)

    @property
    def is_const(self) -> bool:
        return not self.terms

    def __str__(self) -> str:
        from tilewright.ir.printer import format_linear

        return format_linear(self)

    def __repr__(self) -> str:
        return f"Linear({self})"


def const(value: int) -> Linear:
    return Linear({}, value)


def of_var(var: Var) -> Linear:
    return Linear({var: 1}, 0)


# --- ranges ------------------------------------------------------------------------------------------------------


def bounds(form: Linear, ranges: Ranges) -> Interval:
    """The least and greatest value that the form can take (or a bound of it)."""
    low = high = form.const
    for atom, coefficient in form.terms.items():
        a, b = atom_bounds(atom, ranges)
        if coefficient > 0:
            low, high = low + coefficient * a, high + coefficient * b
        else:
            low, high = low + coefficient * b, high + coefficient * a
    return low, high


def atom_bounds(atom: Atom, ranges: Ranges) -> Interval:
    if isinstance(atom, Var):
        return ranges.get(atom, (-_FAR, _FAR))
    if isinstance(atom, FromMemory):
        return -_FAR, _FAR
    a, b = bounds(atom.a, ranges), bounds(atom.b, ranges)
    if atom.op == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if atom.op == "max":
        return max(a[0], b[0]), max(a[1], b[1])
    divisor = atom.b.const
    if atom.op == "floordiv":
        return a[0] // divisor, a[1] // divisor
    return (a[0] % divisor, a[1] % divisor) if a[0] // divisor == a[1] // divisor else (0, divisor - 1)


# --- construction with simplification ---------------------------------------------------------------------------


def minimum(a: Linear, b: Linear, ranges: Ranges) -> Linear:
    low, high = bounds(a - b, ranges)
    if high <= 0:
        return a
    return b if low >= 0 else Linear({Operation("min", a, b): 1}, 0)


def maximum(a: Linear, b: Linear, ranges: Ranges) -> Linear:
    low, high = bounds(a - b, ranges)
    if low >= 0:
        return a
    return b if high <= 0 else Linear({Operation("max", a, b): 1}, 0)


def floordiv(a: Linear, divisor: int, ranges: Ranges) -> Linear:
    whole, rest = _multiples(a, divisor)
    low, high = bounds(rest, ranges)
    if low // divisor == high // divisor:
        return whole + low // divisor
    return whole + Linear({Operation("floordiv", rest, const(divisor)): 1}, 0)


def modulo(a: Linear, divisor: int, ranges: Ranges) -> Linear:
    _, rest = _multiples(a, divisor)
    low, high = bounds(rest, ranges)
    if low // divisor == high // divisor:
        return rest + -(low // divisor) * divisor
    return Linear({Operation("mod", rest, const(divisor)): 1}, 0)


def _multiples(a: Linear, divisor: int) -> tuple[Linear, Linear]:
    """`a` as divisor * whole + rest."""
    whole: dict[Atom, int] = {}
    rest: dict[Atom, int] = {}
    for atom, coefficient in a.terms.items():
        if coefficient % divisor == 0:
            whole[atom] = coefficient // divisor
        else:
            rest[atom] = coefficient
    return Linear(whole, a.const // divisor), Linear(rest, a.const % divisor)


def linearize(e: Expr, values: Callable[[Var], Linear], ranges: Ranges) -> Linear | None:
    """The linear form of an integer expression; None where it holds something else than index arithmetic."""
    memo: dict[int, Linear | None] = {}

    def go(e: Expr) -> Linear | None:
        if isinstance(e, Var):
            return values(e)
        if isinstance(e, Const):
            return const(int(e.value)) if is_int(e.dtype) else None
        if id(e) not in memo:
            memo[id(e)] = combined(e)
        return memo[id(e)]

    def combined(e: Expr) -> Linear | None:
        if isinstance(e, Cast):
            return go(e.x) if e.dtype == "int64" and is_int(e.x.dtype) else None
        if isinstance(e, Unary):
            x = go(e.x) if e.op == "neg" and e.dtype == "int64" else None
            return None if x is None else x * -1
        if not isinstance(e, Binary) or e.dtype != "int64":
            return None
        a = go(e.a)
        b = None if a is None else go(e.b)
        return None if a is None or b is None else _combine(e.op, a, b, ranges)

    return go(e)


def _combine(op: str, a: Linear, b: Linear, ranges: Ranges) -> Linear | None:
    if op == "add":
        return a + b
    if op == "sub":
        return a - b
    if op == "mul":
        if b.is_const:
            return a * b.const
        return b * a.const if a.is_const else None
    if op in ("floordiv", "mod"):
        if not b.is_const or b.const <= 0:
            return None
        return floordiv(a, b.const, ranges) if op == "floordiv" else modulo(a, b.const, ranges)
    if op == "min":
        return minimum(a, b, ranges)
    return maximum(a, b, ranges) if op == "max" else None


def substitute_linear(
    form: Linear,
    values: Mapping[Var, Linear],
    ranges: Ranges,
    from_memory: Callable[[FromMemory], FromMemory] = lambda atom: atom,
) -> Linear:
    """Replace loop variables by linear forms, inside operations too; `from_memory` rebuilds what is read."""
    total = const(form.const)
    for atom, coefficient in form.terms.items():
        if isinstance(atom, Var):
            total += values.get(atom, of_var(atom)) * coefficient
        elif isinstance(atom, Operation):
            a = substitute_linear(atom.a, values, ranges, from_memory)
            b = substitute_linear(atom.b, values, ranges, from_memory)
            made = _combine(atom.op, a, b, ranges)
            assert made is not None
            total += made * coefficient
        else:
            total += Linear({from_memory(atom): coefficient}, 0)
    return total


def variables(form: Linear) -> set[Var]:
    """The loop variables that the form depends on (those of an index read from memory excepted)."""
    found: set[Var] = set()
    for atom in form.terms:
        if isinstance(atom, Var):
            found.add(atom)
        elif isinstance(atom, Operation):
            found |= variables(atom.a) | variables(atom.b)
    return found
