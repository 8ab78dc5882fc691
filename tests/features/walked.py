"""Features counted the slow way: the loop nest of one concrete schedule, every iteration of it, every address."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.ir import (
    Block,
    Buffer,
    For,
    Load,
    LoopNest,
    Stmt,
    Store,
    Test,
    Update,
    Where,
    build_nests,
    expressions,
    lower,
    values_of,
)
from tilewright.schedule import MAX_ACCUMULATOR_ELEMENTS, UNROLL, VECTORIZE, Schedule
from tilewright.te import COMPARISONS, DTYPES, FLOAT_FUNCTIONS, Binary, Expr, Select, Unary, Var, is_float
from tilewright.te.index import Atom, Interval, Linear, Operation, bounds, variables

LINE_BYTES = 64
OUTSIDE = 1 << 40


@dataclass(frozen=True, slots=True)
class Walked:
    """One statement of a nest and the loops around it, outermost first, and around the buffers that live there."""

    loops: tuple[For, ...]
    stmt: Store | Update
    num_around: dict[Buffer, int]

    @property
    def iterations(self) -> int:
        return math.prod(loop.extent for loop in self.loops)

    def extents_of(self, kind: str) -> list[int]:
        return [loop.extent for loop in self.loops if loop.kind == kind]


def main_statements(schedule: Schedule) -> dict[str, Walked]:
    """For each stage of the kernel, before any pass: its store, or the update of its reduction."""
    return {name: copies[0] for name, copies in _by_stage(schedule, build_nests(schedule).kernel).items()}


def lowered_statements(schedule: Schedule) -> dict[str, list[Walked]]:
    """The same after all passes: every copy of it that was made where loops were cut."""
    return _by_stage(schedule, lower(schedule, check=True).kernel)


def _by_stage(schedule: Schedule, nest: LoopNest) -> dict[str, list[Walked]]:
    is_reduction = {stage.name: stage.reduction is not None for stage in schedule.active_stages}
    found: dict[str, list[Walked]] = {}
    for walked in all_statements(nest):
        is_update = isinstance(walked.stmt, Update)
        buffer = walked.stmt.buffers[0] if isinstance(walked.stmt, Update) else walked.stmt.buffer
        name = buffer.name.removesuffix(".acc").removesuffix(".reg")
        if is_reduction.get(name) is is_update:
            found.setdefault(name, []).append(walked)
    return found


def all_statements(nest: LoopNest) -> list[Walked]:
    found: list[Walked] = []

    def go(stmt: Stmt, loops: tuple[For, ...], num_around: dict[Buffer, int]) -> None:
        if isinstance(stmt, For):
            go(stmt.body, (*loops, stmt), num_around)
        elif isinstance(stmt, Block):
            for inner in stmt.body:
                go(inner, loops, {**num_around, **dict.fromkeys(stmt.buffers, len(loops))})
        elif isinstance(stmt, Where):
            for begin, end, case in stmt.cases:
                pieces = (replace(f, begin=begin, extent=end - begin) if f.var is stmt.var else f for f in loops)
                go(case, tuple(pieces), num_around)
        else:
            found.append(Walked(loops, stmt, num_around))

    go(nest.body, (), {})
    return found


# --- addresses --------------------------------------------------------------------------------------------------------


def addresses(loops: tuple[For, ...], buffer: Buffer, indices: tuple[Linear, ...]) -> NDArray[np.int64]:
    """The element that each iteration touches, an axis a loop; far below zero where that is outside the buffer."""
    grids: dict[Var, NDArray[np.int64]] = {
        loop.var: np.arange(loop.extent).reshape([-1 if d == k else 1 for d in range(len(loops))])
        for k, loop in enumerate(loops)
    }
    total: NDArray[np.int64] = np.zeros([loop.extent for loop in loops], np.int64)
    for index, extent, stride in zip(indices, buffer.shape, buffer.strides, strict=True):
        value = _evaluate(index, grids)
        outside = (value < 0) | (value >= extent)
        total = total + value * stride - np.where(outside, OUTSIDE, 0)
    return total


def _evaluate(form: Linear, grids: dict[Var, NDArray[np.int64]]) -> Any:
    total: Any = form.const
    for atom, coefficient in form.terms.items():
        total = total + coefficient * _atom(atom, grids)
    return np.asarray(total)


def _atom(atom: Atom, grids: dict[Var, NDArray[np.int64]]) -> Any:
    if isinstance(atom, Var):
        return grids[atom]
    assert isinstance(atom, Operation)
    a, b = _evaluate(atom.a, grids), _evaluate(atom.b, grids)
    functions: dict[str, Any] = {"min": np.minimum, "max": np.maximum, "floordiv": np.floor_divide, "mod": np.remainder}
    return functions[atom.op](a, b)


def reads(walked: Walked) -> dict[str, list[Load]]:
    """The loads of the statement by buffer."""
    found: dict[str, list[Load]] = {}
    for value in values_of(walked.stmt):
        for e in expressions(value):
            if isinstance(e, Load):
                found.setdefault(e.buffer.name, []).append(e)
    return found


def count_reads(walked: Walked, loads: list[Load]) -> dict[str, float]:
    """Bytes and lines, in total and different ones, and the step of the innermost loop that moves the access."""
    per_load = [addresses(walked.loops, load.buffer, load.indices).reshape(-1) for load in loads]
    element_bytes = DTYPES[loads[0].buffer.dtype].bytes
    touched = np.unique(np.concatenate(per_load))
    touched = touched[touched >= 0]
    first = per_load[0][per_load[0] >= 0]
    lines = first * element_bytes // LINE_BYTES
    return {
        "bytes": float(sum(map(len, per_load)) * element_bytes),
        "unique_bytes": float(len(touched) * element_bytes),
        "unique_lines": float(len(np.unique(touched * element_bytes // LINE_BYTES))),
        "lines": 1.0 + np.count_nonzero(np.diff(lines)),
        "stride": _stride(walked, loads[0]),
    }


def _stride(walked: Walked, load: Load) -> float:
    table = addresses(walked.loops, load.buffer, load.indices)
    for axis in range(table.ndim - 1, -1, -1):
        along = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])
        along = along[(along >= 0).all(axis=1)]
        if np.any(along != along[:, :1]):
            return float(np.abs(along[:, -1] - along[:, 0]).max() / (table.shape[axis] - 1))
    return 0.0


def count_written(schedule: Schedule, name: str) -> int:
    """Bytes of different elements of the stage's buffer that the kernel writes."""
    found: set[int] = set()
    element_bytes = 0
    for walked in all_statements(build_nests(schedule).kernel):
        buffers = (walked.stmt.buffer,) if isinstance(walked.stmt, Store) else walked.stmt.buffers
        for buffer in buffers:
            if buffer.name == name:
                element_bytes = DTYPES[buffer.dtype].bytes
                found.update(addresses(walked.loops, buffer, walked.stmt.indices).reshape(-1).tolist())
    return len(found) * element_bytes


# --- operations -------------------------------------------------------------------------------------------------------


def count_operations(walked: Walked) -> dict[str, int]:
    """Operations of one execution, a product that is only added to something as a part of that addition."""
    counts: dict[str, int] = {}
    nodes = [e for value in values_of(walked.stmt) for e in expressions(value)]
    fused: set[int] = set()

    def add(kind: str) -> None:
        counts[kind] = counts.get(kind, 0) + 1

    if isinstance(walked.stmt, Update):
        first = walked.stmt.values[0]
        prefix = "float" if is_float(first.dtype) else "int"
        if walked.stmt.op == "sum" and _is_product(first):
            fused.add(id(first))
            add(f"{prefix}_mad")
        else:
            add(f"{prefix}_{'addsub' if walked.stmt.op == 'sum' else 'cmp'}")
    for e in nodes:
        if isinstance(e, Binary) and e.op in ("add", "sub"):
            product = next((x for x in (e.a, e.b) if _is_product(x) and id(x) not in fused), None)
            if product is not None:
                fused.add(id(product))
            add("float_mad" if product is not None else "float_addsub")
    for e in nodes:
        kind = None if id(e) in fused else _kind(e)
        if kind is not None:
            add(kind)
    return counts


def _is_product(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op == "mul"


def _kind(e: Expr) -> str | None:
    if isinstance(e, Test):
        return "int_cmp"
    if isinstance(e, Select):
        return "select"
    if isinstance(e, Unary):
        return "float_math" if e.op in FLOAT_FUNCTIONS else "float_other"
    if not isinstance(e, Binary) or e.op in ("add", "sub"):
        return None
    if e.op in ("and", "or"):
        return "bool"
    if e.op in COMPARISONS or e.op in ("min", "max"):
        return "float_cmp"
    return {"mul": "float_mul", "div": "float_divmod"}[e.op]


# --- what lowering decided --------------------------------------------------------------------------------------------


def register_tile(walked: Walked, reduced: set[Var]) -> tuple[int, int] | None:
    """How many results an update keeps in registers, and how often it adds to each before they leave them.

    `reduced` are the variables of the reduction: a lane has no results of its own. None where it adds to memory: to
    what is not allocated by the kernel, is too large, or has a loop left in its indices.
    """
    assert isinstance(walked.stmt, Update)
    target = walked.stmt.buffers[0]
    if target not in walked.num_around:
        return None
    inside = walked.loops[walked.num_around[target] :]
    moved_by = {var for index in walked.stmt.indices for var in variables(index)}
    spatial = [loop for loop in inside if loop.var in moved_by - reduced]
    num_results = math.prod(loop.extent for loop in spatial)
    is_constant = all(loop.kind in (UNROLL, VECTORIZE) for loop in spatial)
    if not is_constant or num_results > MAX_ACCUMULATOR_ELEMENTS:
        return None
    return num_results, math.prod(loop.extent for loop in inside) // num_results


def remaining_tests(copies: list[Walked], select_instructions: float) -> float:
    """Instructions for tests of loop variables that the copies of a statement are left with, on average.

    Of a condition that the loops around do not decide, each comparison that they do not decide counts twice (it is
    joined with the others), and the choice once. Tests along a vector are part of the computation.
    """
    instructions = 0.0
    for walked in copies:
        conditions = _conditions(walked)
        used = {var for condition in conditions for test in _tests(condition) for var in variables(test.form)}
        unrolled = [loop for loop in walked.loops if loop.kind == UNROLL and loop.var in used]
        rest = walked.iterations // math.prod(loop.extent for loop in unrolled)
        ranges = {loop.var: loop.interval for loop in walked.loops}
        for point in itertools.product(*(range(loop.begin, loop.begin + loop.extent) for loop in unrolled)):
            ranges.update((loop.var, Interval(x, x)) for loop, x in zip(unrolled, point, strict=True))
            for condition in conditions:
                if _decide(condition, ranges) == 0:
                    num_open = sum(_decide(test, ranges) == 0 for test in _tests(condition))
                    instructions += (select_instructions + 2 * num_open) * rest
    return instructions / sum(walked.iterations for walked in copies)


def _conditions(walked: Walked) -> list[Expr]:
    lanes = {loop.var for loop in walked.loops if loop.kind == VECTORIZE}
    selects = (e for value in values_of(walked.stmt) for e in expressions(value) if isinstance(e, Select))
    found = {id(e.cond): e.cond for e in selects if not any(isinstance(part, Load) for part in expressions(e.cond))}
    return [c for c in found.values() if all(lanes.isdisjoint(variables(test.form)) for test in _tests(c))]


def _tests(condition: Expr) -> list[Test]:
    return [e for e in expressions(condition) if isinstance(e, Test)]


def _decide(e: Expr, ranges: dict[Var, Interval]) -> int:
    """1 where the condition holds for all values of the loops, -1 where for none, else 0."""
    if isinstance(e, Test):
        low, high = bounds(e.form, ranges)
        assert e.op == "ge"
        return 1 if low >= 0 else -1 if high < 0 else 0
    assert isinstance(e, Binary)
    assert e.op == "and"
    return min(_decide(e.a, ranges), _decide(e.b, ranges))
