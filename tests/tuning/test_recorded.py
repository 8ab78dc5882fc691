"""A record file is enough to learn from: spaces, features and models come from it alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.cost_model import BoostedTrees, Dataset
from tilewright.measure import OK, RUN_ERROR
from tilewright.records import Record, RecordLog, names_of, read_records, read_tasks
from tilewright.schedule import Trace
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.recorded import dataset_of, read_dataset
from tilewright.workloads import parse

FOREIGN = Target.parse("llvm -mcpu=neoverse-n1 -num-cores=4")
THREADS = 4
GEMM, CONV = parse("gmm:48x32x64"), parse("c2d:1x8x8x16,16,3x3,s1,p1")


def record(task: Task, number: int, context: str = "warm", status: str = OK) -> Record:
    """A trial of another machine: a random candidate of the task's space."""
    sketches = derive(task, SpaceOptions(FOREIGN, THREADS))
    sketch = sketches[number % len(sketches)]
    (candidate,) = sketch.sample(np.random.default_rng(number), 1)
    return Record(
        task=task.hash,
        workload="",
        target=str(FOREIGN),
        threads=THREADS,
        status=status,
        latency_s=1e-3 * (1 + number) if status == OK else None,
        trace=candidate.trace,
        names=names_of(task),
        context=context,
    )


def write(path: Path) -> list[Record]:
    log = RecordLog(path)
    written = []
    for task in (GEMM, CONV):
        records = [record(task, number) for number in range(6)]
        records += [record(task, 7, "cold-9M"), record(task, 8, status=RUN_ERROR)]
        log.extend(records, task)
        written += records
    return written


def test_records_of_a_target_that_is_none_are_set_aside(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "other.jsonl")
    log.extend([record(GEMM, 0), replace(record(GEMM, 1), target="zx81"), record(GEMM, 2)], GEMM)
    with pytest.warns(UserWarning, match="other.jsonl:4: the record is set aside, .*: a target"):
        assert len(read_dataset(log.path)) == 2


def test_a_program_whose_numbers_are_too_large_for_any_loop_is_left_out(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "other.jsonl")
    huge = Trace.from_json([{"step": "split", "stage": "C", "arguments": ["i", [10**30]]}])
    log.extend([record(GEMM, 0), replace(record(GEMM, 1), trace=huge)], GEMM)
    assert len(read_dataset(log.path)) == 1


def test_all_programs_of_the_file_are_found_with_their_device_and_context(tmp_path: Path) -> None:
    written = write(tmp_path / "other.jsonl")
    dataset = read_dataset(tmp_path / "other.jsonl")
    assert len(dataset) == len(written)
    assert dataset.num_valid == len(written) - 2
    traces = {
        str(candidate.trace): latency_s
        for group in dataset.measured
        for candidate, latency_s in zip(group.population, group.latencies_s, strict=True)
    }
    for known in written:
        assert traces[str(known.trace)] == (np.inf if known.latency_s is None else known.latency_s)
    devices = {(str(group.population.sketch.options.target), group.context) for group in dataset.measured}
    assert devices == {(str(FOREIGN), "warm"), (str(FOREIGN), "cold-9M")}


def test_a_model_learns_from_it_and_scores_the_spaces_of_its_tasks(tmp_path: Path) -> None:
    write(tmp_path / "other.jsonl")
    model = BoostedTrees()
    model.fit(read_dataset(tmp_path / "other.jsonl"))
    for task in read_tasks(tmp_path / "other.jsonl").values():
        (sketch, *_) = derive(task, SpaceOptions(FOREIGN, THREADS))
        assert np.isfinite(model.predict(sketch.sample(np.random.default_rng(0), 4))).all()


def test_records_without_a_task_are_left_out(tmp_path: Path) -> None:
    written = write(tmp_path / "other.jsonl")
    records = list(read_records(tmp_path / "other.jsonl"))
    assert len(dataset_of(records, {GEMM.hash: GEMM})) == len(written) // 2
    assert len(dataset_of(records, {})) == 0


def test_programs_that_no_rule_derives_are_known_by_their_traces(tmp_path: Path) -> None:
    """As those of a template that is not registered, or of a version with other rules."""
    write(tmp_path / "other.jsonl")
    derived, observed = read_dataset(tmp_path / "other.jsonl"), read_dataset(tmp_path / "other.jsonl", rules=())

    def programs(dataset: Dataset) -> set[tuple[str, str, float]]:
        return {
            (group.task_hash, str(candidate.trace), latency_s)
            for group in dataset.measured
            for candidate, latency_s in zip(group.population, group.latencies_s.tolist(), strict=True)
            if np.isfinite(latency_s)
        }

    assert programs(observed) == programs(derived) != set()


def test_a_file_of_another_program_of_the_same_tasks_is_enough(tmp_path: Path) -> None:
    """The tasks come from the lines of the file, whose text is all that there is."""
    write(tmp_path / "other.jsonl")
    lines = (tmp_path / "other.jsonl").read_text().splitlines()
    assert sum("latency_s" not in json.loads(line) for line in lines) == 3  # the header and two tasks
    assert {task.hash for task in read_tasks(tmp_path / "other.jsonl").values()} == {GEMM.hash, CONV.hash}
