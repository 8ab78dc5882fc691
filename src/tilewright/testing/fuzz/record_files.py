"""Changed record files: each is read, listed, used to tune and to compile, or refused by an error that names a line.

A record that is well written, and whose program cannot be used, must not cost more than itself.
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
from tilewright.errors import TilewrightError
from tilewright.graph.compilation import compile_model
from tilewright.graph.compiled import CompiledModel
from tilewright.graph.pipeline import recorded_programs
from tilewright.graph.session import InferenceSession
from tilewright.records import RecordLog, read_ansor_log, read_records
from tilewright.testing.fuzz.record_corpus import (
    HEADER,
    TARGET,
    THREADS,
    ansor_lines,
    network,
    records_of_tasks,
)
from tilewright.testing.fuzz.record_mutations import mutated
from tilewright.tuner import Tuner

# How an error names the line, or the file.
_PLACE = re.compile(r"records\.jsonl(:\d+: | )")
_ANSOR_ONE_IN = 12
_RESUMED_ONE_IN = 8
_MOST_RECORDS = 8


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """A case is a file of records of one small network, with a few changes; one in some is a log of another tool."""

    def run(self, seed: int) -> str:
        data = self._case(seed)
        with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as folder:
            path = Path(folder, "records.jsonl")
            path.write_bytes(data)
            try:
                if seed % _ANSOR_ONE_IN == 0:
                    return _read_ansor(path)
                return _used(path, resumes=seed % _RESUMED_ONE_IN == 1)
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
        records = [record for task in records_of_tasks() for record in rng.sample(task, rng.randrange(1, 4))]
        rng.shuffle(records)
        return mutated([HEADER, *(record.to_line() for record in records[:_MOST_RECORDS])], rng)


def _read_ansor(path: Path) -> str:
    """Another tool's log, of which each record is neutral data."""
    for record in read_ansor_log(path):
        assert record.latency_s is None or record.latency_s >= 0
    return "read: another tool's log"


def _used(path: Path, resumes: bool) -> str:
    """Do with the file what the program does."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        num_records = len(list(read_records(path)))
        for action in ("list", "best", "export"):
            with contextlib.redirect_stdout(io.StringIO()):
                assert main(["records", action, str(path)]) == 0
        if resumes:
            Tuner(network().tasks[-1].task, TARGET, THREADS).resume(RecordLog(path).read())
        programs = recorded_programs(network(), path, TARGET, THREADS)
        _check_results(compile_model(network(), programs, TARGET, THREADS))
        RecordLog(path).append(records_of_tasks()[0][0])
        assert len(RecordLog(path).read()) == num_records + 1
    if any("set aside" in str(warning.message) for warning in warned):
        return "set aside"
    return "used" if programs else "of no task"


def _check_results(model: CompiledModel) -> None:
    """The network computes what it does with plain loops, whatever the records say."""
    for found, expected in zip(InferenceSession(model, threads=THREADS).run(None, _inputs()), _expected(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def _inputs() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    types = network().graph.types
    shapes = {name: types[name].shape for name in network().graph.inputs}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@cache
def _expected() -> list[Any]:
    plain = compile_model(network(), {}, TARGET, THREADS)
    return InferenceSession(plain, threads=THREADS).run(None, _inputs())
