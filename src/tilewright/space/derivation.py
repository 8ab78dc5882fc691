"""From a task to its sketches: rules are applied to the stages from the last to the first.

A rule that fails costs what would have come of it, and a sketch that cannot be applied costs itself: a task has a space
whatever its rules are up to, if need be one of the plain program alone. What is dropped is a bug in a rule. It is
logged for those who look for it, and fails every test it happens in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.errors import ScheduleError
from tilewright.space.builder import SketchState, SpaceOptions
from tilewright.space.finish import finish
from tilewright.space.plain import plain_schedule
from tilewright.space.rules import DEFAULT_RULES, Rule
from tilewright.space.sketch import Sketch
from tilewright.task import Task

_LOGGER = logging.getLogger(__name__)

# What a rule raises whose picture of the loops is wrong.
_MISFITS = (ScheduleError, AssertionError, LookupError, ValueError)
_NUM_ROWS_TO_TRY = 4


def derive(task: Task, options: SpaceOptions, rules: Sequence[Rule] = DEFAULT_RULES) -> list[Sketch]:
    """All sketches of a task that can be applied; the plain program where there are none."""
    order = [t.name for t in reversed(task.stages)]
    sketches: list[Sketch] = []
    for state in _states(SketchState(task, options), order, rules):
        sketch = _finished(state, f"sketch {len(sketches)}")
        if sketch is not None:
            sketches.append(sketch)
    return sketches or [Sketch(task, plain_schedule(task, options.target, options.threads).steps, "plain")]


def _states(state: SketchState, order: list[str], rules: Sequence[Rule]) -> Iterator[SketchState]:
    """The states in which all stages in `order` have been dealt with."""
    if not order:
        yield state
        return
    name, *rest = order
    if name in state.done or state.stage(name).is_inlined:
        yield from _states(state, rest, rules)
        return
    for rule in rules:
        following = _applied(rule, state, name)
        if following is None:
            continue
        for next_state in following:
            yield from _states(next_state, rest, rules)
        if rule.is_exclusive:
            return


def _applied(rule: Rule, state: SketchState, name: str) -> list[SketchState] | None:
    """What the rule gives for the stage; None where it does not match, or fails."""
    stage = state.stage(name)
    try:
        return rule.apply(state, stage) if rule.matches(state, stage) else None
    except _MISFITS as error:
        _LOGGER.debug("rule %s failed at stage %s of task %s: %r", rule.name, name, state.task.name, error)
        return None


def _finished(state: SketchState, name: str) -> Sketch | None:
    """The sketch of a state; None where it cannot be applied."""
    try:
        sketch = Sketch(state.task, finish(state).steps, name)
        sketch.population(sketch.sample(np.random.default_rng(0), _NUM_ROWS_TO_TRY))
    except _MISFITS as error:
        _LOGGER.debug("a sketch of task %s cannot be applied: %r", state.task.name, error)
        return None
    return sketch
