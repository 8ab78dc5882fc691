"""What a caller knows before a task is tuned: records of other tasks, a model that has learned of them, or both."""

from __future__ import annotations

import glob
import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from tilewright.cost_model import CostModel, Dataset, load
from tilewright.errors import UsageError
from tilewright.records import Record, group_by_task, read_records, read_tasks
from tilewright.te import Task
from tilewright.tuning.recorded import dataset_of

PriorSource: TypeAlias = "str | os.PathLike[str] | CostModel | Dataset"

# Of more programs, a part of those of each task is learned from.
MOST_PROGRAMS = 4096
_LEAST_OF_A_TASK = 16
_MODEL_FILE = b"PK\x03\x04"  # how an .npz begins
_KINDS = (
    "the path of a record file, a pattern of several such as records/*.jsonl, the file of a trained model, a Dataset, "
    "a CostModel, or a list of these"
)
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Measured programs of other tasks, and a model that has learned; either may be missing."""

    dataset: Dataset = field(default_factory=Dataset)
    model: CostModel | None = None

    def __str__(self) -> str:
        parts = [] if self.model is None else [f"the model {self.model.name}"]
        if self.dataset.groups:
            tasks = {group.task_hash for group in self.dataset.groups}
            parts.append(f"{len(self.dataset)} programs of {len(tasks)} tasks on {', '.join(self.devices)}")
        return " and ".join(parts) or "nothing"

    @property
    def devices(self) -> tuple[str, ...]:
        """Those that the programs were measured on."""
        options = dict.fromkeys(group.population.sketch.options for group in self.dataset.measured)
        return tuple(f"{each.threads} threads of {each.target.cpu}" for each in options)


def read_prior(given: object, leave_out: str | os.PathLike[str] | None = None) -> Prior:
    """What a caller gives as a prior; the record file `leave_out`, which counts anyway, is none.

    A file that is named twice, or by a pattern, too, counts once.
    """
    if isinstance(given, Prior):
        return given
    begun_s = time.monotonic()
    several = given if isinstance(given, list | tuple) else [given]
    if not several:
        raise UsageError(f"prior is an empty list; it must be {_KINDS}")
    counted = set[str]() if leave_out is None else {os.path.realpath(leave_out)}
    parts = [part for each in several for part in _parts(each, counted)]
    models = [part for part in parts if isinstance(part, CostModel)]
    if len(models) > 1:
        names = ", ".join(model.name for model in models)
        raise UsageError(
            f"a prior has at most one model, got {names}; give one of them, and records as many as you like"
        )
    groups = tuple(group for part in parts if isinstance(part, Dataset) for group in part.groups)
    found = Prior(Dataset(groups), models[0] if models else None)
    _LOGGER.info("the prior is %s; read in %.1f s", found, time.monotonic() - begun_s)
    return found


def thinned(records: Iterable[Record], most: int) -> list[Record]:
    """At most about so many records, as many of each task: fast and slow ones, evenly."""
    groups = group_by_task(records)
    quota = max(_LEAST_OF_A_TASK, most // max(1, len(groups)))
    kept: list[Record] = []
    for group in groups.values():
        by_speed = sorted(group, key=lambda record: record.rank_s)
        chosen = np.unique(np.linspace(0, len(group) - 1, min(quota, len(group))).round().astype(int))
        kept += [by_speed[number] for number in chosen]
    return kept


def _parts(given: object, counted: set[str]) -> list[CostModel | Dataset]:
    """What is given; of files, those that are not `counted`, to which they are added."""
    if isinstance(given, CostModel):
        return [_checked_model(given, "the model")]
    if isinstance(given, Dataset):
        return [_checked_dataset(given)]
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str) or not os.fspath(given):
        raise UsageError(f"prior is {given!r}; it must be {_KINDS}")
    named = {os.path.realpath(path): path for path in _paths(os.fspath(given))}
    paths = [path for place, path in named.items() if place not in counted]
    counted.update(named)
    models = [path for path in paths if _is_model(path)]
    found: list[CostModel | Dataset] = [_checked_model(load(path), path) for path in models]
    records = [path for path in paths if path not in models]
    return [*found, _read(records)] if records else found


def _paths(pattern: str) -> list[str]:
    """The file of that name, or those that a pattern matches."""
    if os.path.isdir(pattern):
        raise UsageError(
            f"prior is the folder {pattern}; name the files in it, such as {os.path.join(pattern, '*.jsonl')}"
        )
    if os.path.exists(pattern) and not os.path.isfile(pattern):
        raise UsageError(f"prior is {pattern}, which is a device or a pipe; name a file")
    if os.path.exists(pattern):
        return [pattern]
    found = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    if not found:
        what = "no file matches it" if glob.has_magic(pattern) else "there is no such file"
        raise UsageError(f"prior is {pattern!r}, and {what}; it must be {_KINDS}")
    return found


def _is_model(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return path.endswith(".npz") or file.read(len(_MODEL_FILE)) == _MODEL_FILE
    except OSError as error:
        raise UsageError(f"prior is {path!r}, which cannot be read: {error.strerror}") from error


def _checked_model(model: CostModel, what: str) -> CostModel:
    if not model.is_fitted or model.name in ("analytical", "random"):
        raise UsageError(
            f"the model of a prior has learned from programs of other tasks, and {what}, {model.name}, has learned "
            f"nothing; train it first (tilewright model train), or give records"
        )
    return model


def _checked_dataset(dataset: Dataset) -> Dataset:
    measured = Dataset(dataset.measured)
    if not measured.num_valid:
        raise UsageError(
            f"the dataset of a prior has programs of tilewright that ran, got {len(dataset)} programs of which "
            f"{measured.num_valid} are such; give other data"
        )
    return measured


def _read(paths: Sequence[str]) -> Dataset:
    """The programs of record files."""
    records = [record for path in paths for record in read_records(path)]
    tasks: dict[str, Task] = {}
    for path in paths:
        tasks |= {key: task for key, task in read_tasks(path).items() if key not in tasks}
    found = known_programs(records, tasks, MOST_PROGRAMS)
    if not found.num_valid:
        ran = sum(record.latency_s is not None for record in records)
        raise UsageError(
            f"a prior has programs that ran, of tasks that its files hold: {', '.join(paths)} have {len(records)} "
            f"records, {ran} of programs that ran, {len(tasks)} tasks, and no program of theirs; "
            f"give records that tilewright tune has written"
        )
    return found


def known_programs(records: Iterable[Record], tasks: Mapping[str, Task], most: int) -> Dataset:
    """About as many of the recorded programs as candidates of the spaces of their tasks."""
    return dataset_of(thinned([record for record in records if record.task in tasks], most), tasks)
