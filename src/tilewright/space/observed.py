"""Sketches of programs that are known by their traces alone.

A trace of a template that nobody registered, or of rules that were changed since, is no candidate of the space that is
derived today. What was measured of it is knowledge all the same: traces that differ in numbers alone are one sketch,
whose one knob has a choice for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.errors import TilewrightError
from tilewright.schedule import Step, Trace
from tilewright.schedule.steps import PragmaStep, SplitStep
from tilewright.space.knob import Decision, NumberKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.population import Candidate
from tilewright.space.sketch import Sketch
from tilewright.space.sketch_state import open_pragma, open_split
from tilewright.te import Task

MOST_SKETCHES = 64
"""Each sketch costs a pass over its population: traces of rarer structures than these are left out."""
_TOO_LARGE = 2**63  # for the table of a knob; no loop is that long


class ObservedKnob(NumberKnob):
    """All numbers of a program, of those programs that were seen."""

    kind = "observed"


def observed_candidates(task: Task, traces: Sequence[Trace], options: SpaceOptions) -> dict[Trace, Candidate]:
    """Each trace as a candidate, those of one structure of one sketch; what is no program of the task is left out."""
    groups: dict[tuple[Step, ...], list[Trace]] = {}
    for trace in dict.fromkeys(traces):
        if max(_numbers(trace), default=0) >= _TOO_LARGE:
            continue
        groups.setdefault(_structure(trace), []).append(trace)
    largest = sorted(groups.values(), key=len, reverse=True)[:MOST_SKETCHES]
    return {trace: candidate for group in largest for trace, candidate in _candidates(task, group, options)}


def _structure(trace: Trace) -> tuple[Step, ...]:
    return tuple(_without_numbers(step) for step in trace.steps)


def _without_numbers(step: Step) -> Step:
    if isinstance(step, SplitStep):
        return replace(step, factors=(0,) * len(step.factors))
    return replace(step, auto_unroll_max_step=0) if isinstance(step, PragmaStep) else step


def _numbers(trace: Trace) -> list[int]:
    """The numbers of its steps, in order; those of a concrete trace are integers."""
    found: list[int] = []
    for step in trace.steps:
        if isinstance(step, SplitStep):
            found += map(int, step.factors)
        elif isinstance(step, PragmaStep):
            found.append(step.auto_unroll_max_step)
    return found


def _candidates(task: Task, traces: Sequence[Trace], options: SpaceOptions) -> Iterator[tuple[Trace, Candidate]]:
    table = [_numbers(trace) for trace in traces]
    knob = ObservedKnob("numbers", table) if table[0] else None
    sketch = Sketch(task, tuple(_opened(traces[0], knob)), options, "observed")
    for number, trace in enumerate(traces):
        try:
            trace.apply(task)
        except TilewrightError:
            continue
        yield trace, Candidate(sketch, () if knob is None else (number,))


def _opened(trace: Trace, knob: ObservedKnob | None) -> Iterator[Step]:
    """The steps with a decision in place of each number."""
    column = 0
    for step in trace.steps:
        if knob is not None and isinstance(step, SplitStep):
            end = column + len(step.factors)
            yield open_split(step.stage, step.loop, *(Decision(knob, (number,)) for number in range(column, end)))
            column = end
        elif knob is not None and isinstance(step, PragmaStep):
            yield open_pragma(step.stage, step.loop, Decision(knob, (column,)))
            column += 1
        else:
            yield step
