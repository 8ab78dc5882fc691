"""A record file as a dataset: its tasks give the spaces, its traces the candidates of them, or of their own sketches.

The file is enough, whichever machine wrote it: nothing is compiled, and no program but this one is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from tilewright.cost_model import Dataset
from tilewright.errors import CodegenError
from tilewright.records import (
    Record,
    group_by_task,
    in_names_of,
    latest,
    read_records,
    read_tasks,
    warn_of_unusable,
)
from tilewright.schedule import Trace
from tilewright.space import DEFAULT_RULES, Candidate, Rule, Sketch, SpaceOptions, observed_candidates, space_of
from tilewright.target import Target
from tilewright.te import Task


def read_dataset(path: str | os.PathLike[str], rules: Sequence[Rule] = DEFAULT_RULES) -> Dataset:
    """The measured programs of a record file."""
    return dataset_of(read_records(path), read_tasks(path), rules)


def dataset_of(records: Iterable[Record], tasks: Mapping[str, Task], rules: Sequence[Rule] = DEFAULT_RULES) -> Dataset:
    """The measured programs of records; `tasks` are their tasks by hash, and records of others are left out."""
    dataset = Dataset()
    for key, group in group_by_task(records).items():
        task = tasks.get(key.task)
        if task is None:
            continue
        try:
            options = SpaceOptions(Target.parse(key.target), key.threads, exact=False)
        except CodegenError as error:
            warn_of_unusable([(record, error) for record in group])
            continue
        measured = latest(in_names_of(task, group))
        candidates = _candidates(task, [record.trace for record in measured], options, rules)
        found = [record for record in measured if record.trace in candidates]
        dataset = dataset.with_trials(
            [candidates[record.trace] for record in found], [record.latency_s for record in found], key.context
        )
    return dataset


def _candidates(
    task: Task, traces: Sequence[Trace], options: SpaceOptions, rules: Sequence[Rule]
) -> dict[Trace, Candidate]:
    """The traces as candidates of their task's space; those of a template, say, of their own sketches."""
    sketches = space_of(task, options, rules)
    found = {trace: candidate_of(trace, sketches) for trace in traces}
    known = {trace: candidate for trace, candidate in found.items() if candidate is not None}
    return known | observed_candidates(task, [trace for trace in found if trace not in known], options)


def candidate_of(trace: Trace, sketches: Sequence[Sketch]) -> Candidate | None:
    """The candidate whose trace this is; None where no sketch has it."""
    return next(filter(None, (sketch.candidate_of(trace) for sketch in sketches)), None)
