"""Tests of loop variables, such as those of padding: lowering cuts loops where they change, as far as that goes.

This follows `ir.loop_cutting` for all candidates at once. From the outermost loop inwards, a loop that moves one axis
of a condition is cut into a border at each end and an interior, where nothing is left to test. A loop that moves
several such axes is not cut, nor one for which the body would be copied too often, nor a fused one that runs through
the axis again and again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.features.operations import KINDS, end_of_reduction, node_kind, value_nodes, values_of
from tilewright.features.regions import Booleans, Floats, Region, variables_in
from tilewright.schedule import MAX_COPIES, VECTORIZE, Extent, Loop, Stage, copies_left, is_cut, may_be_cut
from tilewright.te import Axis, Binary, Const, Expr, Select, Var, children, collect_reads, visit
from tilewright.te.index import Flag, Interval, Intervals, Number, choose, interval, is_array, minimum


@dataclass(frozen=True, slots=True)
class Conditions:
    """`counts` are the operations of tests that no vector runs through; `remaining` how many each vector still does."""

    counts: dict[str, Extent]
    remaining: Floats


def find_conditions(region: Region, unrolled: Booleans, select_instructions: float) -> Conditions:
    """The conditions of the region's statement; `unrolled[position]` tells which loops of its path are written out.

    A choice whose test remains costs `select_instructions` beside it: the value goes through a register of its own.
    """
    counts: dict[str, Extent] = dict.fromkeys(KINDS, 0)
    tests: list[_Test] = []
    lane = _lane(region)
    ends = {end_of_reduction(region.stage, value) for value in values_of(region.stage)}
    for condition in _conditions(region.stage):
        used: set[Expr] = set()
        visit(condition, used.add)
        if not lane.isdisjoint(used):
            continue
        limits = _limits(condition) if condition in ends else {}
        parts = {part: kind for part in used if part.dtype == "bool" and (kind := node_kind(part)) is not None}
        own = [_Test(part, _always_holds(part, limits)) for part, kind in parts.items() if kind == "int_cmp"]
        holds: Flag = bool(own)
        for test in own:
            holds = holds & test.always_holds
        for kind in ("select", *parts.values()):
            counts[kind] = counts[kind] + choose(holds, 0, 1)
        tests += own
    n = region.path.extents.shape[1]
    return Conditions(counts, _remaining(region, tests, unrolled, select_instructions) if tests else np.zeros(n))


def _conditions(stage: Stage) -> list[Expr]:
    """What is tested without reading memory."""
    nodes = value_nodes(values_of(stage))
    return [node.cond for node in nodes if isinstance(node, Select) and not collect_reads(node.cond)]


@dataclass(frozen=True, slots=True)
class _Test:
    """A comparison of loop variables, and for which candidates it says nothing."""

    expr: Expr
    always_holds: Flag


_Form = tuple[object, ...]


def _limits(end: Expr) -> dict[_Form, Number]:
    """How large expressions are where the test for the end of a reduction holds.

    Where a part of a split is split again, the end of the part limits what is tested for the end of the whole.
    """
    found: dict[_Form, Number] = {}
    for test in _conjuncts(end):
        limit = Intervals().of(test.b) if isinstance(test, Binary) and test.op == "lt" else None
        if isinstance(test, Binary) and limit is not None:
            found[_form(test.a)] = limit.high - 1
    return found


def _conjuncts(e: Expr) -> list[Expr]:
    """What all has to hold for a condition to hold."""
    return [*_conjuncts(e.a), *_conjuncts(e.b)] if isinstance(e, Binary) and e.op == "and" else [e]


def _form(e: Expr) -> _Form:
    """Equal for expressions that are written alike."""
    if isinstance(e, Var):
        return ("variable", id(e))
    if isinstance(e, Const):
        return ("number", np.asarray(e.value).tobytes())
    return (type(e), e.op if isinstance(e, Binary) else id(e), *map(_form, children(e)))


class _Limited(Intervals):
    """What expressions reach where some of them are no larger than their limits."""

    def __init__(self, limits: dict[_Form, Number]) -> None:
        super().__init__()
        self._limits = limits

    def of(self, e: Expr) -> Interval | None:
        reached = super().of(e)
        limit = self._limits.get(_form(e)) if reached is not None and self._limits else None
        return reached if reached is None or limit is None else interval(reached.low, minimum(reached.high, limit))


def _always_holds(test: Expr, limits: dict[_Form, Number]) -> Flag:
    """For which candidates a test for the end of a reduction is there because others need it: alone they have none."""
    if not isinstance(test, Binary) or test.op not in ("lt", "ge"):
        return False
    own = _form(test.a) if limits else ()  # a test is no reason to leave it out itself
    ranges = _Limited({form: limit for form, limit in limits.items() if form != own})
    a, b = ranges.of(test.a), ranges.of(test.b)
    if a is None or b is None or not is_array(a.high):
        return False
    return a.high < b.low if test.op == "lt" else a.low >= b.high


def _lane(region: Region) -> frozenset[Axis]:
    """The axes that run through a vector."""
    stage = region.stage
    return frozenset(
        axis
        for axis, whole in stage.loop_of_axis.items()
        if any(loop.annotation == VECTORIZE for loop in stage.leaves_of(whole))
    )


class _Group:
    """Tests of the same variables, and in which share of the iterations they are made."""

    def __init__(self, region: Region, variables: frozenset[Var], tests: list[_Test], unrolled: Booleans) -> None:
        self.num_tests: Extent = 0
        for test in tests:
            self.num_tests = self.num_tests + choose(test.always_holds, 0, 1)
        widths = [region.reach(variable).width for variable in variables]
        moved: Booleans = np.any([width[:-1] > width[1:] for width in widths], axis=0) & (self.num_tests > 0)
        self.moved_by: Booleans = moved & ~unrolled
        self.is_in_straight_code: Booleans = np.any(moved & unrolled, axis=0)
        self.parts = region.moved_by(list(variables))
        n = region.path.extents.shape[1]
        self.is_blocked = np.zeros(n, np.bool_)  # a loop that moves them was not cut: nothing inside can decide them
        self.is_settled = np.zeros(n, np.bool_)  # decided in the interior
        self.has_border = np.zeros(n, np.bool_)  # but not in the tiles at the border
        self.border_share = np.zeros(n)

    def open_at(self, position: int) -> Booleans:
        """Where the loop at `position` moves what is not decided yet."""
        here: Booleans = self.moved_by[position] & ~self.is_blocked & ~self.is_settled
        return here

    def is_outermost_part(self, loop: Loop) -> Booleans:
        """Where the tests change but twice while the loop runs: they move with the outermost part of a fused one."""
        decided = np.zeros_like(self.is_blocked)
        result = np.ones_like(self.is_blocked)
        for part in loop.stage.parts_of(loop):
            runs = np.asarray(part.extent) > 1
            result &= decided | ~runs | (part in self.parts)
            decided |= runs
        return result

    def cut(self, position: int, is_cut: Booleans, extent: Floats) -> None:
        """The loop at `position` is cut, or not."""
        self.has_border |= self.is_settled & self.moved_by[position]
        here = self.open_at(position)
        self.is_blocked |= here & ~is_cut
        settled = here & is_cut & (extent > 2)
        self.border_share = np.where(settled, 2 / extent, self.border_share)
        self.is_settled |= settled

    @property
    def undecided(self) -> Floats:
        return np.where(self.is_blocked, 1.0, np.where(self.has_border, self.border_share, 0.0))


def _remaining(region: Region, tests: list[_Test], unrolled: Booleans, select_instructions: float) -> Floats:
    """Instructions that each vector needs for tests, on average over the interior and the borders."""
    by_variables: dict[frozenset[Var], list[_Test]] = {}
    for test in tests:
        by_variables.setdefault(variables_in(test.expr), []).append(test)
    groups = [_Group(region, variables, alike, unrolled) for variables, alike in by_variables.items()]
    copies = np.full(region.path.extents.shape[1], MAX_COPIES)
    extents = region.path.extents.astype(np.int64)
    for position, loop in enumerate(region.path.loops):
        num_open = np.sum([group.open_at(position) for group in groups], axis=0)
        extent = extents[position]
        pieces = np.minimum(extent, 3)
        is_cut_here = (num_open == 1) & may_be_cut(unrolled[position], extent) & is_cut(pieces, copies)
        if not loop.is_reduce:
            for group in groups:
                group.cut(position, is_cut_here & group.is_outermost_part(loop), region.path.extents[position])
        copies = np.where(is_cut_here, copies_left(pieces, copies), copies)
    decided, operations = np.ones(len(copies)), np.zeros(len(copies))
    for group in groups:
        decided *= 1 - group.undecided
        operations += 2 * group.num_tests * group.undecided
    # Straight code that moves two groups is one body for borders of both kinds: it keeps its tests.
    is_mixed = np.sum([group.is_in_straight_code for group in groups], axis=0) > 1
    return operations + select_instructions * np.where(is_mixed, 1.0, 1 - decided)
