"""The loops and buffers of one concrete program, walked in plain Python: what encoders are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.features import Encoder, Statement, analyze, hardware_of
from tilewright.schedule import Loop, Schedule, Stage, enclosing_loops
from tilewright.space import Population, Sketch, SpaceOptions
from tilewright.target import Target

OPTIONS = SpaceOptions(Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2)


@dataclass(frozen=True, slots=True)
class OneProgram:
    """A schedule with ints for extents, and its statements, producers first."""

    schedule: Schedule
    statements: list[Statement]

    @staticmethod
    def of(population: Population, number: int) -> OneProgram:
        schedule = population.trace(number).apply(population.sketch.task)
        return OneProgram(schedule, analyze(schedule, 1, hardware_of(population)))

    def stages(self) -> list[Stage]:
        """Those that the kernel computes."""
        return [stage for stage in self.schedule.active_stages if not self.schedule.is_prepacked(stage)]

    def path(self, stage: Stage) -> list[Loop]:
        return [*enclosing_loops(stage), *stage.leaves]

    def extent(self, loop: Loop) -> int:
        extent = loop.extent
        assert isinstance(extent, int)
        return extent

    def product(self, loops: list[Loop]) -> int:
        return math.prod(map(self.extent, loops))

    def statement(self, stage: Stage) -> Statement:
        return next(statement for statement in self.statements if statement.stage is stage)

    def touched(self, stages: list[Stage], level: int) -> dict[str, float]:
        """Bytes that the stages touch while their loops from `level` on run, by buffer, read and written apart."""
        sizes: dict[tuple[str, str], float] = {}
        for stage in stages:
            for access in self.statement(stage).accesses:
                size = float(access.elements[level][0]) * access.element_bytes
                kinds = {"read": ["read"], "write": ["written"], "readwrite": ["read", "written"]}[access.kind]
                for kind in ["touched", *kinds]:
                    key = f"{kind}_bytes", access.buffer
                    sizes[key] = max(sizes.get(key, 0.0), size)
        total = {"touched_bytes": 0.0, "read_bytes": 0.0, "written_bytes": 0.0}
        for (kind, _), size in sizes.items():
            total[kind] += size
        return total


def population_of(schedule: Schedule) -> Population:
    """A schedule by hand as a population of one."""
    sketch = Sketch(schedule.task, schedule.trace.steps, OPTIONS)
    return Population(sketch, np.zeros((1, 0), np.int64))


def told(columns: tuple[str, ...], row: NDArray[np.float32], as_is: tuple[str, ...] = ()) -> dict[str, float]:
    """What a row says, before the logarithm and without what is 0."""
    numbers = {name: float(x) if name in as_is else float(np.exp2(x)) - 1 for name, x in zip(columns, row, strict=True)}
    return {name: number for name, number in numbers.items() if number != 0}


def rows_of(encoder: Encoder, values: NDArray[np.float32]) -> list[dict[str, float]]:
    """What each row of one program says."""
    return [told(encoder.columns, row, as_is=("parent",)) for row in values]
