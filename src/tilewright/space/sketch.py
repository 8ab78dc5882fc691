"""Sketches: traces whose decisions are open, the structure of a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.schedule import Extent, Step, Trace
from tilewright.schedule.steps import PragmaStep
from tilewright.space.knob import Decision, IntArray, Knob, decisions_in, resolve
from tilewright.space.options import SpaceOptions
from tilewright.space.population import Candidate, Population
from tilewright.te import Task


class Sketch:
    """The steps of a program, with decisions in place of some of their values; `knobs` are what decides them.

    Two sketches are two structures, even if their steps are the same.
    """

    def __init__(self, task: Task, steps: tuple[Step, ...], options: SpaceOptions, name: str = "") -> None:
        self.task = task
        self.steps = steps
        self.options = options  # the device that it was derived for
        self.name = name
        self._open = [_open_values(step) for step in steps]
        values = [value for of_step in self._open for value in of_step.values()]
        self.knobs: tuple[Knob, ...] = tuple(dict.fromkeys(d.knob for value in values for d in decisions_in(value)))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """What its programs have in the place of sums of the task, such as winograd4; mostly nothing."""
        return Trace(self.steps).algorithms

    @property
    def is_exact(self) -> bool:
        """Whether its programs compute the sums of the task themselves, in whatever order."""
        return Trace(self.steps).is_exact

    @cached_property
    def pragma_columns(self) -> tuple[int, ...]:
        """The places of the knobs that say how far pragmas unroll, and nothing else."""
        uses: dict[Knob, set[bool]] = {knob: set() for knob in self.knobs}
        for step, values in zip(self.steps, self._open, strict=True):
            for decision in (d for value in values.values() for d in decisions_in(value)):
                uses[decision.knob].add(isinstance(step, PragmaStep) and decision.columns == (0,))
        return tuple(place for place, knob in enumerate(self.knobs) if uses[knob] == {True})

    def pragmas_of(self, knob: Knob) -> list[PragmaStep]:
        """The pragmas that this knob decides."""
        steps = [step for step in self.steps if isinstance(step, PragmaStep)]
        return [step for step in steps if any(d.knob is knob for d in decisions_in(step.auto_unroll_max_step))]

    @property
    def cardinality(self) -> int:
        """How many candidates there are."""
        return math.prod(knob.cardinality for knob in self.knobs)

    def sample(self, rng: np.random.Generator, n: int) -> Population:
        """`n` random candidates."""
        return self._population([knob.sample(rng, n) for knob in self.knobs], n)

    def sample_plain(self, rng: np.random.Generator, n: int) -> Population:
        """`n` random candidates with few cuts in each loop: there are few of those, and good ones among them."""
        return self._population([knob.sample_plain(rng, n) for knob in self.knobs], n)

    def _population(self, columns: list[IntArray], n: int) -> Population:
        return Population(self, np.stack(columns, axis=1) if columns else np.zeros((n, 0), np.int64))

    def decided(self, rows: IntArray) -> tuple[Step, ...]:
        """The steps with all decisions made: arrays in their place, with an entry for each row."""
        choices = dict(zip(self.knobs, rows.T, strict=True))
        return self._resolved(lambda decision: decision.values(choices[decision.knob]))

    def trace(self, row: Sequence[int]) -> Trace:
        """The trace of one candidate."""
        choices = dict(zip(self.knobs, row, strict=True))
        return Trace(self._resolved(lambda decision: decision.value(choices[decision.knob])))

    def _resolved(self, number: Callable[[Decision], Extent]) -> tuple[Step, ...]:
        return tuple(
            replace(step, **{name: resolve(value, number) for name, value in values.items()}) if values else step
            for step, values in zip(self.steps, self._open, strict=True)
        )

    def candidate_of(self, trace: Trace) -> Candidate | None:
        """The candidate whose trace this is; None where the trace comes from another sketch."""
        if list(map(type, trace.steps)) != list(map(type, self.steps)):
            return None
        allowed = {knob: np.ones(knob.cardinality, np.bool_) for knob in self.knobs}
        for step, made in zip(self.steps, trace.steps, strict=True):
            if not all(_narrow(getattr(step, f.name), getattr(made, f.name), allowed) for f in fields(step)):
                return None
        if not all(mask.any() for mask in allowed.values()):
            return None
        return Candidate(self, tuple(int(np.argmax(allowed[knob])) for knob in self.knobs))

    def __repr__(self) -> str:
        return f"Sketch({self.name or self.task.name}, {len(self.steps)} steps, {len(self.knobs)} knobs)"


def _open_values(step: Step) -> dict[str, Any]:
    """The fields of a step that have decisions in them."""
    values = {f.name: getattr(step, f.name) for f in fields(step)}
    return {name: value for name, value in values.items() if decisions_in(value)}


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
