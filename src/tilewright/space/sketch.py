"""Sketches: a trace with its decisions open, and candidates as rows of integers that close them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.schedule import Schedule, Step, Trace
from tilewright.space.knob import Decision, IntArray, Knob, resolve
from tilewright.te import Task


class Sketch:
    """The structure of a program. A candidate is a row with a choice for each knob; a population is a matrix."""

    def __init__(self, task: Task, steps: tuple[Step, ...], name: str = "") -> None:
        self.task = task
        self.steps = steps
        self.name = name
        self.knobs: tuple[Knob, ...] = _knobs(steps)
        self._last: tuple[IntArray, Schedule] | None = None

    @property
    def cardinality(self) -> int:
        total = 1
        for knob in self.knobs:
            total *= knob.cardinality
        return total

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """`n` random candidates."""
        return _as_rows([knob.sample(rng, n) for knob in self.knobs], n)

    def sample_plain(self, rng: np.random.Generator, n: int) -> IntArray:
        """`n` random candidates with few cuts in each loop: there are few of those, and good ones among them."""
        return _as_rows([knob.sample_plain(rng, n) for knob in self.knobs], n)

    def population(self, rows: IntArray) -> Schedule:
        """All candidates as one schedule, whose extents are arrays; for the same array again, the same schedule."""
        if self._last is not None and self._last[0] is rows:
            return self._last[1]
        choices = {knob: rows[:, position] for position, knob in enumerate(self.knobs)}
        schedule = Schedule(self.task)
        schedule.replay(_resolved(step, choices) for step in self.steps)
        self._last = rows, schedule
        return schedule

    def trace(self, row: IntArray) -> Trace:
        """The trace of one candidate."""
        choices = {knob: row[position : position + 1] for position, knob in enumerate(self.knobs)}
        return Trace(tuple(_resolved(step, choices).candidate(0) for step in self.steps))

    def row_of(self, trace: Trace) -> IntArray | None:
        """The row whose trace this is; None where the trace comes from another sketch."""
        if len(trace.steps) != len(self.steps):
            return None
        allowed = {knob: np.ones(knob.cardinality, bool) for knob in self.knobs}
        for step, concrete in zip(self.steps, trace.steps, strict=True):
            if type(step) is not type(concrete):
                return None
            for f in fields(step):
                if not _narrow(getattr(step, f.name), getattr(concrete, f.name), allowed):
                    return None
        if not all(mask.any() for mask in allowed.values()):
            return None
        return np.asarray([np.argmax(allowed[knob]) for knob in self.knobs], np.int64)

    def __repr__(self) -> str:
        return f"Sketch({self.name or self.task.name}, {len(self.steps)} steps, {len(self.knobs)} knobs)"


def _as_rows(columns: list[IntArray], n: int) -> IntArray:
    return np.stack(columns, axis=1) if columns else np.zeros((n, 0), np.int64)


def _knobs(steps: tuple[Step, ...]) -> tuple[Knob, ...]:
    found: dict[Knob, None] = {}

    def visit(value: Any) -> None:
        if isinstance(value, Decision):
            found[value.knob] = None
        elif isinstance(value, tuple):
            for v in value:
                visit(v)

    for step in steps:
        for f in fields(step):
            visit(getattr(step, f.name))
    return tuple(found)


def _resolved(step: Step, choices: dict[Knob, IntArray]) -> Step:
    values = {f.name: resolve(getattr(step, f.name), choices) for f in fields(step)}
    return replace(step, **values)


def _narrow(open_value: Any, value: Any, allowed: dict[Knob, npt.NDArray[np.bool_]]) -> bool:
    """Keep the choices that give `value`; False where the fixed parts differ."""
    if isinstance(open_value, Decision):
        knob = open_value.knob
        allowed[knob] &= open_value.values(np.arange(knob.cardinality)) == value
        return True
    if isinstance(open_value, tuple):
        same_length = isinstance(value, tuple) and len(open_value) == len(value)
        return same_length and all(_narrow(o, v, allowed) for o, v in zip(open_value, value, strict=True))
    return bool(open_value == value)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of one sketch."""

    sketch: Sketch
    row: tuple[int, ...]

    @property
    def trace(self) -> Trace:
        return self.sketch.trace(np.asarray(self.row, np.int64))
