"""Cycles that the parts of one core need for each statement, from the loop analysis.

What a machine is (lanes, registers, cache sizes, threads) comes from `Hardware`, what its core does in a cycle from the
`CoreModel` in it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.features.accesses import Access
from tilewright.features.analysis import Statement, analyze, traffic
from tilewright.features.conditions import find_conditions
from tilewright.features.hardware import Hardware
from tilewright.features.regions import Floats, Number
from tilewright.features.slices import Slice, find_slices, outermost_parallel
from tilewright.schedule import PARALLEL, VECTORIZE, Loop, Schedule
from tilewright.target import CoreModel
from tilewright.te import Read
from tilewright.te.index import maximum

# A multiply-add, where the target has none: a product, and a sum.
_INSTRUCTIONS_UNFUSED = 2.0

Bounds: TypeAlias = "dict[str, npt.NDArray[np.float64]]"


def roofline(schedule: Schedule, n: int, hardware: Hardware) -> Bounds:
    """For each statement and candidate ([statements, candidates]) the cycles of one core that each part needs.

    `arithmetic`, `loads`, `stores`, `issue` and `latency` are of the core itself, `loops` what entering and leaving
    loops adds; `l2`, `l3` and `memory` move data from there inwards. `share` is the part of the iterations that the
    busiest thread runs, `regions` how often a parallel region begins.
    """
    return bounds_of(analyze(schedule, n, hardware), hardware)


def bounds_of(statements: list[Statement], hardware: Hardware) -> Bounds:
    """The same for statements that are analysed already."""
    slices = find_slices(statements, hardware)
    total = sum((found.touched_lines[0] * hardware.line_bytes for found in slices.values()), np.zeros(statements[0].n))
    for statement in statements:
        if outermost_parallel(statement) is None:
            total = total + statement.working_set[0]
    rows = [
        _Core(statement, hardware).bounds() | _transfers(statement, hardware, slices, total) for statement in statements
    ]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def estimate_cycles(bounds: Bounds, core: CoreModel) -> npt.NDArray[np.float64]:
    """Cycles from start to end of each statement ([statements, candidates]): what bounds it, and a part of the rest."""
    inner = [bounds[name] for name in ("arithmetic", "loads", "stores", "issue", "latency")]
    in_core = _overlapped(inner, core.overlap_loss)
    near = _overlapped([in_core + bounds["loops"], bounds["l2"]], core.l2_overlap_loss)
    busy = _overlapped([near, bounds["l3"], bounds["memory"]], core.overlap_loss)
    cycles: npt.NDArray[np.float64] = busy * bounds["share"] + bounds["regions"] * core.region_cycles
    return cycles


def _overlapped(parts: list[npt.NDArray[np.float64]], loss: float) -> npt.NDArray[np.float64]:
    table = np.stack(parts)
    longest: npt.NDArray[np.float64] = table.max(axis=0)
    rest: npt.NDArray[np.float64] = table.sum(axis=0) - longest
    return longest + loss * rest


class _Core:
    """Instructions of one statement."""

    def __init__(self, statement: Statement, hardware: Hardware) -> None:
        self.statement = statement
        self.hardware = hardware
        self.core = hardware.core
        self.path = statement.path
        self.length = statement.vector_length
        self.pieces = statement.num_vectors(hardware.lanes(statement.element_bytes))
        self.body = statement.body_level
        self.entered = statement.at_level(self.path.outer, self.body)
        self.in_registers = statement.register_level >= 0
        self.register_level = np.maximum(statement.register_level, 0)
        self.conditions = find_conditions(statement.region, statement.unrolled, self.core.select_instructions)

    def bounds(self) -> dict[str, Floats]:
        core = self.core
        executed = self.path.iterations / self.length * self.pieces
        arithmetic = executed * self._arithmetic(core.unfused_units)
        computed = executed * self._arithmetic(_INSTRUCTIONS_UNFUSED)
        loads, stores = self._memory_instructions()
        spilled = self._spilled() * executed
        loads, stores = loads + spilled, stores + spilled
        loops, entries = self._loops()
        straight = (computed + loads + stores) / self.entered
        slow_code = (
            1 + core.undecoded_loss * (straight > core.max_decoded) + core.far_code_loss * (straight > core.max_code)
        )
        tests = self.path.iterations / self.length * self.conditions.remaining
        issued = (computed + loads * core.load_issue + stores + tests) * slow_code + loops * core.loop_instructions
        return {
            "arithmetic": arithmetic / core.arithmetic_per_cycle,
            "loads": loads / core.loads_per_cycle,
            "stores": stores / core.stores_per_cycle,
            "issue": issued / core.instructions_per_cycle,
            "latency": self._latency(),
            "loops": entries * core.loop_entry_cycles,
        }

    def _arithmetic(self, unfused: float) -> Number:
        """Arithmetic instructions of one execution; a multiply-add counts as so many where the target has none."""
        weights = {
            "mad": 1.0 if self.hardware.has_fma else unfused,
            "divmod": self.core.divmod_instructions,
            "math": self.core.math_instructions,
            "bool": self.core.bool_instructions,
        }
        total: Number = 0.0
        for kind, count in self.statement.counts.items():
            what = kind.rpartition("_")[2]
            executed = np.asarray(maximum(0, count - self.conditions.counts[kind]), np.float64)
            total = total + weights.get(what, 1.0) * executed
        return total

    def _memory_instructions(self) -> tuple[Floats, Floats]:
        statement = self.statement
        loads, stores = np.zeros(statement.n), np.zeros(statement.n)
        own, *others = statement.accesses
        for access in others:
            loads += self._loads(access)
        written = self._instructions(own, self.body) * self.entered
        if statement.stage.reduction is None:
            return loads, stores + written
        around = statement.at_level(self.path.outer, self.register_level)
        kept = self._instructions(own, self.register_level) * around
        written = np.where(self.in_registers, kept, written)
        return loads + written, stores + written

    def _loads(self, access: Access) -> Floats:
        """Instructions that read what the access touches: in each run of the straight code each element once.

        Where that holds several steps of a reduction, an element that these share stays only if a register is free.
        """
        once = self._instructions(access, self.body) * self.entered
        if self.statement.stage.reduction is None:
            return once
        inside = np.full(self.statement.n, np.flatnonzero(self.statement.is_reduce)[-1] + 1)
        of_a_step = self._instructions(access, inside)
        every_time = of_a_step * self.statement.at_level(self.path.outer, inside)
        kept = np.clip(self._free_registers() / of_a_step, 0, 1)
        return np.where(self.body < inside, once * kept + every_time * (1 - kept), once)

    def _free_registers(self) -> Floats:
        """Vector registers beside the accumulators and one operand of a reduction."""
        return np.maximum(self.hardware.num_vector_registers - self._accumulators() - self.pieces, 0)

    def _accumulators(self) -> Floats:
        return np.maximum(self.statement.register_tile / self.length * self.pieces, 1)

    def _instructions(self, access: Access, level: npt.NDArray[np.int64]) -> Floats:
        """Instructions that reach all elements that the access touches from that level on, each element once."""
        elements = self.statement.at_level(access.elements, level)
        vector = self.statement.annotated(VECTORIZE)
        if vector is None:
            return elements
        stride = access.stride_of(vector, self.path.extents[vector])
        is_wide = (stride == 1) & (self.length > 1)
        apart = np.where((stride > 1) & (self.length > 1), self.core.gather_instructions, 1.0)
        apart = np.where((stride > 1) & self._turns_blocks(access, vector), self.core.transpose_instructions, apart)
        return np.where(is_wide, elements / self.length * self.pieces, elements * apart)

    def _turns_blocks(self, access: Access, vector: int) -> npt.NDArray[np.bool_]:
        """Whether this is a copy whose rows and columns are exchanged in registers."""
        if vector == 0 or not isinstance(self.statement.stage.body, Read):
            return np.zeros(self.statement.n, np.bool_)
        lanes = self.hardware.lanes(self.statement.element_bytes)
        rows = self.path.extents[vector - 1]
        is_filled = (rows >= lanes) & (self.length % lanes == 0)
        turns: npt.NDArray[np.bool_] = is_filled & (access.stride_of(vector - 1, rows) == 1)
        return turns

    def _spilled(self) -> Floats:
        """The part of the accumulators that the registers do not hold: they come from memory and go back each time."""
        if self.statement.stage.reduction is None:
            return np.zeros(self.statement.n)
        accumulators = self._accumulators()
        products = 0.0 if self.hardware.has_fma else self.core.unfused_registers
        room = np.maximum(self.hardware.num_vector_registers - 1 - self.pieces - products, 1)
        return np.where(self.in_registers, np.maximum(accumulators - room, 0) / accumulators, 0)

    def _loops(self) -> tuple[Floats, Floats]:
        """Iterations of the loops that remain, and how often such a loop is entered."""
        statement = self.statement
        iterations, entries = np.zeros(statement.n), np.zeros(statement.n)
        for position in range(len(self.path.loops)):
            remains = (position < self.body) & statement.runs[position] & ~statement.unrolled[position]
            iterations += np.where(remains, self.path.outer[position + 1], 0)
            entries += np.where(remains, self.path.outer[position], 0)
        return iterations, entries

    def _latency(self) -> Floats:
        """How long sums take whose next addition waits for the last one."""
        statement = self.statement
        if statement.stage.reduction is None:
            return np.zeros(statement.n)
        vector = statement.annotated(VECTORIZE)
        lanes = self.length if vector is not None and self.path.loops[vector].is_reduce else np.ones(statement.n)
        steps = self.path.iterations / np.maximum(statement.register_tile, 1) / lanes
        # Where sums are short, the next tile begins while the last one still waits.
        runs = statement.at_level(self.path.outer, self.register_level)
        instructions = 2 * self.path.iterations / self.length * self.pieces / runs
        in_registers = steps * self.core.mad_latency / np.maximum(self.core.window / instructions, 1)
        reduce = np.flatnonzero(statement.is_reduce[:, 0])
        between = np.ones(statement.n)  # other sums between two additions to the same one
        for position in reduce:
            between = np.where(statement.runs[position], self.path.inner[position + 1], between)
        in_memory = self.path.iterations / between * (self.core.mad_latency + self.core.store_to_load_latency)
        return np.where(self.in_registers, in_registers, in_memory)


def _transfers(
    statement: Statement, hardware: Hardware, slices: dict[Loop, Slice], total_bytes: Floats
) -> dict[str, Floats]:
    """Cycles for data from outer caches, as in repeated runs: what fits a cache as a whole stays there."""
    core = hardware.core
    result: dict[str, Floats] = {}
    iterations = statement.num_parallel
    pieces = np.ceil(iterations / hardware.threads)
    parallel = outermost_parallel(statement)
    for name, size, beyond, rate in (
        ("l2", hardware.l1_bytes, hardware.l2_bytes, core.l2_bytes_per_cycle),
        ("l3", hardware.l2_bytes, hardware.l3_bytes, core.l3_bytes_per_cycle),
        ("memory", hardware.l3_bytes, math.inf, core.memory_bytes_per_cycle),
    ):
        usable = size * core.usable_cache
        found = traffic(statement, usable, hardware.line_bytes)
        moved = found.total_bytes + found.runs * (core.run_lines * hardware.line_bytes)
        if parallel is not None:
            lines, runs = slices[parallel].moved(statement, usable / hardware.line_bytes)
            of_all = (lines + runs * core.run_lines) * hardware.line_bytes * (iterations / pieces)
            moved = np.where(found.level == 0, of_all, moved)
        result[name] = np.where((total_bytes > usable) & (beyond > size), moved, 0) / rate
    unevenness = core.unevenness / pieces if hardware.threads > 1 else 0.0
    result["share"] = pieces / iterations * (1 + unevenness)
    result["regions"] = np.zeros(statement.n)
    position = statement.annotated(PARALLEL)
    # A region is counted once: for the stage whose loop it is.
    if position is not None and position >= statement.num_around and hardware.threads > 1:
        result["regions"] = np.where(statement.runs[position], statement.path.outer[position], 0)
    return result
