"""How far the axes of each stage move while the loops from any level inwards run.

A statement stands inside a path of loops: those of the stages it is attached to, then its own. Level `d` means that
the loops from position `d` on run and those outside stand still, so every width is an array [levels, candidates] and
one pass of array operations answers for all levels of a whole population. Widths follow `schedule.bounds`, where a
width is the largest value minus the smallest; only parts of fused loops are taken as aligned here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tilewright.schedule import Extent, Loop, Schedule, Split, Stage, enclosing_loops
from tilewright.te import Binary, Cast, Const, Expr, Unary, Var, visit

Floats: TypeAlias = npt.NDArray[np.float64]
Number: TypeAlias = "float | Floats"


class LoopPath:
    """The loops around a statement, outermost first, with their extents and the products of them."""

    def __init__(self, loops: list[Loop], extents: Mapping[Loop, Extent], n: int) -> None:
        self.loops = loops
        self.positions = {loop: position for position, loop in enumerate(loops)}
        self.extents: Floats = np.empty((len(loops), n))
        for position, loop in enumerate(loops):
            self.extents[position] = extents[loop]
        self.outer: Floats = np.ones((len(loops) + 1, n))  # row d: iterations of the loops outside level d
        np.cumprod(self.extents, axis=0, out=self.outer[1:])
        self.inner: Floats = np.ones((len(loops) + 1, n))  # row d: iterations of the loops from d on
        np.cumprod(self.extents[::-1], axis=0, out=self.inner[-2::-1] if loops else self.inner[1:])

    @property
    def num_levels(self) -> int:
        return len(self.loops) + 1

    @property
    def iterations(self) -> Floats:
        return cast(Floats, self.inner[0])

    def product_of(self, positions: frozenset[int]) -> Floats:
        """Row d: iterations of the loops at these positions from d on."""
        product = np.ones_like(self.inner)
        for position in sorted(positions, reverse=True):
            product[: position + 1] *= self.extents[position]
        return product


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a variable moves at each level, and the positions of the loops that move it."""

    width: Floats
    loops: frozenset[int]


@dataclass(frozen=True, slots=True)
class Form:
    """An index as `sum(coefficient * term) + const`; a term has a key to compare by and its width at each level."""

    terms: dict[Hashable, tuple[Number, Floats]]
    const: Number
    loops: frozenset[int]
    is_dense: bool  # every integer between its ends is reached

    def width(self, like: Floats) -> Floats:
        total: Floats | None = None
        for coefficient, width in self.terms.values():
            part = width if _is_one(coefficient) else width * np.abs(coefficient)
            total = part if total is None else total + part
        return np.zeros_like(like) if total is None else total

    @property
    def step(self) -> int:
        """All values differ by multiples of this."""
        coefficients = [c for c, _ in self.terms.values()]
        if any(isinstance(c, np.ndarray) for c in coefficients):
            return 1
        return max(1, math.gcd(*(int(c) for c in coefficients)))

    def same_terms(self, other: Form) -> bool:
        if self.terms.keys() != other.terms.keys():
            return False
        return all(_equal(c, other.terms[key][0]) for key, (c, _) in self.terms.items())


def _is_one(value: Number) -> bool:
    return not isinstance(value, np.ndarray) and value in (1, -1)


def _equal(a: Number, b: Number) -> bool:
    return a is b or bool(np.all(a == b))


class Region:
    """The path of one stage and the reach of every variable that its body can name."""

    def __init__(self, schedule: Schedule, stage: Stage, known: Mapping[Stage, Region], n: int) -> None:
        self.stage = stage
        around = enclosing_loops(stage)
        self.num_around = len(around)
        self.path = LoopPath([*around, *stage.leaves], schedule.extents, n)
        self.extents = schedule.extents
        self.made_into = stage.made_into
        self.variables: dict[Var, Reach] = {}
        self._moved_by: dict[Var, frozenset[Loop]] = {}
        self._widths: dict[Loop, Floats] = {}
        self._forms: dict[int, tuple[Expr, Form | None]] = {}
        for axis, loop in stage.loop_of_axis.items():
            leaves = frozenset(self.path.positions[leaf] for leaf in stage.leaves_of(loop))
            self.variables[axis] = Reach(self._width(loop), leaves)
            self._moved_by[axis] = self._parts(loop)
        if around:
            self._follow_consumers(schedule, known)

    def reach(self, var: Var) -> Reach:
        known = self.variables.get(var)
        if known is None:  # a packed read names loops
            position = next(p for loop, p in self.path.positions.items() if loop.var is var)
            known = self.variables[var] = Reach(self._leaf_width(position), frozenset((position,)))
        return known

    def loops_of(self, expressions: Sequence[Expr]) -> frozenset[int]:
        """The positions of the loops that move any variable in the expressions."""
        return frozenset[int]().union(*(self.reach(variable).loops for variable in _variables(expressions)))

    def moved_by(self, expressions: Sequence[Expr]) -> frozenset[Loop]:
        """The loops that move any variable in the expressions; of a fused loop only the parts that do."""
        moved: frozenset[Loop] = frozenset()
        for variable in _variables(expressions):
            known = self._moved_by.get(variable)
            if known is None:  # a packed read names loops
                loop = next(loop for loop in self.path.loops if loop.var is variable)
                known = self._moved_by[variable] = frozenset(loop.stage.parts_of(loop))
            moved |= known
        return moved

    def hull(self, index_tuples: list[tuple[Expr, ...]], dim: int, size: Number) -> tuple[Floats, Form | None]:
        """How far dimension `dim` of a buffer is reached by several reads of it; the form if there is one form."""
        forms = [self.form(indices[dim]) for indices in index_tuples]
        known = [form for form in forms if form is not None]
        if len(known) < len(forms):
            return np.where(self.path.inner > 1, size - 1.0, 0.0), None
        first = known[0]
        width = first.width(self.path.inner)
        if len(known) == 1:
            return np.minimum(width, size - 1), first
        low: Number = first.const
        high: Number = low + width
        for form in known[1:]:
            other = form.width(self.path.inner)
            start = form.const if form.same_terms(first) else first.const
            low, high = np.minimum(low, start), np.maximum(high, start + other)
        return np.minimum(high - low, size - 1), first

    # --- loops -------------------------------------------------------------------------------------------------------

    def _leaf_width(self, position: int) -> Floats:
        width: Floats = np.zeros_like(self.path.inner)
        width[: position + 1] = self.path.extents[position] - 1
        return width

    def _width(self, loop: Loop) -> Floats:
        known = self._widths.get(loop)
        if known is None:
            known = self._widths[loop] = self._compute_width(loop)
        return known

    def _compute_width(self, loop: Loop) -> Floats:
        relation = self.made_into.get(loop)
        if relation is None:
            return self._leaf_width(self.path.positions[loop])
        last = self.extents[loop] - 1
        if isinstance(relation, Split):
            moved = self._width(relation.outer) * self.extents[relation.inner]
            moved += self._width(relation.inner)
            return np.minimum(moved, last, out=moved)
        moved = self._width(relation.fused)
        if loop is relation.second:
            return np.minimum(moved, last)
        return np.minimum(np.floor(moved / self.extents[relation.second]), last)

    def _parts(self, loop: Loop) -> frozenset[Loop]:
        """What the loop was split into, down to leaves and to loops that were then fused with others."""
        relation = self.made_into.get(loop)
        if isinstance(relation, Split):
            return self._parts(relation.outer) | self._parts(relation.inner)
        return frozenset((loop,))

    # --- where an attached stage's part lies -------------------------------------------------------------------------

    def _follow_consumers(self, schedule: Schedule, known: Mapping[Stage, Region]) -> None:
        """While a loop around the stage runs, the part that is computed moves as its consumers need it."""
        reads = [
            (known[consumer], [read.indices for read in consumer.reads if read.tensor is self.stage.tensor])
            for consumer in schedule.consumers(self.stage)
        ]
        rows = self.num_around
        for k, axis in enumerate(self.stage.axes):
            own = self.variables[axis]
            width, loops = own.width.copy(), own.loops
            for region, index_tuples in reads:
                size = np.asarray(self.stage.tensor.shape[k], np.float64)
                outside, _ = region.hull(index_tuples, k, size)
                np.maximum(width[:rows], outside[:rows], out=width[:rows])
                for indices in index_tuples:
                    form = region.form(indices[k])
                    used = form.loops if form is not None else frozenset(range(rows))
                    loops |= {position for position in used if position < rows}
            self.variables[axis] = Reach(width, loops)
            self._moved_by[axis] |= self._moved_by_consumers(reads, k)

    def _moved_by_consumers(self, reads: list[tuple[Region, list[tuple[Expr, ...]]]], dim: int) -> frozenset[Loop]:
        around = frozenset(part for loop in self.path.loops[: self.num_around] for part in loop.stage.parts_of(loop))
        moved: frozenset[Loop] = frozenset()
        for region, index_tuples in reads:
            moved |= region.moved_by([indices[dim] for indices in index_tuples])
        return moved & around

    # --- index expressions -------------------------------------------------------------------------------------------

    def form(self, e: Expr) -> Form | None:
        """The form of an index; None where it is read from memory or otherwise unknown."""
        known = self._forms.get(id(e))
        if known is None:
            known = self._forms[id(e)] = (e, self._form(e))  # holding e keeps its id from being reused
        return known[1]

    def _form(self, e: Expr) -> Form | None:
        if isinstance(e, Const):
            return Form({}, cast(Number, e.value), frozenset(), True)
        if isinstance(e, Var):
            reach = self.reach(e)
            return Form({e: (1, reach.width)}, 0, reach.loops, True)
        if isinstance(e, Cast):
            return self.form(e.x)
        if isinstance(e, Unary):
            x = self.form(e.x) if e.op == "neg" else None
            return None if x is None else _scaled(x, -1)
        if not isinstance(e, Binary):
            return None
        a, b = self.form(e.a), self.form(e.b)
        if a is None or b is None:
            return None
        return self._combined(e.op, a, b)

    def _combined(self, op: str, a: Form, b: Form) -> Form | None:
        if op in ("add", "sub"):
            return _sum(a, b if op == "add" else _scaled(b, -1))
        if op == "mul":
            if b.terms and a.terms:
                return None
            return _scaled(a, b.const) if a.terms or not b.terms else _scaled(b, a.const)
        if op in ("min", "max"):
            return self._opaque((op, *_key(a), *_key(b)), self._extremum_width(op, a, b), a.loops | b.loops)
        if op not in ("floordiv", "mod") or b.terms or np.any(np.asarray(b.const) <= 0):
            return None
        if not a.terms:
            return Form({}, a.const // b.const if op == "floordiv" else a.const % b.const, frozenset(), True)
        width = a.width(self.path.inner)
        width = np.floor(width / b.const) if op == "floordiv" else np.minimum(width, b.const - 1)
        return self._opaque((op, *_key(a), *_key(b)), width, a.loops)

    def _extremum_width(self, op: str, a: Form, b: Form) -> Floats:
        width = np.maximum(a.width(self.path.inner), b.width(self.path.inner))
        if op == "min" and not b.terms:  # the start of a tile that is shifted inwards
            return np.minimum(width, np.maximum(b.const - a.const, 0))
        return width

    def _opaque(self, key: Hashable, width: Floats, loops: frozenset[int]) -> Form:
        return Form({key: (1, width)}, 0, loops, False)


def _variables(expressions: Sequence[Expr]) -> set[Var]:
    variables: set[Var] = set()
    for e in expressions:
        visit(e, lambda part: variables.add(part) if isinstance(part, Var) else None)
    return variables


def _key(form: Form) -> tuple[Hashable, ...]:
    """What tells two forms apart; array constants count as one, which only makes a union of reads less exact."""
    numbers = [c if not isinstance(c, np.ndarray) else "array" for c, _ in form.terms.values()]
    const = form.const if not isinstance(form.const, np.ndarray) else "array"
    return (*form.terms, *numbers, const)


def _scaled(form: Form, factor: Number) -> Form:
    terms = {key: (c * factor, width) for key, (c, width) in form.terms.items()}
    return Form(terms, form.const * factor, form.loops, form.is_dense and _is_one(factor))


def _sum(a: Form, b: Form) -> Form:
    terms = dict(a.terms)
    for key, (coefficient, width) in b.terms.items():
        terms[key] = (terms[key][0] + coefficient, width) if key in terms else (coefficient, width)
    return Form(terms, a.const + b.const, a.loops | b.loops, a.is_dense and b.is_dense)


def find_regions(schedule: Schedule, n: int) -> dict[Stage, Region]:
    """The region of every stage that is computed, consumers first."""
    regions: dict[Stage, Region] = {}
    for stage in reversed(schedule.active_stages):
        regions[stage] = Region(schedule, stage, regions, n)
    return regions
