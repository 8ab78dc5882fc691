"""Sketches: traces whose decisions are open, the structure of a program."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.schedule import Step, Trace
from tilewright.space.knob import Decision, IntArray, Knob, resolve
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
        self.knobs: tuple[Knob, ...] = tuple(dict.fromkeys(d.knob for step in steps for d in _decisions(step)))

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
        return tuple(
            replace(step, **{f.name: resolve(getattr(step, f.name), choices) for f in fields(step)})
            for step in self.steps
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


def _decisions(step: Step) -> Iterator[Decision]:
    for f in fields(step):
        value = getattr(step, f.name)
        parts = value if isinstance(value, tuple) else (value,)
        yield from (part for part in parts if isinstance(part, Decision))


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
