"""Statement features: Ansor's five groups, and a sixth for what matters to this compiler.

1. computation: operations by kind; the vectorized, unrolled and parallel loops;
2. the buffers of the statement, those that move most first;
3. how arithmetic intensity grows from the innermost loop outwards;
4. the memory that is allocated for its result;
5. the loops as a whole;
6. lanes, registers, waste, traffic through the caches and balance over the threads, and the cycles that a roofline
   makes of them.

None is negative; all are taken as log2(1 + x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.features.accesses import READ, READ_WRITE, WRITE, Access
from tilewright.features.analysis import Statement, analyze, traffic
from tilewright.features.hardware import Hardware
from tilewright.features.operations import KINDS
from tilewright.features.regions import Booleans, Floats
from tilewright.features.roofline import bounds_of, estimate_cycles
from tilewright.schedule import PARALLEL, VECTORIZE, Schedule

Columns: TypeAlias = "list[tuple[str, Floats | float]]"

MAX_BUFFERS = 5
NUM_SAMPLES = 10
POSITIONS = (
    "none", "inner_spatial", "middle_spatial", "outer_spatial",
    "inner_reduce", "middle_reduce", "outer_reduce", "mixed",
)  # fmt: skip
BUFFER_FEATURES = (
    "is_read", "is_write", "is_readwrite", "bytes", "unique_bytes", "lines", "unique_lines",
    "reuse_loop", "reuse_serial", "reuse_none", "reuse_distance_iterations", "reuse_distance_bytes", "reuse_count",
    "bytes_per_reuse", "unique_bytes_per_reuse", "lines_per_reuse", "unique_lines_per_reuse", "stride",
    "vector_stride",
)  # fmt: skip
ALLOCATION_FEATURES = ("allocated_bytes", "allocated_bytes_total", "allocation_outer", "allocation_inner")
NEST_FEATURES = ("iterations", "num_loops", "auto_unroll_max_step", "is_reduction")
MACHINE_FEATURES = (
    "lane_use", "num_vectors", "register_tile", "accumulators", "register_pressure", "accumulates_in_registers",
    "reduction_run", "body_statements", "body_entered", "recomputed", "tile_waste", "balance", "iterations_of_a_thread",
    *(f"{cache}_{what}" for cache in ("l1", "l2", "l3") for what in ("traffic", "intensity", "working_set", "trips")),
)  # fmt: skip
_BLOCK = 256  # candidates that are transposed at a time, so that they stay in the cache
ESTIMATE = "estimated_cycles"
ROOFLINE_FEATURES = (
    "arithmetic_cycles", "loads_cycles", "stores_cycles", "issue_cycles", "latency_cycles", "loops_cycles",
    "l2_cycles", "l3_cycles", "memory_cycles", ESTIMATE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Features of a population: `values[candidate, statement, feature]`, with a name for each feature."""

    values: npt.NDArray[np.float32]
    names: tuple[str, ...]


def statement_features(schedule: Schedule, n: int, hardware: Hardware) -> FeatureTable:
    """The features of every executed statement, for all `n` candidates of a schedule with arrays as extents.

    >>> import tilewright as tw
    >>> from tilewright import te
    >>> A = te.placeholder((64, 64), name="A")
    >>> s = tw.Schedule(tw.Task([A], [te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")]))
    >>> _ = s["B"].split("j", np.array([8, 16, 64]))
    >>> statement_features(s, 3, Hardware.from_target(tw.Target.native())).values.shape[:2]
    (3, 1)
    """
    return table_of(analyze(schedule, n, hardware), n, hardware)


def table_of(statements: list[Statement], n: int, hardware: Hardware) -> FeatureTable:
    """The features of statements that are analysed already."""
    values = np.empty((n, len(statements), len(FEATURE_NAMES)), np.float32)
    bounds = bounds_of(statements, hardware)
    bounds[ESTIMATE.removesuffix("_cycles")] = estimate_cycles(bounds, hardware.core)
    rows = np.empty((len(FEATURE_NAMES), n), np.float32)
    for number, statement in enumerate(statements):
        roofs = [(name, bounds[name.removesuffix("_cycles")][number]) for name in ROOFLINE_FEATURES]
        for row, (_, column) in zip(rows, [*raw_features(statement, hardware), *roofs], strict=True):
            row[:] = column
        rows += 1
        np.log2(rows, out=rows)
        for start in range(0, n, _BLOCK):
            values[start : start + _BLOCK, number] = rows[:, start : start + _BLOCK].T
    return FeatureTable(values, FEATURE_NAMES)


def raw_features(statement: Statement, hardware: Hardware) -> Columns:
    """Name and value of each feature that one statement has by itself, before the logarithm."""
    return [
        *_computation(statement),
        *_buffers(statement, hardware.line_bytes),
        *_intensity(statement),
        *allocation_features(statement),
        *nest_features(statement),
        *machine_features(statement, hardware),
    ]


# --- 1. computation ---------------------------------------------------------------------------------------------------


def _computation(statement: Statement) -> Columns:
    columns: Columns = [(kind, statement.path.iterations * statement.counts[kind]) for kind in KINDS]
    kinds: dict[str, Booleans] = {"unroll": statement.unrolled}
    for name, annotation in (("vectorize", VECTORIZE), ("parallel", PARALLEL)):
        flags = [loop.annotation == annotation for loop in statement.path.loops]
        kinds[name] = np.array(flags, np.bool_).reshape(-1, 1)
    places = _Places(statement)
    for name, mask in kinds.items():
        columns += places.describe(name, mask)
    return columns


class _Places:
    """Where in the nest loops stand: the first, the last or between, of the spatial or the reduction loops."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        runs, is_reduce = statement.runs, statement.is_reduce
        self.tables: dict[str, Booleans] = {}
        for name, member in (("spatial", runs & ~is_reduce), ("reduce", runs & is_reduce)):
            so_far = np.cumsum(member, axis=0)
            self.tables[name] = member
            self.tables[f"inner_{name}"] = member & (so_far == so_far[-1:])
            self.tables[f"outer_{name}"] = member & (so_far == 1)

    def describe(self, name: str, mask: Booleans) -> Columns:
        """Number, product, innermost length and position of the loops in `mask` (those that run more than once)."""
        statement = self.statement
        chosen = mask & statement.runs
        number = np.count_nonzero(chosen, axis=0)
        if not number.any():
            return [
                (f"{name}_num", 0.0),
                (f"{name}_product", 1.0),
                (f"{name}_length", 0.0),
                *((f"{name}_{position}", float(position == "none")) for position in POSITIONS),
            ]
        extents = np.where(chosen, statement.path.extents, 1.0)
        last = len(chosen) - 1 - np.argmax(chosen[::-1], axis=0)
        length = np.where(number > 0, statement.path.extents[last, np.arange(statement.n)], 0)
        return [
            (f"{name}_num", number.astype(np.float64)),
            (f"{name}_product", extents.prod(axis=0)),
            (f"{name}_length", length),
            *((f"{name}_{position}", flag.astype(np.float64)) for position, flag in self._positions(chosen).items()),
        ]

    def _positions(self, chosen: Booleans) -> dict[str, Booleans]:
        has: dict[str, Booleans] = {key: np.any(chosen & table, axis=0) for key, table in self.tables.items()}
        flags = {"none": ~(has["spatial"] | has["reduce"])}
        for name, other in (("spatial", "reduce"), ("reduce", "spatial")):
            only = has[name] & ~has[other]
            inner, outer = has[f"inner_{name}"], has[f"outer_{name}"] & ~has[f"inner_{name}"]
            flags[f"inner_{name}"] = only & inner
            flags[f"middle_{name}"] = only & ~inner & ~outer
            flags[f"outer_{name}"] = only & outer
        flags["mixed"] = has["spatial"] & has["reduce"]
        return {position: flags[position] for position in POSITIONS}


# --- 2. buffers -------------------------------------------------------------------------------------------------------


def _buffers(statement: Statement, line_bytes: int) -> Columns:
    accesses = statement.accesses
    table = np.zeros((max(len(accesses), MAX_BUFFERS), len(BUFFER_FEATURES), statement.n))
    for rows, access in zip(table, accesses, strict=False):
        features = access_features(statement, access, line_bytes)
        for row, name in zip(rows, BUFFER_FEATURES, strict=True):
            row[:] = features[name]
    lines, num_bytes = BUFFER_FEATURES.index("lines"), BUFFER_FEATURES.index("bytes")
    order = np.lexsort((-table[: len(accesses), num_bytes], -table[: len(accesses), lines]), axis=0)
    if statement.n and np.all(order == order[:, :1]):
        table[: len(accesses)] = table[order[:, 0]]
    else:
        table[: len(accesses)] = np.take_along_axis(table[: len(accesses)], order[:, None, :], axis=0)
    return [
        (f"buffer{number}_{name}", table[number, k])
        for number in range(MAX_BUFFERS)
        for k, name in enumerate(BUFFER_FEATURES)
    ]


def access_features(statement: Statement, access: Access, line_bytes: int) -> dict[str, Floats | Booleans | float]:
    """The features of one buffer of the statement, by the names in BUFFER_FEATURES."""
    path = statement.path
    amounts = {
        "bytes": path.iterations * (access.num_accesses * access.element_bytes),
        "unique_bytes": access.elements[0] * access.element_bytes,
        "lines": _lines_entered(statement, access, line_bytes),
        "unique_lines": access.lines[0],
    }
    reuse = _reuse(statement, access)
    # Without reuse, twice as much: half a reuse, so that the value differs from that of a single one.
    divisor = np.where(reuse.count > 0, reuse.count, 0.5)
    vector = statement.annotated(VECTORIZE)
    return {
        **{f"is_{kind}": float(access.kind == kind) for kind in (READ, WRITE, READ_WRITE)},
        **amounts,
        **dict(zip(("reuse_loop", "reuse_serial", "reuse_none"), reuse.types, strict=True)),
        "reuse_distance_iterations": reuse.distance_iterations,
        "reuse_distance_bytes": reuse.distance_bytes,
        "reuse_count": reuse.count,
        **{f"{name}_per_reuse": amount / divisor for name, amount in amounts.items()},
        "stride": innermost_step(statement, access),
        "vector_stride": 0.0 if vector is None else access.stride_of(vector, path.extents[vector]),
    }


def innermost_step(statement: Statement, access: Access) -> Floats:
    """The step in elements of the innermost loop that moves the access; 0 where none does."""
    stride = np.zeros(statement.n)
    for position in sorted(access.loops):
        extent = statement.path.extents[position]
        stride = np.where(extent > 1, access.stride_of(position, extent), stride)
    return stride


def _lines_entered(statement: Statement, access: Access, line_bytes: int) -> Floats:
    """How often the access goes from one cache line to another, the first one included."""
    entered = np.ones(statement.n)
    for position in range(len(statement.path.loops) - 1, -1, -1):
        extent = statement.path.extents[position]
        if position in access.loops:
            step_bytes = np.minimum(access.stride_of(position, extent) * access.element_bytes, line_bytes)
            walked = np.maximum(np.ceil(extent * step_bytes / line_bytes), 1)
        else:
            walked = np.ones(statement.n)
        entered = np.where(entered > 1, entered * extent, walked)
    return entered


@dataclass(frozen=True, slots=True)
class _Reuse:
    types: tuple[Booleans, ...]  # by a loop, by another statement, none
    distance_iterations: Floats
    distance_bytes: Floats
    count: Floats


def _reuse(statement: Statement, access: Access) -> _Reuse:
    """The innermost loop that does not move the access reuses it, else another statement that uses the buffer."""
    path, columns = statement.path, np.arange(statement.n)
    still = np.ones((len(path.loops), 1), np.bool_)
    still[list(access.loops)] = False
    still[: access.num_around] = False
    chosen = still & statement.runs
    by_loop: Booleans = np.any(chosen, axis=0)
    if by_loop.any():
        last = len(chosen) - 1 - np.argmax(chosen[::-1], axis=0)
        count = np.where(by_loop, path.extents[last, columns], 0)
        iterations = np.where(by_loop, path.inner[last + 1, columns], 0)
        distance = np.where(by_loop, statement.touched_bytes[last + 1, columns], 0)
    else:
        count, iterations, distance = np.zeros(statement.n), np.zeros(statement.n), np.zeros(statement.n)
    by_statement = ~by_loop & access.is_intermediate
    if by_statement.any():
        level = statement.num_around
        count = np.where(by_statement, 1.0, count)
        iterations = np.where(by_statement, path.inner[level], iterations)
        distance = np.where(by_statement, statement.working_set[level], distance)
    flags = by_loop, by_statement, ~(by_loop | by_statement)
    return _Reuse(tuple(flags), iterations, distance, count)


# --- 3. intensity, 4. allocation, 5. loops ----------------------------------------------------------------------------


def _intensity(statement: Statement) -> Columns:
    """Operations for each byte touched, at equal steps of log(operations) from the innermost loop outwards."""
    work = np.log2(1 + statement.path.inner[::-1] * max(statement.flops, 1))
    ratio = (statement.path.inner * statement.flops / statement.touched_bytes)[::-1]
    columns = np.arange(statement.n)
    result: Columns = []
    for sample in range(1, NUM_SAMPLES + 1):
        wanted = work[-1] * (sample / NUM_SAMPLES)
        above = np.minimum(np.count_nonzero(work < wanted - 1e-9, axis=0), len(work) - 1)
        below = np.maximum(above - 1, 0)
        x0, x1, y0, y1 = work[below, columns], work[above, columns], ratio[below, columns], ratio[above, columns]
        part = np.where(x1 > x0, np.minimum((wanted - x0) / np.where(x1 > x0, x1 - x0, 1), 1), 1)
        result.append((f"intensity{sample}", y0 + (y1 - y0) * np.maximum(part, 0)))
    return result


def allocation_features(statement: Statement) -> Columns:
    """The memory for the statement's result, where it is not an output of the kernel."""
    path, level = statement.path, statement.num_around
    is_allocated = not statement.stage.is_output
    written = statement.accesses[0]
    size = written.elements[level] * written.element_bytes if is_allocated else 0.0
    return [
        ("allocated_bytes", size),
        ("allocated_bytes_total", size * path.outer[level]),
        ("allocation_outer", path.outer[level] * is_allocated),
        ("allocation_inner", path.inner[level] * is_allocated),
    ]


def nest_features(statement: Statement) -> Columns:
    """The loops around the statement as a whole."""
    stage = statement.stage
    max_step: Floats | float = 0.0
    for loop in statement.path.loops:
        max_step = np.maximum(max_step, np.asarray(loop.stage.pragmas.get(loop, 0), np.float64))
    return [
        ("iterations", statement.path.iterations),
        ("num_loops", np.count_nonzero(statement.runs, axis=0).astype(np.float64)),
        ("auto_unroll_max_step", max_step),
        ("is_reduction", float(stage.reduction is not None)),
    ]


# --- 6. this machine --------------------------------------------------------------------------------------------------


def machine_features(statement: Statement, hardware: Hardware) -> Columns:
    """How the statement uses lanes, registers, threads and caches."""
    lanes = hardware.lanes(statement.element_bytes)
    length = statement.vector_length
    vectors = statement.num_vectors(lanes)
    tile = statement.register_tile
    accumulators = tile / length * vectors
    path, body = statement.path, statement.body_level
    parallel, threads = statement.num_parallel, hardware.threads
    own = path.inner[statement.num_around]
    roots = np.ones(1)
    for loop in statement.stage.root_loops:
        roots = roots * np.asarray(loop.extent, np.float64)
    columns: Columns = [
        ("lane_use", length / (vectors * lanes)),
        ("num_vectors", vectors),
        ("register_tile", tile),
        ("accumulators", accumulators),
        ("register_pressure", accumulators / hardware.num_vector_registers),
        ("accumulates_in_registers", (statement.register_level >= 0).astype(np.float64)),
        ("reduction_run", _reduction_run(statement)),
        ("body_statements", statement.at_level(path.inner, body)),
        ("body_entered", statement.at_level(path.outer, body)),
        ("recomputed", path.iterations / statement.needed),
        ("tile_waste", own / roots),
        ("balance", np.ceil(parallel / threads) * threads / parallel),
        ("iterations_of_a_thread", path.iterations / np.minimum(parallel, threads)),
    ]
    for name, size in (("l1", hardware.l1_bytes), ("l2", hardware.l2_bytes), ("l3", hardware.l3_bytes)):
        moved = traffic(statement, size, hardware.line_bytes)
        columns += [
            (f"{name}_traffic", moved.total_bytes),
            (f"{name}_intensity", path.iterations * statement.flops / moved.total_bytes),
            (f"{name}_working_set", statement.at_level(statement.working_set, moved.level)),
            (f"{name}_trips", statement.at_level(path.outer, moved.level)),
        ]
    return columns


def _reduction_run(statement: Statement) -> Floats:
    """How many times in a row an accumulator is added to before it leaves the registers."""
    if not statement.is_reduce.any():
        return np.zeros(statement.n)
    inside = statement.path.product_of(frozenset(np.flatnonzero(statement.is_reduce[:, 0]).tolist()))
    return np.where(
        statement.register_level < 0, 0.0, statement.at_level(inside, np.maximum(statement.register_level, 0))
    )


def _feature_names() -> tuple[str, ...]:
    loops = [
        f"{kind}_{what}"
        for kind in ("unroll", "vectorize", "parallel")
        for what in ("num", "product", "length", *POSITIONS)
    ]
    buffers = [f"buffer{number}_{name}" for number in range(MAX_BUFFERS) for name in BUFFER_FEATURES]
    intensity = [f"intensity{k}" for k in range(1, NUM_SAMPLES + 1)]
    rest = (*ALLOCATION_FEATURES, *NEST_FEATURES, *MACHINE_FEATURES, *ROOFLINE_FEATURES)
    return (*KINDS, *loops, *buffers, *intensity, *rest)


FEATURE_NAMES = _feature_names()
_OWN_FEATURES = {
    "is_reduction",
    *(f"buffer{number}_vector_stride" for number in range(MAX_BUFFERS)),
    *MACHINE_FEATURES,
    *ROOFLINE_FEATURES,
}
PUBLISHED_FEATURE_NAMES = tuple(name for name in FEATURE_NAMES if name not in _OWN_FEATURES)
"""Those that Ansor has, too."""
