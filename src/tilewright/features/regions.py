"""How far the axes of each stage move while the loops from any level inwards run.

A statement stands inside a path of loops: those of the stages it is attached to, then its own. Level `d` means that
the loops from position `d` on run and those outside stand still, so every width is an array [levels, candidates] and
one pass of array operations answers for all levels of a whole population. Widths follow `schedule.bounds`, where a
width is the largest value minus the smallest; only parts of fused loops are taken as aligned here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tilewright.schedule import Extent, Loop, Schedule, Split, Stage, enclosing_loops
from tilewright.te import Expr, Var, visit
from tilewright.te.index import Atom, Linear, LinearForms, Operation, combine_intervals, interval, is_array

Floats: TypeAlias = npt.NDArray[np.float64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
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
        self._forms = LinearForms()
        self._used: dict[Expr, frozenset[Var]] = {}
        self._operation_widths: dict[Operation, Floats] = {}
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
        distinct = dict.fromkeys(expressions)
        return frozenset[int]().union(*(self.reach(v).loops for e in distinct for v in self._variables(e)))

    def moved_by(self, expressions: Sequence[Expr]) -> frozenset[Loop]:
        """The loops that move any variable in the expressions; of a fused loop only the parts that do."""
        moved: frozenset[Loop] = frozenset()
        for variable in (v for e in dict.fromkeys(expressions) for v in self._variables(e)):
            known = self._moved_by.get(variable)
            if known is None:  # a packed read names loops
                loop = next(loop for loop in self.path.loops if loop.var is variable)
                known = self._moved_by[variable] = frozenset(loop.stage.parts_of(loop))
            moved |= known
        return moved

    def hull(self, index_tuples: list[tuple[Expr, ...]], dim: int, size: Number) -> tuple[Floats, Linear | None]:
        """How far dimension `dim` of a buffer is reached by several reads of it; the form if there is one form."""
        forms = [self.form(index) for index in dict.fromkeys(indices[dim] for indices in index_tuples)]
        known = [form for form in forms if form is not None]
        if len(known) < len(forms):
            return np.where(self.path.inner > 1, size - 1.0, 0.0), None
        first = known[0]
        width = self.width(first)
        if len(known) == 1:
            return np.minimum(width, size - 1), first
        low: Number = first.const  # of those that are as wide as the first
        last: Number = low
        widest = width
        for form in known[1:]:
            if (form - first).is_const:
                low, last = np.minimum(low, form.const), np.maximum(last, form.const)
            else:
                widest = np.maximum(widest, self.width(form))
        high = np.maximum(last + width, first.const + widest)
        return np.minimum(high - low, size - 1), first

    def _variables(self, e: Expr) -> frozenset[Var]:
        """The variables in an index, which is asked about again and again."""
        known = self._used.get(e)
        if known is None:
            known = self._used[e] = variables_in(e)
        return known

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
                    is_known = region.form(indices[k]) is not None
                    used = region.loops_of([indices[k]]) if is_known else frozenset(range(rows))
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

    def form(self, e: Expr) -> Linear | None:
        """The linear form of an index; None where it is read from memory or otherwise unknown."""
        return self._forms.of(e)

    def width(self, form: Linear) -> Floats:
        """How far the form moves at each level."""
        total: Floats | None = None
        for atom, coefficient in form.terms.items():
            part = self._atom_width(atom)
            if is_array(coefficient) or abs(coefficient) != 1:
                part = part * np.abs(coefficient)
            total = part if total is None else total + part
        return np.zeros_like(self.path.inner) if total is None else total

    def _atom_width(self, atom: Atom) -> Floats:
        if isinstance(atom, Var):
            return self.reach(atom).width
        assert isinstance(atom, Operation), "an index that is read from memory has no form"
        known = self._operation_widths.get(atom)
        if known is None:
            known = self._operation_widths[atom] = self._operation_width(atom)
        return known

    def _operation_width(self, operation: Operation) -> Floats:
        """As if what is divided began at a multiple of the divisor, and what is limited where its variables do."""
        a, b = operation.a, operation.b
        width = self.width(a)
        if not b.is_const or operation.op == "max":
            return np.maximum(width, self.width(b))
        start = a.const if operation.op == "min" else 0
        reached = combine_intervals(operation.op, interval(start, start + width), interval(b.const, b.const))
        assert reached is not None, "divisors are positive"
        return np.asarray(reached.high - reached.low)


def is_dense(form: Linear) -> bool:
    """Whether every integer between its ends is reached."""
    return form.has_only_variables and all(not is_array(c) and abs(c) == 1 for c in form.terms.values())


def step(form: Linear) -> int:
    """All values of the form differ by multiples of this."""
    coefficients = list(form.terms.values())
    return 1 if any(map(is_array, coefficients)) else max(1, math.gcd(*coefficients))


def variables_in(e: Expr) -> frozenset[Var]:
    """The variables that an expression names."""
    found: set[Var] = set()
    visit(e, lambda part: found.add(part) if isinstance(part, Var) else None)
    return frozenset(found)


def find_regions(schedule: Schedule, n: int) -> dict[Stage, Region]:
    """The region of every stage that is computed, consumers first."""
    regions: dict[Stage, Region] = {}
    for stage in reversed(schedule.active_stages):
        regions[stage] = Region(schedule, stage, regions, n)
    return regions
