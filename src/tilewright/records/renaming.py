"""Records of a task under other names: the hash of a task is blind to names, the steps of a trace are not.

A record keeps the names that its trace is in. The steps are taken over by position: they are replayed on the task
under the recorded names, and what a step finds there is what stands at the same place of the task as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from reprlib import repr as shown
from typing import Any

from tilewright.errors import RecordFormatError
from tilewright.measure import INVALID
from tilewright.records.record import Names, Record
from tilewright.schedule import Schedule, Step, Trace
from tilewright.schedule.steps import ComputeAtStep
from tilewright.te import Task, Tensor, names_in, renamed

_STAGE_FIELDS = frozenset(("stage", "consumer", "reader", "readers"))
_LOOP_FIELDS = frozenset(("loop", "loops"))
_AXIS = re.compile(r"[A-Za-z_]\w*")


def names_of(task: Task) -> Names:
    """The names of the inputs and stages and of their axes, in an order that the hash fixes."""
    return tuple(names_in(tensor) for tensor in (*task.inputs, *task.stages))


def is_translatable(names: Names, record: Record) -> bool:
    """Whether it may be that the trace of the record has a form in these names."""
    if record.names == names:
        return True
    if record.names:
        return record.status != INVALID  # whose steps do not replay
    # Before records kept names, what a trace uses had to be the task's own.
    axes_of = {own: set(axes) for own, *axes in names}
    return all(_is_known(step, axes_of) for step in record.trace.steps)


def _is_known(step: Step, axes_of: dict[str, set[str]]) -> bool:
    """Whether the stage and the loops have such names. The loops of a stage that a step has made may have any."""
    if step.stage.partition(".")[0] not in axes_of:
        return False
    host = _host(step)
    if host not in axes_of:
        return "." in host
    loops = [loop for name in _LOOP_FIELDS for loop in _several(getattr(step, name, ()))]
    return all(axes_of[host].issuperset(_AXIS.findall(loop)) for loop in loops)


def in_names(names: Names, task: Task, record: Record) -> Record:
    """The record with its trace in the names of the task, which are `names`."""
    if record.names in (names, ()):
        return record
    if list(map(len, record.names)) != list(map(len, names)):
        raise RecordFormatError(
            f"a record has as many names as its task has tensors and axes; got {shown(record.names)}, and the task has "
            f"{shown(names)}: correct or remove the record"
        )
    return replace(record, trace=_translated(record.trace, _renamed_task(task, record.names), task), names=names)


def _renamed_task(task: Task, names: Names) -> Task:
    made: dict[Tensor, Tensor] = {}
    for tensor, own in zip((*task.inputs, *task.stages), names, strict=True):
        made[tensor] = renamed(tensor, own, made)
    return Task([made[t] for t in task.inputs], [made[t] for t in task.outputs], task.name)


def _translated(trace: Trace, old: Task, new: Task) -> Trace:
    """The trace that does to `new` what `trace` does to `old`, which differs in names alone."""
    theirs, ours = Schedule(old), Schedule(new)
    places: list[dict[str, list[int]]] = []

    def noting_places() -> Iterator[Step]:
        for step in trace.steps:
            places.append(_places(step, theirs))
            yield step

    def renaming() -> Iterator[Step]:
        for step, found in zip(trace.steps, places, strict=True):
            yield _at_places(step, found, ours)

    # A schedule takes one step before it asks for the next: each step is looked at in the schedule as it stands then.
    theirs.replay(noting_places())
    ours.replay(renaming())
    return ours.trace


def _places(step: Step, schedule: Schedule) -> dict[str, list[int]]:
    """Where the stages and loops stand that the fields of a step name."""
    stages, host = list(schedule), schedule[_host(step)]
    places: dict[str, list[int]] = {}
    for f in fields(step):
        if f.name in _STAGE_FIELDS:
            places[f.name] = [stages.index(schedule[name]) for name in _several(getattr(step, f.name))]
        elif f.name in _LOOP_FIELDS:
            places[f.name] = [host.leaves.index(host.find_loop(name)) for name in _several(getattr(step, f.name))]
    return places


def _at_places(step: Step, places: dict[str, list[int]], schedule: Schedule) -> Step:
    """The step with the names of what stands at these places."""
    stages = list(schedule)
    host = stages[places["consumer" if isinstance(step, ComputeAtStep) else "stage"][0]]
    named: dict[str, Any] = {}
    for field, positions in places.items():
        among = [stage.name for stage in stages] if field in _STAGE_FIELDS else [leaf.name for leaf in host.leaves]
        names = tuple(among[position] for position in positions)
        named[field] = names if isinstance(getattr(step, field), tuple) else names[0]
    return replace(step, **named)


def _host(step: Step) -> str:
    """The stage whose loops the step names."""
    return step.consumer if isinstance(step, ComputeAtStep) else step.stage


def _several(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
