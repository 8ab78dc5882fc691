"""Cut loops where a condition changes, so that the interior tests nothing.

Padding and the end of a reduction that does not divide are conditions on loop variables. For every value of a loop
variable this pass asks which conditions inside are certainly true or certainly false; runs of equal answers become
loops of their own. Code generation then decides those conditions from the range of the variable. Few copies of the body
are made (`schedule.cutting`), and any number of loops that together are no more code than the one they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tilewright.ir.nest import For, LoopNest, Stmt, Store, Test, Where, block
from tilewright.ir.walk import expressions, map_children, operands, statements, values_of
from tilewright.schedule import MAX_COPIES, PARALLEL, UNROLL, copies_left, is_cut, may_be_cut
from tilewright.te import Binary, Expr, Select, Unary, Var
from tilewright.te.index import Interval, Linear, bounds, interval, variables

IntArray = npt.NDArray[np.int64]


def cut_loops(nest: LoopNest) -> LoopNest:
    return LoopNest(nest.name, nest.arguments, _cut(nest.body, _Context({}, MAX_COPIES, _Conditions())))


class _Conditions:
    """The conditions in values. Each value is looked through once, however many loops are around it."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Expr, list[Expr]]] = {}  # with the value, whose id is nobody else's while it lives

    def inside(self, value: Expr) -> list[Expr]:
        found = self._found.get(id(value))
        if found is None:
            found = self._found[id(value)] = (value, [e.cond for e in expressions(value) if isinstance(e, Select)])
        return found[1]


@dataclass(frozen=True, slots=True)
class _Context:
    ranges: dict[Var, Interval]
    copies: int  # how many copies of the body may still be made
    conditions: _Conditions


def _cut(stmt: Stmt, context: _Context) -> Stmt:
    if isinstance(stmt, For):
        return _cut_loop(stmt, context)
    return map_children(stmt, lambda s: _cut(s, context))


def _cut_loop(loop: For, context: _Context) -> Stmt:
    pieces, copies = _pieces(loop, context)
    cases: list[tuple[int, int, Stmt]] = []
    for begin, end, body in pieces:
        inside = {**context.ranges, loop.var: Interval(begin, end - 1)}
        cases.append((begin, end, _cut(body, _Context(inside, copies, context.conditions))))
    if len(cases) == 1:
        return replace(loop, body=cases[0][2])
    if loop.kind == PARALLEL:
        return replace(loop, body=Where(loop.var, tuple(cases)))
    return block([For(loop.var, begin, end - begin, loop.kind, body) for begin, end, body in cases])


def _pieces(loop: For, context: _Context) -> tuple[list[tuple[int, int, Stmt]], int]:
    """The loop in pieces with their bodies, and how many copies may still be made of each of these."""
    whole = (loop.begin, loop.begin + loop.extent, loop.body)
    if not may_be_cut(loop.kind == UNROLL, loop.extent):
        return [whole], context.copies
    answers = _answers_inside(loop, context)
    segments = _segments(loop, answers)
    if is_cut(len(segments), context.copies):
        return [(begin, end, loop.body) for begin, end in segments], int(copies_left(len(segments), context.copies))
    decided = [{key: int(a.whole[begin - loop.begin]) for key, a in answers.items()} for begin, _ in segments]
    if _grows(loop, decided, answers):
        return [whole], context.copies
    pieces = zip(segments, decided, strict=True)
    return [(begin, end, _settled(loop.body, known)) for (begin, end), known in pieces], context.copies


@dataclass(frozen=True, slots=True)
class _Answers:
    """For each value of a loop's variable: how a condition inside is decided, and how its parts are."""

    whole: IntArray
    parts: list[IntArray]


def _answers_inside(loop: For, context: _Context) -> dict[int, _Answers]:
    """What is known of the conditions inside that depend on the loop, by their ids."""
    known = dict(context.ranges)
    conditions: dict[int, Expr] = {}
    for stmt in statements(loop.body):
        if isinstance(stmt, For):
            known[stmt.var] = stmt.interval
        for value in values_of(stmt):
            conditions.update((id(condition), condition) for condition in context.conditions.inside(value))
    points = np.arange(loop.begin, loop.begin + loop.extent, dtype=np.int64)
    found: dict[int, _Answers] = {}
    for key, condition in conditions.items():
        tests = [e for e in expressions(condition) if isinstance(e, Test)]
        if any(loop.var in variables(test.form) for test in tests):
            parts = [_decided(test, loop.var, points, known) for test in tests]
            found[key] = _Answers(_decided(condition, loop.var, points, known), parts)
    return found


def _segments(loop: For, answers: dict[int, _Answers]) -> list[tuple[int, int]]:
    """Runs of values of the loop variable for which the conditions inside are decided alike."""
    changed = np.zeros(loop.extent, dtype=bool)
    for answer in answers.values():
        for part in answer.parts:
            # Where the whole condition is decided, its parts do not matter.
            relevant = np.where(answer.whole != 0, 2 * answer.whole, part)
            changed[1:] |= relevant[1:] != relevant[:-1]
    cuts = [0, *np.flatnonzero(changed).tolist(), loop.extent]
    return [(loop.begin + begin, loop.begin + end) for begin, end in pairwise(cuts)]


def _grows(loop: For, decided: list[dict[int, int]], answers: dict[int, _Answers]) -> bool:
    """Whether the pieces together are more code than the loop as it is.

    They are not where each needs but a part of it, as those of tensors that are joined.
    """
    values = [value for stmt in statements(loop.body) for value in values_of(stmt)]
    always = {key: int(a.whole[0]) if (a.whole == a.whole[0]).all() else 0 for key, a in answers.items()}
    allowed = _num_nodes(values, always)
    for known in decided:
        allowed -= _num_nodes(values, known)
        if allowed < 0:
            return True
    return False


def _settled(stmt: Stmt, decided: dict[int, int]) -> Stmt:
    """The statement with what it stores where conditions are decided, so that many pieces are not long each."""
    if not isinstance(stmt, Store):
        return map_children(stmt, lambda inner: _settled(inner, decided))
    value = stmt.value
    while isinstance(value, Select) and decided.get(id(value.cond), 0):
        value = value.a if decided[id(value.cond)] > 0 else value.b
    return replace(stmt, value=value)


def _num_nodes(values: list[Expr], decided: dict[int, int]) -> int:
    """The nodes that are computed where conditions are decided (1 or -1) or not (0)."""
    seen: set[int] = set()
    stack = list(values)
    while stack:
        e = stack.pop()
        if isinstance(e, Select) and decided.get(id(e.cond), 0):
            stack.append(e.a if decided[id(e.cond)] > 0 else e.b)
        elif id(e) not in seen:
            seen.add(id(e))
            stack += operands(e)
    return len(seen)


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
    low, high = bounds(form, {**ranges, var: interval(points, points)})
    if op == "ge":
        answers = np.where(low >= 0, 1, np.where(high < 0, -1, 0))
    else:
        certain = np.where((low == 0) & (high == 0), 1, np.where((low > 0) | (high < 0), -1, 0))
        answers = certain if op == "eq" else -certain
    return np.broadcast_to(answers, points.shape)
