"""Cut loops where a condition changes, so that the interior tests nothing.

Padding and the end of a reduction that does not divide are conditions on loop variables. For every value of a loop
variable this pass asks which conditions inside are certainly true or certainly false; runs of equal answers become
loops of their own. Code generation then decides those conditions from the range of the variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tilewright.ir.linear import FromMemory, Interval, Linear, Operation, atom_bounds, bounds, variables
from tilewright.ir.nest import For, LoopNest, Stmt, Test, Where, block
from tilewright.ir.walk import expressions, map_children, statements, values_of
from tilewright.schedule import PARALLEL, UNROLL
from tilewright.te import Binary, Expr, Select, Unary, Var

MAX_SEGMENTS = 4
MAX_COPIES = 9

IntArray = npt.NDArray[np.int64]


def partition_loops(nest: LoopNest) -> LoopNest:
    return LoopNest(nest.name, nest.arguments, _partition(nest.body, _Context({}, MAX_COPIES)))


@dataclass(frozen=True, slots=True)
class _Context:
    ranges: dict[Var, Interval]
    copies: int  # how many copies of the body may still be made


def _partition(stmt: Stmt, context: _Context) -> Stmt:
    if isinstance(stmt, For):
        return _partition_loop(stmt, context)
    return map_children(stmt, lambda s: _partition(s, context))


def _partition_loop(loop: For, context: _Context) -> Stmt:
    segments = [(loop.begin, loop.begin + loop.extent)]
    if loop.kind != UNROLL:
        segments = _segments(loop, context.ranges)
    if len(segments) > min(MAX_SEGMENTS, context.copies):
        segments = [(loop.begin, loop.begin + loop.extent)]
    copies = context.copies // len(segments)
    cases: list[tuple[int, int, Stmt]] = []
    for begin, end in segments:
        inside = {**context.ranges, loop.var: (begin, end - 1)}
        cases.append((begin, end, _partition(loop.body, _Context(inside, copies))))
    if len(cases) == 1:
        return replace(loop, body=cases[0][2])
    if loop.kind == PARALLEL:
        return replace(loop, body=Where(loop.var, tuple(cases)))
    return block([For(loop.var, begin, end - begin, loop.kind, body) for begin, end, body in cases])


def _segments(loop: For, ranges: dict[Var, Interval]) -> list[tuple[int, int]]:
    """Runs of values of the loop variable for which the conditions inside are decided alike."""
    known = dict(ranges)
    conditions: dict[int, Expr] = {}
    for stmt in statements(loop.body):
        if isinstance(stmt, For):
            known[stmt.var] = (stmt.begin, stmt.begin + stmt.extent - 1)
        for value in values_of(stmt):
            conditions.update((id(e.cond), e.cond) for e in expressions(value) if isinstance(e, Select))
    points = np.arange(loop.begin, loop.begin + loop.extent, dtype=np.int64)
    changed = np.zeros(len(points), dtype=bool)
    for condition in conditions.values():
        tests = [e for e in expressions(condition) if isinstance(e, Test)]
        if not any(loop.var in variables(test.form) for test in tests):
            continue
        whole = _decided(condition, loop.var, points, known)
        for test in tests:
            # Where the whole condition is decided, its parts do not matter.
            answer = np.where(whole != 0, 2 * whole, _decided(test, loop.var, points, known))
            changed[1:] |= answer[1:] != answer[:-1]
    cuts = [loop.begin, *points[changed].tolist(), loop.begin + loop.extent]
    return list(pairwise(cuts))


def _decided(e: Expr, var: Var, points: IntArray, ranges: dict[Var, Interval]) -> IntArray:
    """For each value of `var`: 1 where `e` certainly holds, -1 where it certainly does not, else 0."""
    if isinstance(e, Test):
        return _answers(e.op, e.form, var, points, ranges)
    if isinstance(e, Binary) and e.op in ("and", "or"):
        a, b = _decided(e.a, var, points, ranges), _decided(e.b, var, points, ranges)
        return np.minimum(a, b) if e.op == "and" else np.maximum(a, b)
    if isinstance(e, Unary) and e.op == "not":
        return -_decided(e.x, var, points, ranges)
    return np.zeros_like(points)


def _answers(op: str, form: Linear, var: Var, points: IntArray, ranges: dict[Var, Interval]) -> IntArray:
    """1 where the condition certainly holds, -1 where it certainly does not, 0 where it depends on other loops."""
    low, high = _bounds_along(form, var, points, ranges)
    if op == "ge":
        return np.where(low >= 0, 1, np.where(high < 0, -1, 0))
    certain = np.where((low == 0) & (high == 0), 1, np.where((low > 0) | (high < 0), -1, 0))
    return certain if op == "eq" else -certain


def _bounds_along(form: Linear, var: Var, points: IntArray, ranges: dict[Var, Interval]) -> tuple[IntArray, IntArray]:
    """The bounds of the form for each value of `var`."""
    low = np.full(len(points), form.const, dtype=np.int64)
    high = low.copy()
    for atom, coefficient in form.terms.items():
        a, b = _atom_bounds_along(atom, var, points, ranges)
        low += coefficient * (a if coefficient > 0 else b)
        high += coefficient * (b if coefficient > 0 else a)
    return low, high


def _atom_bounds_along(
    atom: Var | Operation | FromMemory, var: Var, points: IntArray, ranges: dict[Var, Interval]
) -> tuple[IntArray, IntArray]:
    if atom is var:
        return points, points
    if not isinstance(atom, Operation) or var not in variables(Linear({atom: 1}, 0)):
        low, high = atom_bounds(atom, ranges)
        limit = 1 << 40  # far beyond any index, and safe from overflow when scaled
        return np.full_like(points, max(low, -limit)), np.full_like(points, min(high, limit))
    a_low, a_high = _bounds_along(atom.a, var, points, ranges)
    b_low, b_high = _bounds_along(atom.b, var, points, ranges)
    if atom.op == "min":
        return np.minimum(a_low, b_low), np.minimum(a_high, b_high)
    if atom.op == "max":
        return np.maximum(a_low, b_low), np.maximum(a_high, b_high)
    divisor = bounds(atom.b, ranges)[0]
    if atom.op == "floordiv":
        return a_low // divisor, a_high // divisor
    same = a_low // divisor == a_high // divisor
    return np.where(same, a_low % divisor, 0), np.where(same, a_high % divisor, divisor - 1)
