"""A record file as a dataset: its tasks give the spaces, its traces the candidates of them.

The file is enough, whichever machine wrote it: nothing is compiled, and no program but this one is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from tilewright.cost_model import Dataset
from tilewright.records import Record, group_by_task, in_names_of, latest, read_records, read_tasks
from tilewright.schedule import Trace
from tilewright.space import DEFAULT_RULES, Candidate, Rule, Sketch, SpaceOptions, space_of
from tilewright.target import Target
from tilewright.te import Task


def read_dataset(path: str | os.PathLike[str], rules: Sequence[Rule] = DEFAULT_RULES) -> Dataset:
    """The measured programs of a record file that are in the spaces of its tasks, as tuning would search them."""
    return dataset_of(read_records(path), read_tasks(path), rules)


def dataset_of(records: Iterable[Record], tasks: Mapping[str, Task], rules: Sequence[Rule] = DEFAULT_RULES) -> Dataset:
    """The measured programs of records; `tasks` are their tasks by hash, and records of others are left out."""
    dataset = Dataset()
    for key, group in group_by_task(records).items():
        task = tasks.get(key.task)
        if task is None:
            continue
        sketches = space_of(task, SpaceOptions(Target.parse(key.target), key.threads, exact=False), rules)
        known = [(candidate_of(record.trace, sketches), record) for record in latest(in_names_of(task, group))]
        found = [(candidate, record.latency_s) for candidate, record in known if candidate is not None]
        dataset = dataset.with_trials(
            [candidate for candidate, _ in found], [latency_s for _, latency_s in found], key.context
        )
    return dataset


def candidate_of(trace: Trace, sketches: Sequence[Sketch]) -> Candidate | None:
    """The candidate whose trace this is; None where no sketch has it."""
    return next(filter(None, (sketch.candidate_of(trace) for sketch in sketches)), None)
