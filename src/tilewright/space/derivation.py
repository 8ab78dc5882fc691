"""From a task to its sketches: rules are applied to the stages from the last to the first.

A rule that fails costs what would have come of it, and a sketch that cannot be applied costs itself: a task has a space
whatever its rules are up to, if need be one of the plain program alone. What is dropped is a bug in a rule. It is
logged for those who look for it, and fails every test it happens in.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from tilewright.errors import ScheduleError
from tilewright.schedule.steps import AlgorithmStep
from tilewright.space.annotation import annotate
from tilewright.space.options import SpaceOptions
from tilewright.space.plain import plain_schedule
from tilewright.space.rules import DEFAULT_RULES, Rule
from tilewright.space.sketch import Sketch
from tilewright.space.sketch_state import SketchState
from tilewright.te import Task
from tilewright.te.algorithms import algorithms_for

_LOGGER = logging.getLogger(__name__)

# What a rule raises whose picture of the loops is wrong.
MISFITS = (ScheduleError, AssertionError, LookupError, ValueError)
_NUM_CANDIDATES_TO_TRY = 4
# How many states are followed: two products in a chain have 16, and each more would multiply them, and the time to look
# at them, by four. Each step of a derivation takes the longer the more stages there are.
_MAX_STATES, _LEAST_STATES, _MAX_STATES_TIMES_STAGES = 32, 4, 256


def derive(task: Task, options: SpaceOptions, rules: Sequence[Rule] = DEFAULT_RULES) -> list[Sketch]:
    """The sketches of a task that can be applied; the plain program where there are none.

    Where choices multiply, as those of many products in one task do, only some of them are followed.
    """
    sketches: list[Sketch] = []
    for start in _starts(task, options):
        for state in _derived(start, rules):
            sketch = _finished(state, f"sketch {len(sketches)}")
            if sketch is not None:
                sketches.append(sketch)
    return sketches or [Sketch(task, plain_schedule(task, options.target, options.threads).steps, options, "plain")]


def _starts(task: Task, options: SpaceOptions) -> list[SketchState]:
    """The task as it is, and with each algorithm that one of its stages may be computed by."""
    steps = [AlgorithmStep(stage.name, name) for stage in task.stages for name in algorithms_for(stage, options.exact)]
    return [SketchState(task, options), *(SketchState(task, options, (step,)) for step in steps)]


def _derived(start: SketchState, rules: Sequence[Rule]) -> list[SketchState]:
    """The states in which all stages have been dealt with, from the last to the first."""
    stages = start.schedule.active_stages
    most = min(_MAX_STATES, max(_LEAST_STATES, _MAX_STATES_TIMES_STAGES // len(stages)))
    states = [start]
    for stage in reversed(stages):
        states = _some([following for state in states for following in _following(state, stage.name, rules)], most)
    return states


def _some(states: list[SketchState], most: int) -> list[SketchState]:
    """All states, or as many as are followed of too many: any of them, always the same."""
    if len(states) <= most:
        return states
    chosen = np.random.default_rng(0).choice(len(states), most, replace=False)
    return [states[n] for n in sorted(chosen)]


def _following(state: SketchState, name: str, rules: Sequence[Rule]) -> list[SketchState]:
    """The states in which the stage has been dealt with."""
    if name in state.done or state.stage(name).is_inlined or state.stage(name).packs is not None:
        return [state]
    found: list[SketchState] = []
    for rule in rules:
        following = _applied(rule, state, name)
        if following is None:
            continue
        found += following
        if rule.is_exclusive:
            break
    return found


def _applied(rule: Rule, state: SketchState, name: str) -> list[SketchState] | None:
    """What the rule gives for the stage; None where it does not match, or fails."""
    stage = state.stage(name)
    try:
        return rule.apply(state, stage) if rule.matches(state, stage) else None
    except MISFITS as error:
        _LOGGER.debug("rule %s failed at stage %s of task %s: %r", rule.name, name, state.task.name, error)
        return None


def _finished(state: SketchState, name: str) -> Sketch | None:
    """The sketch of a state; None where it cannot be applied."""
    try:
        sketch = Sketch(state.task, annotate(state).steps, state.options, name)
        _ = sketch.sample(np.random.default_rng(0), _NUM_CANDIDATES_TO_TRY).schedule
    except MISFITS as error:
        _LOGGER.debug("a sketch of task %s cannot be applied: %r", state.task.name, error)
        return None
    return sketch
