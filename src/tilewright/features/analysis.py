"""The loop analysis that features and the analytical model share: one `Statement` for each executed stage.

Nothing is lowered and no candidate is looked at alone: every quantity is an array over the population, most of them
for all levels of the loops at once (see `regions` for what a level is).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from tilewright.features.accesses import READ, WRITE, Access, find_accesses
from tilewright.features.hardware import Hardware
from tilewright.features.operations import count_operations, flops
from tilewright.features.regions import Booleans, Floats, LoopPath, Region, find_regions
from tilewright.schedule import PARALLEL, VECTORIZE, Schedule, Stage, Unrolling
from tilewright.te import DTYPES

Integers = npt.NDArray[np.int64]


class Statement:
    """The store, or the update of a reduction, of one stage, inside all loops that run around it."""

    def __init__(self, schedule: Schedule, region: Region, accesses: list[Access], unrolling: Unrolling) -> None:
        self.region = region
        self.stage: Stage = region.stage
        self.path: LoopPath = region.path
        self.n: int = region.path.extents.shape[1]
        self._columns = np.arange(self.n)
        # Only one loop of a path can be vectorized, and one parallel.
        self._annotated = {loop.annotation: position for position, loop in enumerate(self.path.loops)}
        self.num_around = region.num_around
        self.accesses = accesses
        self.counts = count_operations(self.stage)
        self.flops = flops(self.counts)
        self.element_bytes = DTYPES[self.stage.tensor.dtype].bytes
        self.is_reduce = np.array([loop.is_reduce for loop in self.path.loops], np.bool_).reshape(-1, 1)
        self.unrolled: Booleans = np.empty(self.path.extents.shape, np.bool_)
        for row, loop in zip(self.unrolled, self.path.loops, strict=True):
            row[:] = unrolling.is_unrolled(loop)
        self.register_level: Integers = np.full(self.n, -1)  # from which loop on a reduction runs on registers alone
        if self.stage.reduction is not None:
            level = np.asarray(unrolling.accumulations[self.stage].level)
            self.register_level[:] = np.where(level < 0, -1, level + self.num_around)
        self.working_set: Floats = np.zeros_like(self.path.inner)  # bytes of the lines that all that runs touches
        self.needed: Floats = np.full(self.n, _numel(schedule, self.stage))  # iterations that compute something new

    @cached_property
    def runs(self) -> Booleans:
        """Which loops run more than once; the others do not exist in the nest."""
        return self.path.extents > 1

    @cached_property
    def touched_bytes(self) -> Floats:
        """Bytes of different elements that this statement alone touches, at each level."""
        total = np.zeros_like(self.path.inner)
        for access in self.accesses:
            total += access.elements * access.element_bytes
        return total

    def annotated(self, annotation: str) -> int | None:
        """The position of the loop with that annotation, PARALLEL or VECTORIZE."""
        return self._annotated.get(annotation)

    @cached_property
    def vector_length(self) -> Floats:
        position = self.annotated(VECTORIZE)
        return np.ones(self.n) if position is None else cast(Floats, self.path.extents[position])

    @cached_property
    def num_parallel(self) -> Floats:
        """Iterations of the parallel loop; 1 where there is none."""
        position = self.annotated(PARALLEL)
        return np.ones(self.n) if position is None else cast(Floats, self.path.extents[position])

    @cached_property
    def body_level(self) -> Integers:
        """From which level on everything is straight code: unrolled, or in vector lanes."""
        straight = self.unrolled | ~self.runs
        vector = self.annotated(VECTORIZE)
        if vector is not None:
            straight[vector] = True
        num_straight = np.cumprod(straight[::-1], axis=0).sum(axis=0) if len(straight) else np.zeros(self.n, np.int64)
        return cast(Integers, len(straight) - num_straight)

    @cached_property
    def register_tile(self) -> Floats:
        """Elements of the result that a reduction keeps in registers; of other statements, that one body computes."""
        if not self.is_reduce.any():
            return self.at_level(self.path.inner, self.body_level)
        spatial = self.path.product_of(frozenset(p for p, loop in enumerate(self.path.loops) if not loop.is_reduce))
        return np.where(self.register_level < 0, 0.0, self.at_level(spatial, np.maximum(self.register_level, 0)))

    def num_vectors(self, lanes: int) -> Floats:
        """Instructions for one vector: whole registers, then a rest of powers of two."""
        length = self.vector_length.astype(np.int64)
        return (length // lanes + np.bitwise_count(length % lanes)).astype(np.float64)

    def runs_per_line(self, access: Access) -> Floats:
        """Of the lines that the access moves, the part at which it jumps: in the innermost loop that is left."""
        innermost = np.maximum(self.body_level - 1, 0)
        return self.at_level(access.runs, innermost) / self.at_level(access.lines, innermost)

    def at_level(self, table: Floats, level: Integers) -> Floats:
        """The row of `table` that `level` names, for each candidate its own."""
        return table[level, self._columns]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a statement moves into a cache of some size, in all its iterations, and in how many runs."""

    read_bytes: Floats
    written_bytes: Floats
    runs: Floats
    level: Integers  # the outermost loop across which the cache keeps what was touched

    @property
    def total_bytes(self) -> Floats:
        return self.read_bytes + self.written_bytes


def traffic(statement: Statement, cache_bytes: float, line_bytes: int) -> Traffic:
    """What a cache of that size has to fetch and write back.

    Data that one iteration of a loop touches is still there in the next one if everything that an iteration touches
    fits; the outermost such loop is found, and what it touches as a whole is moved once for each time it is entered.
    """
    level = np.count_nonzero(statement.working_set[1:] > cache_bytes, axis=0)
    times = statement.at_level(statement.path.outer, level)
    read, written, runs = (np.zeros(statement.n) for _ in range(3))
    for access in statement.accesses:
        lines = statement.at_level(access.lines, level) * times
        moved = lines * line_bytes
        runs += lines * statement.runs_per_line(access)
        if access.kind != WRITE:
            read += moved
        if access.kind != READ:
            written += moved
    return Traffic(read, written, runs, level)


def analyze(schedule: Schedule, n: int, hardware: Hardware) -> list[Statement]:
    """The executed statements of a schedule or population of `n` candidates, producers before consumers."""
    regions = find_regions(schedule, n)
    unrolling = Unrolling(schedule)
    statements = [
        Statement(schedule, regions[stage], find_accesses(schedule, regions, stage, hardware.line_bytes), unrolling)
        for stage in schedule.active_stages
        if not schedule.is_prepacked(stage)
    ]
    _add_working_sets(statements, hardware)
    return statements


def _add_working_sets(statements: list[Statement], hardware: Hardware) -> None:
    """Inside loops that statements share, each of them takes its part of the caches; a buffer of both counts once."""
    cache_lines = hardware.l1_bytes / hardware.line_bytes
    taken = [{access.buffer: access.taken_lines(cache_lines) for access in s.accesses} for s in statements]
    for statement, own in zip(statements, taken, strict=True):
        counted = dict(own)
        for other, others in zip(statements, taken, strict=True):
            common = 0 if other is statement else _num_common_loops(statement.path, other.path)
            if common == 0:
                continue
            for buffer, lines in others.items():
                table = counted.get(buffer)
                table = np.zeros_like(statement.working_set) if table is None else table.copy()
                np.maximum(table[:common], lines[:common], out=table[:common])
                counted[buffer] = table
        for table in counted.values():
            statement.working_set += table
        statement.working_set *= hardware.line_bytes


def _num_common_loops(a: LoopPath, b: LoopPath) -> int:
    count = 0
    for x, y in zip(a.loops, b.loops, strict=False):
        if x is not y:
            break
        count += 1
    return count


def _numel(schedule: Schedule, stage: Stage) -> Floats:
    """Elements of the stage's tensor times what each reduces over."""
    total: Floats = np.ones(1)
    for extent in (*stage.tensor.shape, *(axis.extent for axis in stage.reduce_axes)):
        total = total * np.asarray(extent, np.float64)
    return total
