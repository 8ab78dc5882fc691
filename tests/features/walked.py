"""Features counted the slow way: the loop nest of one concrete schedule, every iteration of it, every address."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.ir import (
    Block,
    Buffer,
    For,
    Load,
    Stmt,
    Store,
    Test,
    Update,
    build_nests,
    expressions,
    values_of,
)
from tilewright.schedule import Schedule
from tilewright.te import COMPARISONS, DTYPES, FLOAT_FUNCTIONS, Binary, Expr, Select, Unary, Var, is_float
from tilewright.te.index import Atom, Linear, Operation

LINE_BYTES = 64
OUTSIDE = 1 << 40


@dataclass(frozen=True, slots=True)
class Walked:
    """One statement of a nest and the loops around it, outermost first."""

    loops: tuple[For, ...]
    stmt: Store | Update

    @property
    def iterations(self) -> int:
        return math.prod(loop.extent for loop in self.loops)

    def extents_of(self, kind: str) -> list[int]:
        return [loop.extent for loop in self.loops if loop.kind == kind]


def main_statements(schedule: Schedule) -> dict[str, Walked]:
    """For each stage of the kernel: its store, or the update of its reduction."""
    found: dict[str, Walked] = {}
    for walked in all_statements(schedule):
        stmt = walked.stmt
        if isinstance(stmt, Store):
            found.setdefault(stmt.buffer.name, walked)
        elif not stmt.buffers[0].name.endswith(".sum"):
            found[stmt.buffers[0].name.removesuffix(".acc").removesuffix(".reg")] = walked
    names = {stage.name for stage in schedule.active_stages}
    return {name: walked for name, walked in found.items() if name in names}


def all_statements(schedule: Schedule) -> list[Walked]:
    found: list[Walked] = []

    def go(stmt: Stmt, loops: tuple[For, ...]) -> None:
        if isinstance(stmt, For):
            go(stmt.body, (*loops, stmt))
        elif isinstance(stmt, Block):
            for inner in stmt.body:
                go(inner, loops)
        else:
            assert isinstance(stmt, Store | Update)
            found.append(Walked(loops, stmt))

    go(build_nests(schedule).kernel.body, ())
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
    for walked in all_statements(schedule):
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
