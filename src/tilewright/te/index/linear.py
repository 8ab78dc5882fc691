"""Linear forms: index arithmetic in one canonical shape, `sum(coefficient * atom) + const`.

An atom is a variable, or an operation that is not linear (`min`, `max`, `floordiv`, `mod`) on linear forms, or an index
read from memory. Equal forms compare equal, so that differences cancel; known ranges of the variables remove most of
the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tilewright.te.expr import Expr, Var
from tilewright.te.index.algebra import Algebra
from tilewright.te.index.interval import (
    EVERYTHING,
    Interval,
    Number,
    combine_intervals,
    is_anywhere,
    is_array,
    maximum,
    minimum,
)

Ranges: TypeAlias = Mapping[Var, Interval]

_SYMBOLS = {"floordiv": "//", "mod": "%"}
_INT64 = Interval(-(1 << 63), (1 << 63) - 1)
# Numbers up to this, times the extents of loops, stay far from the ends of an int64.
_LARGE = 1 << 31


@dataclass(frozen=True, slots=True)
class Operation:
    """`op(a, b)` on linear forms: min, max, or a division by a positive number."""

    op: str
    a: Linear
    b: Linear


@dataclass(frozen=True, slots=True)
class FromMemory:
    """An index that is read from memory: nothing is known of it."""

    value: Expr


Atom: TypeAlias = Var | Operation | FromMemory


class Linear:
    """An immutable linear form. Its numbers are typed as the ints that they mostly are; a population's are arrays."""

    __slots__ = ("_has_only_variables", "_hash", "const", "terms")

    def __init__(self, terms: dict[Atom, int], const: int) -> None:
        self.terms = terms
        self.const = const
        self._hash: int | None = None
        self._has_only_variables: bool | None = None

    def __reduce__(self) -> tuple[type[Linear], tuple[dict[Atom, int], int]]:
        # Without what was computed of it: variables have other hashes in another process.
        return Linear, (self.terms, self.const)

    @property
    def is_const(self) -> bool:
        return not self.terms

    @property
    def has_only_variables(self) -> bool:
        """Whether every atom is a variable."""
        if self._has_only_variables is None:
            self._has_only_variables = all(isinstance(atom, Var) for atom in self.terms)
        return self._has_only_variables

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash((frozenset(self.terms.items()), self.const))
            except TypeError:  # arrays
                self._hash = hash(frozenset(self.terms))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Linear):
            return False
        try:
            return self.const == other.const and self.terms == other.terms
        except ValueError:  # arrays
            return _are_equal(self, other)

    def __add__(self, other: Linear | int) -> Linear:
        if not isinstance(other, Linear):
            return Linear(self.terms, self.const + other)
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            if atom not in terms:
                terms[atom] = coefficient
                continue
            terms[atom] = total = terms[atom] + coefficient
            if not is_anywhere(total != 0):
                del terms[atom]
        return Linear(terms, self.const + other.const)

    def __sub__(self, other: Linear) -> Linear:
        return self + other * -1

    def __mul__(self, factor: int) -> Linear:
        if not is_anywhere(factor != 0):
            return Linear({}, 0)
        return Linear({atom: c * factor for atom, c in self.terms.items()}, self.const * factor)

    def __str__(self) -> str:
        return format_linear(self, lambda value: "from memory")

    def __repr__(self) -> str:
        return f"Linear({self})"


def _are_equal(a: Linear, b: Linear) -> bool:
    if a.terms.keys() != b.terms.keys():
        return False
    return np.array_equal(a.const, b.const) and all(np.array_equal(c, b.terms[atom]) for atom, c in a.terms.items())


def const(value: Number) -> Linear:
    """The form of a number, or of one for each candidate."""
    return Linear({}, value)  # type: ignore[arg-type]


def of_atom(atom: Atom) -> Linear:
    """The form that is the atom alone."""
    return Linear({atom: 1}, 0)


def variables(form: Linear) -> set[Var]:
    """The variables that the form depends on (those of an index read from memory excepted)."""
    found: set[Var] = set()
    for atom in form.terms:
        if isinstance(atom, Var):
            found.add(atom)
        elif isinstance(atom, Operation):
            found |= variables(atom.a) | variables(atom.b)
    return found


# --- intervals ------------------------------------------------------------------------------------------------------


def bounds(form: Linear, ranges: Ranges) -> Interval:
    """The least and greatest value that the form can take (or a bound of it)."""
    low = high = form.const
    for atom, coefficient in form.terms.items():
        a, b = ranges.get(atom, EVERYTHING) if isinstance(atom, Var) else atom_bounds(atom, ranges)
        if is_array(coefficient):
            a, b = a * coefficient, b * coefficient
            low, high = low + minimum(a, b), high + maximum(a, b)
        elif coefficient > 0:
            low, high = low + a * coefficient, high + b * coefficient
        else:
            low, high = low + b * coefficient, high + a * coefficient
    return Interval(low, high)


def may_wrap(form: Linear, ranges: Ranges) -> bool:
    """Whether the form may leave what an int64 holds, where arithmetic wraps around and a form does not.

    >>> i = Var("int64", "i")
    >>> [may_wrap(of_atom(i) * (1 << bits), {i: Interval(0, 7)}) for bits in (3, 60, 61)]
    [False, False, True]
    """
    if not has_large_numbers(form):
        return False
    low, high = bounds(form, ranges)
    return low < _INT64.low or high > _INT64.high


def has_large_numbers(form: Linear) -> bool:
    """Whether a number in the form is larger than any of the index of an element."""
    return is_large(form.const) or any(map(is_large, form.terms.values()))


def is_large(number: Number) -> bool:
    """Whether a number is larger than any of the index of an element; those of a population never are."""
    return isinstance(number, int) and not -_LARGE < number < _LARGE


def atom_bounds(atom: Atom, ranges: Ranges) -> Interval:
    """The same of one atom."""
    if isinstance(atom, Operation):
        return combine_intervals(atom.op, bounds(atom.a, ranges), bounds(atom.b, ranges)) or EVERYTHING
    return ranges.get(atom, EVERYTHING) if isinstance(atom, Var) else EVERYTHING


# --- operations, simplified where ranges are known -------------------------------------------------------------------


def combine(op: str, a: Linear, b: Linear, ranges: Ranges | None) -> Linear | None:
    """The form of an operation; None where it has none, as a product of variables. Without ranges it is not simplified.

    >>> i = of_atom(Var("int64", "i"))
    >>> print(combine("floordiv", i * 8 + 5, const(4), {}), combine("floordiv", i * 8 + 5, const(4), None))
    i*2 + 1 ((i*8 + 5) // 4)
    """
    if op == "add":
        return a + b
    if op == "sub":
        return a - b
    if op == "mul":
        if b.is_const:
            return a * b.const
        return b * a.const if a.is_const else None
    if op in ("floordiv", "mod") and (not b.is_const or is_anywhere(b.const <= 0)):
        return None
    if ranges is None:
        return _operation(op, a, b)
    if op == "floordiv":
        return _divide(a, b.const, ranges)
    return _modulo(a, b.const, ranges) if op == "mod" else _extremum(op, a, b, ranges)


def _operation(op: str, a: Linear, b: Linear) -> Linear:
    if a.terms or b.terms:
        return of_atom(Operation(op, a, b))
    value = combine_intervals(op, Interval(a.const, a.const), Interval(b.const, b.const))
    assert value is not None, "the divisor is positive"
    return Linear({}, value.low)


def _extremum(op: str, a: Linear, b: Linear, ranges: Ranges) -> Linear:
    low, high = bounds(a - b, ranges)
    if not is_anywhere(high > 0):
        return a if op == "min" else b
    if not is_anywhere(low < 0):
        return b if op == "min" else a
    return _operation(op, a, b)


def clamped(form: Linear, limits: Interval, ranges: Ranges) -> Linear:
    """The form, or the nearer end of `limits` where it leaves them."""
    return _extremum("max", _extremum("min", form, const(limits.high), ranges), const(limits.low), ranges)


def _divide(a: Linear, divisor: int, ranges: Ranges) -> Linear:
    whole, rest = _multiples(a, divisor)
    quotient = _only_quotient(rest, divisor, ranges)
    return whole + (_operation("floordiv", rest, const(divisor)) if quotient is None else quotient)


def _modulo(a: Linear, divisor: int, ranges: Ranges) -> Linear:
    _, rest = _multiples(a, divisor)
    quotient = _only_quotient(rest, divisor, ranges)
    return _operation("mod", rest, const(divisor)) if quotient is None else rest + quotient * -divisor


def _only_quotient(a: Linear, divisor: int, ranges: Ranges) -> int | None:
    """The quotient, if it is one number for all values of the variables."""
    low, high = bounds(a, ranges)
    first = low // divisor
    return None if is_anywhere(first != high // divisor) else first


def _multiples(a: Linear, divisor: int) -> tuple[Linear, Linear]:
    """`a` as divisor * whole + rest."""
    whole: dict[Atom, int] = {}
    rest: dict[Atom, int] = {}
    for atom, coefficient in a.terms.items():
        if is_anywhere(coefficient % divisor != 0):
            rest[atom] = coefficient
        else:
            whole[atom] = coefficient // divisor
    return Linear(whole, a.const // divisor), Linear(rest, a.const % divisor)


class LinearForms(Algebra[Linear]):
    """The linear forms of expressions. `values` are those of their variables; `ranges` of the variables in these."""

    def __init__(self, values: Callable[[Var], Linear] = of_atom, ranges: Ranges | None = None) -> None:
        super().__init__()
        self.values = values
        self.ranges = ranges

    def variable(self, var: Var) -> Linear:
        return self.values(var)

    def constant(self, value: int) -> Linear:
        return Linear({}, value)

    def combine(self, op: str, a: Linear, b: Linear) -> Linear | None:
        return combine(op, a, b, self.ranges)

    def held(self, value: Linear, dtype: str) -> Linear | None:
        """None also where it may wrap around; without ranges that is where numbers are large."""
        if dtype != "int64":
            return None
        wraps = has_large_numbers(value) if self.ranges is None else may_wrap(value, self.ranges)
        return None if wraps else value


def substitute(
    form: Linear,
    values: Mapping[Var, Linear],
    ranges: Ranges,
    from_memory: Callable[[FromMemory], FromMemory] = lambda atom: atom,
) -> Linear:
    """Replace variables by linear forms, inside operations too; `from_memory` rebuilds what is read."""
    total = Linear({}, form.const)
    for atom, coefficient in form.terms.items():
        if isinstance(atom, Var):
            total += values.get(atom, of_atom(atom)) * coefficient
        elif isinstance(atom, Operation):
            a = substitute(atom.a, values, ranges, from_memory)
            b = substitute(atom.b, values, ranges, from_memory)
            made = combine(atom.op, a, b, ranges)
            assert made is not None
            total += made * coefficient
        else:
            total += of_atom(from_memory(atom)) * coefficient
    return total


# --- text -----------------------------------------------------------------------------------------------------------


def format_linear(form: Linear, value: Callable[[Expr], str]) -> str:
    """The form as text; `value` writes what is read from memory."""
    parts: list[str] = []
    for atom, coefficient in form.terms.items():
        text = _format_atom(atom, value)
        size = abs(coefficient)
        term = text if size == 1 else f"{text}*{size}"
        sign = "-" if coefficient < 0 else "+"
        parts.append(f" {sign} {term}" if parts else term if coefficient > 0 else f"-{term}")
    if form.const or not parts:
        sign = "-" if form.const < 0 else "+"
        parts.append(f" {sign} {abs(form.const)}" if parts else str(form.const))
    return "".join(parts)


def _format_atom(atom: Atom, value: Callable[[Expr], str]) -> str:
    if isinstance(atom, Var):
        return atom.name
    if isinstance(atom, FromMemory):
        return f"({value(atom.value)})"
    a, b = format_linear(atom.a, value), format_linear(atom.b, value)
    return f"{atom.op}({a}, {b})" if atom.op in ("min", "max") else f"(({a}) {_SYMBOLS[atom.op]} {b})"
