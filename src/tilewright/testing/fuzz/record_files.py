"""Changed record files: each is read, listed, used to tune and to compile, or refused by an error that names a line.

So are their tasks, of which what is read derives a space. A record that is well written, and whose program cannot be
used, must not cost more than itself.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.cli import main
from tilewright.deploy.compilation import compile_model
from tilewright.deploy.compiled import CompiledModel
from tilewright.errors import TilewrightError
from tilewright.network import InferenceSession, recorded_programs
from tilewright.partition import Partition
from tilewright.records import RecordLog, read_ansor_log, read_records, read_tasks
from tilewright.space import SpaceOptions, derive
from tilewright.te import Task
from tilewright.testing.fuzz.record_corpus import TARGET, THREADS, ansor_lines, lines_of, networks, records_of
from tilewright.testing.fuzz.record_mutations import mutated
from tilewright.tuning.tuner import Tuner

# How an error names the line, or the file.
_PLACE = re.compile(r"records\.jsonl(:\d+: | )")
_ANSOR_ONE_IN = 12
# What takes long is done in some of the cases.
_COMMANDS_ONE_IN = 4
_RESUMED_ONE_IN = 10
_MAX_POINTS = 10**9


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """A case is a file of records of a network, with a few changes; one in some is a log of another tool."""

    def run(self, seed: int) -> str:
        data = self._case(seed)
        with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as folder:
            path = Path(folder, "records.jsonl")
            path.write_bytes(data)
            try:
                return _read_ansor(path) if seed % _ANSOR_ONE_IN == 0 else _used(path, seed)
            except TilewrightError as error:
                if not _PLACE.search(str(error)):
                    raise
                return "refused"

    def content(self, seed: int) -> tuple[str, bytes]:
        return ".jsonl", self._case(seed)

    def _case(self, seed: int) -> bytes:
        rng = random.Random(seed)
        if seed % _ANSOR_ONE_IN == 0:
            return mutated(ansor_lines(), rng)
        known = records_of(seed % len(networks()))
        records = [*rng.sample(known, rng.randrange(1, 6)), rng.choice(records_of(rng.randrange(len(networks()))))]
        rng.shuffle(records)
        return mutated(lines_of(records), rng)


def _read_ansor(path: Path) -> str:
    """Another tool's log, of which each record is neutral data."""
    for record in read_ansor_log(path):
        assert record.latency_s is None or record.latency_s >= 0
    return "read: another tool's log"


def _used(path: Path, seed: int) -> str:
    """Do with the file what the program does."""
    number = seed % len(networks())
    network = networks()[number]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        num_records = len(list(read_records(path)))
        has_tasks = _use_tasks(path)
        if seed % _COMMANDS_ONE_IN == 0:
            _list(path, has_tasks)
        if seed % _RESUMED_ONE_IN == 0:
            Tuner(network.tasks[0].task, TARGET, THREADS).resume(RecordLog(path).read())
        programs = recorded_programs(network, path, TARGET, THREADS)
        outputs = _outputs(network, compile_model(network, programs, TARGET, THREADS))
        RecordLog(path).append(records_of(number)[0], network.tasks[0].task)
        assert len(RecordLog(path).read()) == num_records + 1
    # Whatever the records say, the network computes what it does with plain loops.
    np.testing.assert_allclose(outputs, _expected(number), rtol=1e-3, atol=1e-3)
    if any("the record is set aside" in str(warning.message) for warning in warned):
        return "set aside"
    if not has_tasks:
        return "used, with a task refused"
    return "used" if programs else "of no task"


def _use_tasks(path: Path) -> bool:
    """Whether all tasks of the file can be read; they are then what they were written as."""
    try:
        tasks = read_tasks(path)
    except TilewrightError as error:
        if not _PLACE.search(str(error)):
            raise
        return False
    for key, task in tasks.items():
        assert Task.from_json(task.to_json()).hash == key
        assert all(map(str, task.stages))
        if task.num_points <= _MAX_POINTS:
            assert derive(task, SpaceOptions(TARGET, THREADS))
    return True


def _list(path: Path, has_tasks: bool) -> None:
    for action in ("list", "best", "export", "tasks"):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            expected = 0 if has_tasks or action != "tasks" else 1
            assert main(["records", action, str(path)]) == expected


def _outputs(network: Partition, model: CompiledModel) -> Any:
    (name,) = network.graph.inputs
    known = network.graph.types[name]
    assert known is not None
    x = np.random.default_rng(0).standard_normal(known.shape).astype(np.float32)
    return InferenceSession(model, threads=THREADS).run(None, {name: x})[0]


@cache
def _expected(number: int) -> Any:
    network = networks()[number]
    return _outputs(network, compile_model(network, {}, TARGET, THREADS))
