"""Templates by operator: tasks that they match are tuned in derived and hand-written sketches together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.arguments import function
from tilewright.errors import ScheduleError, UsageError
from tilewright.space.derivation import derive
from tilewright.space.options import SpaceOptions
from tilewright.space.recognition import OPERATORS, operator_of
from tilewright.space.rules import DEFAULT_RULES, Rule
from tilewright.space.sketch import Sketch
from tilewright.space.templates.definition import Template
from tilewright.space.templates.loading import find_template
from tilewright.te import Task

Matches = Callable[[Task], bool]


@dataclass(slots=True)
class _Entry:
    operator: str | None
    template: Template
    matches: Matches | None
    has_warned: bool = False


_ENTRIES: list[_Entry] = []


def register_template(
    operator: str | None, template: Template | str | Callable[..., object], *, matches: Matches | None = None
) -> None:
    """Use the template for tasks of an operator, from now on, next to what is derived for them.

    `operator` is one of `tilewright.space.OPERATORS`, or None for tasks of any; `matches` says of a task whether it is
    meant. A template of the same name and file replaces the one before.
    """
    if operator is not None and operator not in OPERATORS:
        raise UsageError(f"operator is {operator!r}; it must be one of {', '.join(OPERATORS)}, or None with matches=")
    if operator is None and matches is None:
        raise UsageError("a template needs to know its tasks: give an operator, or matches=, a function of a task")
    entry = _Entry(operator, find_template(template), None if matches is None else function("matches", matches))
    _ENTRIES[:] = [known for known in _ENTRIES if not _is_same(known, operator, entry.template)]
    _ENTRIES.append(entry)


def unregister_template(operator: str | None, template: Template) -> None:
    """Undo `register_template`."""
    left = [known for known in _ENTRIES if not _is_same(known, operator, template)]
    if len(left) == len(_ENTRIES):
        known = ", ".join(f"{entry.operator} {entry.template.name}" for entry in _ENTRIES) or "none"
        raise UsageError(f"template {template.name} is not registered for {operator}; those that are: {known}")
    _ENTRIES[:] = left


def _is_same(entry: _Entry, operator: str | None, template: Template) -> bool:
    """Whether it stands for the same template; a function that is defined once more, with changes, is the same."""
    file, of_other = (each.place.rpartition(":")[0] for each in (entry.template, template))
    return entry.operator == operator and entry.template.name == template.name and file == of_other


def space_of(task: Task, options: SpaceOptions, rules: Sequence[Rule] = DEFAULT_RULES) -> list[Sketch]:
    """The sketches that a task is tuned in: those that are derived, and those of the templates that match it."""
    return [*derive(task, options, rules), *registered_sketches(task, options)]


def registered_sketches(task: Task, options: SpaceOptions) -> list[Sketch]:
    """Those of the registered templates that match the task and are legal for it.

    One that fails costs a warning, and itself: a network is tuned without it.
    """
    found: list[Sketch] = []
    for entry in _ENTRIES:
        try:
            if _is_meant(entry, task):
                found += entry.template.sketches(task, options)
        except ScheduleError:
            continue
        except UsageError as error:
            _warn_once(entry, task, error)
    return found


def _is_meant(entry: _Entry, task: Task) -> bool:
    if entry.operator is not None and operator_of(task) != entry.operator:
        return False
    if entry.matches is None:
        return True
    try:
        return bool(entry.matches(task))
    except Exception as error:  # it is the caller's own, whatever it is
        raise UsageError(f"matches= raised {type(error).__name__}: {error}") from error


def _warn_once(entry: _Entry, task: Task, error: UsageError) -> None:
    if not entry.has_warned:
        entry.has_warned = True
        warnings.warn(
            f"template {entry.template.name} is left out of task {task.name}, and of others that it fails for: {error}",
            stacklevel=4,
        )
