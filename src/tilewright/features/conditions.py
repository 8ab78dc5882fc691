"""Tests of loop variables, such as those of padding: lowering cuts loops where they change, as far as that goes.

This follows `ir.loop_cutting` for all candidates at once. From the outermost loop inwards, a loop that moves one axis
of a condition is cut into a border at each end and an interior, where nothing is left to test. A loop that moves
several such axes is not cut, nor one for which the body would be copied too often, nor a fused one that runs through
the axis again and again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tilewright.features.operations import KINDS, node_kind, value_nodes
from tilewright.features.regions import Floats, Region
from tilewright.features.unrolling import Booleans
from tilewright.schedule import VECTORIZE, Loop, Stage
from tilewright.te import Axis, Expr, Reduce, Select, Var, collect_reads, visit

# As in ir.loop_cutting.
MAX_COPIES = 9


@dataclass(frozen=True, slots=True)
class Conditions:
    """`counts` are the operations of tests that no vector runs through; `remaining` how many each vector still does."""

    counts: dict[str, int]
    remaining: Floats


def find_conditions(region: Region, is_loop: Booleans, select_instructions: float) -> Conditions:
    """The conditions of the region's statement; `is_loop[position]` tells which loops of its path remain loops.

    A choice whose test remains costs `select_instructions` beside it: the value goes through a register of its own.
    """
    counts = dict.fromkeys(KINDS, 0)
    tests: list[frozenset[Var]] = []
    lane = _lane(region)
    for condition in _conditions(region.stage):
        used: set[Expr] = set()
        visit(condition, used.add)
        if not lane.isdisjoint(used):
            continue
        counts["select"] += 1
        for part in used:
            kind = node_kind(part) if part.dtype == "bool" else None
            if kind is not None:
                counts[kind] += 1
            if kind == "int_cmp":
                tests.append(_variables(part))
    n = region.path.extents.shape[1]
    return Conditions(counts, _remaining(region, tests, is_loop, select_instructions) if tests else np.zeros(n))


def _conditions(stage: Stage) -> list[Expr]:
    """What is tested without reading memory."""
    body = stage.body
    nodes = value_nodes(body.values if isinstance(body, Reduce) else (body,))
    return [node.cond for node in nodes if isinstance(node, Select) and not collect_reads(node.cond)]


def _lane(region: Region) -> frozenset[Axis]:
    """The axes that run through a vector."""
    stage = region.stage
    return frozenset(
        axis
        for axis, whole in stage.loop_of_axis.items()
        if any(loop.annotation == VECTORIZE for loop in stage.leaves_of(whole))
    )


def _variables(e: Expr) -> frozenset[Var]:
    found: set[Var] = set()
    visit(e, lambda part: found.add(part) if isinstance(part, Var) else None)
    return frozenset(found)


class _Group:
    """Tests of the same variables, and in which share of the iterations they are made."""

    def __init__(self, region: Region, variables: frozenset[Var], num_tests: int, is_loop: Booleans) -> None:
        self.num_tests = num_tests
        widths = [region.reach(variable).width for variable in variables]
        moved: Booleans = np.any([width[:-1] > width[1:] for width in widths], axis=0)
        self.moved_by: Booleans = moved & is_loop
        self.is_in_straight_code: Booleans = np.any(moved & ~is_loop, axis=0)
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


def _remaining(region: Region, tests: list[frozenset[Var]], is_loop: Booleans, select_instructions: float) -> Floats:
    """Instructions that each vector needs for tests, on average over the interior and the borders."""
    groups = [_Group(region, variables, count, is_loop) for variables, count in Counter(tests).items()]
    copies = np.full(region.path.extents.shape[1], float(MAX_COPIES))
    for position, loop in enumerate(region.path.loops):
        num_open = np.sum([group.open_at(position) for group in groups], axis=0)
        extent = region.path.extents[position]
        segments = np.minimum(extent, 3)
        is_cut = (num_open == 1) & (segments <= copies)
        if not loop.is_reduce:
            for group in groups:
                group.cut(position, is_cut & group.is_outermost_part(loop), extent)
        copies = np.where(is_cut, copies // segments, copies)
    decided, operations = np.ones_like(copies), np.zeros_like(copies)
    for group in groups:
        decided *= 1 - group.undecided
        operations += 2 * group.num_tests * group.undecided
    # Straight code that moves two groups is one body for borders of both kinds: it keeps its tests.
    is_mixed = np.sum([group.is_in_straight_code for group in groups], axis=0) > 1
    return operations + select_instructions * np.where(is_mixed, 1.0, 1 - decided)
