"""Tasks in record files: each once and before its first trial, carried along, and read when they are asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.records.samples import failed, record
from tilewright import te
from tilewright.errors import RecordFormatError
from tilewright.records import (
    Record,
    RecordLog,
    TaskLine,
    merge,
    names_of,
    prune,
    read_contents,
    read_records,
    read_tasks,
)
from tilewright.runtime.build import build
from tilewright.te import Task
from tilewright.tuning.task_scheduler import Network, TaskScheduler, WeightedTask
from tilewright.tuning.tuner import tune
from tilewright.workloads import parse

ROOT = Path(__file__).parents[2]
GEMM, NORM = parse("gmm:8x8x8"), parse("nrm:1x8x8")


@pytest.fixture
def log(tmp_path: Path) -> RecordLog:
    return RecordLog(tmp_path / "records.jsonl")


def of(task: Task, **changes: Any) -> Record:
    return record(task=task.hash, **changes)


def kinds(path: Path) -> list[str]:
    """What the lines of a file hold."""
    names = {"tilewright_records": "header", "tilewright_task": "task", "task": "trial"}
    return [names[next(iter(json.loads(line)))] for line in path.read_text().splitlines()]


def test_a_task_stands_once_before_its_first_trial(log: RecordLog) -> None:
    log.append(of(GEMM), GEMM)
    log.extend([of(GEMM), of(GEMM)], GEMM)
    log.append(of(NORM), NORM)
    log.append(of(GEMM), GEMM)
    RecordLog(log.path).append(of(NORM), NORM)
    first, second = (TaskLine.of(task).text for task in (GEMM, NORM))
    assert kinds(log.path) == ["header", "task", *["trial"] * 3, "task", *["trial"] * 3]
    lines = log.path.read_text().splitlines()
    assert [lines.index(first), lines.index(second)] == [1, 5]
    assert lines.count(first) == lines.count(second) == 1
    assert len(log.read()) == 6


def test_the_tasks_of_a_file_come_back_in_order(log: RecordLog) -> None:
    log.append(of(NORM), NORM)
    log.append(of(GEMM), GEMM)
    tasks = read_tasks(log.path)
    assert list(tasks) == [NORM.hash, GEMM.hash]
    for task, original in zip(tasks.values(), (NORM, GEMM), strict=True):
        assert task.hash == original.hash
        assert task.to_json() == original.to_json()


def test_records_without_a_task_are_written_and_read_as_ever(log: RecordLog) -> None:
    log.append(of(GEMM))
    log.append(of(NORM), GEMM)  # which is not the task of this record
    assert read_tasks(log.path) == {}
    assert len(log.read()) == 2


def test_a_file_is_enough_to_rebuild_a_kernel(log: RecordLog) -> None:
    result = tune(GEMM, trials=2, threads=1, records=log.path)
    (task,) = read_tasks(log.path).values()
    assert names_of(task) == result.best.names
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 8), np.float32), rng.standard_normal((8, 8), np.float32)
    for found in read_records(log.path):
        kernel = build(found.trace.apply(task), threads=1)
        np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_tuning_and_going_on_write_each_task_once(log: RecordLog) -> None:
    networks = [Network("net", (WeightedTask(GEMM, 1), WeightedTask(NORM, 2)))]
    for trials in (4, 6):
        TaskScheduler(networks, threads=1).tune(trials, records=log.path)
    tune(GEMM, trials=5, threads=1, records=log.path)
    lines = log.path.read_text().splitlines()
    for task in (GEMM, NORM):
        assert lines.count(TaskLine.of(task).text) == 1
    assert set(read_tasks(log.path)) == {GEMM.hash, NORM.hash}


WRITER = """
import sys
from tests.records.test_tasks import GEMM, of
from tilewright.records import RecordLog

for number in range(50):
    RecordLog(sys.argv[1]).append(of(GEMM, time=float(number)), GEMM)
"""


def test_of_several_writers_one_writes_the_task(log: RecordLog) -> None:
    command = [sys.executable, "-c", WRITER, str(log.path)]
    writers = [subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}/src:{ROOT}"}) for _ in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    contents = read_contents(log.path)
    assert len(contents.records) == 100
    assert log.path.read_text().count(TaskLine.of(GEMM).text) == 1


# --- files of the version before -------------------------------------------------------------------------------------

OLD_FILE = """\
{"tilewright_records": 1, "tool_version": "0.1.0", "created": 1758000000.0}
{"task":"5f3a","workload":"gmm:512x512x512","target":"llvm -mcpu=haswell","threads":2,"trace":[{"step":"split",\
"stage":"C","arguments":["i",[4,8]]},{"step":"vectorize","stage":"C","arguments":["i.2"]}],"status":"OK",\
"latency_s":0.002,"runs_s":[0.002],"error":"","build_s":0.015,"time":1758000001.0,"names":[["A"],["C","i"]],"pace":1.5}
{"task":"5f3a","workload":"","target":"llvm -mcpu=haswell","threads":2,"trace":[],"status":"RUN_ERROR",\
"latency_s":null,"runs_s":[],"error":"died","build_s":0.015,"time":1758000002.0}
"""


def test_a_file_of_the_version_before_is_read(log: RecordLog) -> None:
    log.path.write_text(OLD_FILE)
    first, second = log.read()
    assert (first.latency_s, first.names, first.context) == (2e-3, (("A",), ("C", "i")), "warm")
    assert (second.status, second.names) == ("RUN_ERROR", ())
    assert read_tasks(log.path) == {}


def test_a_file_of_the_version_before_goes_on_as_one_of_today(log: RecordLog) -> None:
    log.path.write_text(OLD_FILE)
    for _ in range(2):
        log.append(of(GEMM), GEMM)
        RecordLog(log.path).append(of(GEMM), GEMM)
    text = log.path.read_text()
    assert text.startswith(OLD_FILE)
    assert kinds(log.path) == ["header", "trial", "trial", "header", "task", *["trial"] * 4]
    assert text.count('"tilewright_records": 2') == text.count('"tilewright_task"') == 1
    assert len(log.read()) == 6
    assert list(read_tasks(log.path)) == [GEMM.hash]


def test_files_of_both_versions_are_merged(log: RecordLog, tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text(OLD_FILE)
    log.append(of(GEMM), GEMM)
    assert merge([old, log.path], tmp_path / "out") == 3
    assert list(read_tasks(tmp_path / "out")) == [GEMM.hash]


# --- files made from files -------------------------------------------------------------------------------------------


def test_merged_files_hold_each_task_once_before_its_first_record(log: RecordLog, tmp_path: Path) -> None:
    other, out = RecordLog(tmp_path / "other"), RecordLog(tmp_path / "out")
    log.append(of(GEMM, time=5.0), GEMM)
    log.append(of(NORM, time=2.0), NORM)
    other.append(of(NORM, time=1.0), NORM)
    out.append(of(GEMM, time=4.0), GEMM)
    assert merge([log.path, other.path], out.path) == 4
    lines = out.path.read_text().splitlines()
    assert lines[1] == TaskLine.of(NORM).text
    assert lines[4] == TaskLine.of(GEMM).text
    assert len(lines) == 7
    assert merge([log.path, other.path], out.path) == 4
    assert out.path.read_text().splitlines()[1:] == lines[1:]


def test_thinning_out_keeps_the_tasks_of_what_stays(log: RecordLog) -> None:
    log.extend([of(GEMM, latency_s=x) for x in (3e-3, 1e-3)], GEMM)
    log.append(failed(task=NORM.hash), NORM)
    assert prune(log.path, keep_best=1) == (3, 1)
    assert list(read_tasks(log.path)) == [GEMM.hash]
    # The writer notices that the file is another one.
    log.append(of(NORM), NORM)
    assert list(read_tasks(log.path)) == [GEMM.hash, NORM.hash]


def test_files_joined_with_cat_hold_a_task_twice_and_give_it_once(log: RecordLog) -> None:
    log.append(of(GEMM), GEMM)
    log.path.write_text(log.path.read_text() * 2)
    assert list(read_tasks(log.path)) == [GEMM.hash]
    assert prune(log.path, keep_best=5) == (2, 2)
    assert kinds(log.path) == ["header", "task", "trial", "trial"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_task_in_other_words_is_read_and_carried(log: RecordLog, order: int) -> None:
    log.append(of(GEMM), GEMM)
    header, task, trial = log.path.read_text().splitlines()
    other = json.dumps(dict(list(json.loads(task).items())[::order]))
    assert other != task
    log.path.write_text("\r\n".join((header, other, trial)) + "\r\n")
    assert len(log.read()) == 1
    prune(log.path, keep_best=1)
    assert log.path.read_text().splitlines()[1] == other
    assert read_tasks(log.path)[GEMM.hash].to_json() == GEMM.to_json()


# --- files that are broken -------------------------------------------------------------------------------------------


def test_tasks_are_not_parsed_before_they_are_asked_for(log: RecordLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(of(GEMM), GEMM)

    def refuse(*_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr("tilewright.te.task_json.task_from_json", refuse)
    assert len(log.read()) == 1
    log.append(of(GEMM), GEMM)
    assert merge([log.path], log.path) == 1
    assert prune(log.path, keep_best=1) == (1, 1)
    with pytest.raises(AssertionError, match="parsed"):
        read_tasks(log.path)


def written(log: RecordLog, task_line: str) -> None:
    """A file in which that line stands in the place of the task's."""
    log.extend([of(GEMM), of(GEMM, time=2.0)], GEMM)
    log.path.write_text(log.path.read_text().replace(TaskLine.of(GEMM).text, task_line))


TEXT = TaskLine.of(GEMM).text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (TEXT[:-40], "the line is not JSON"),
        (TEXT[:20], "the line is not JSON"),
        (TEXT[:-1], "the line is not JSON"),
        (TEXT + ",", "the line is not JSON"),
        (TEXT.replace(GEMM.hash, '"'), "the line is not JSON"),
        ('{"tilewright_task":7,"definition":{}}', "a task has a hash as tilewright_task and a definition, got"),
        ('{"tilewright_task":"5f"}', "a task has a hash as tilewright_task and a definition, got"),
        (TEXT[:-1] + ',"colour":"red"}', "a task has a hash as tilewright_task and a definition, got"),
        ('{"tilewright_task":' + "[" * 200_000, "the line is nested too deeply"),
    ],
)
def test_a_task_that_is_visibly_broken_costs_no_record(log: RecordLog, line: str, reason: str) -> None:
    written(log, line)
    with pytest.warns(UserWarning, match=f"a task is set aside: .*records.jsonl:2: {reason}"):
        assert len(log.read()) == 2
    before = log.path.read_bytes()
    with pytest.raises(RecordFormatError, match=f"records.jsonl:2: {reason}"):
        read_tasks(log.path)
    with pytest.raises(RecordFormatError, match=f"records.jsonl:2: {reason}"):
        prune(log.path, keep_best=1)
    assert log.path.read_bytes() == before


def test_of_many_broken_tasks_one_is_named(log: RecordLog) -> None:
    written(log, "\n".join([TEXT[:-40]] * 100))
    with pytest.warns(UserWarning, match="records.jsonl:2: ") as warned:
        assert len(log.read()) == 2
    assert len(warned) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (TEXT.replace('"sum"', '"melt"'), "the task cannot be read: node 8 of the task is .*unknown operator 'melt'"),
        (TEXT.replace('"mul"', '"add"'), "the task is called '.*', and its hash is [0-9a-f]{32}; remove the line"),
        (TEXT.replace(GEMM.hash, "5f3a"), "the task is called '5f3a', and its hash is"),
        (
            TEXT.replace('"nodes":[', '"nodes":[[],'),
            "the task cannot be read: node 0 of the task is \\[\\]: it is no node",
        ),
        (TEXT.replace('"version":1', '"version":99'), "the task cannot be read: the JSON of the task is of version 99"),
        (TEXT.replace('"nodes":[', '"nodes":{[', 1), "the task cannot be read: the line is not JSON"),
        (TEXT.replace("[8,8]", "[" * 100_000), "the task cannot be read: the line is nested too deeply"),
        (
            f'{{"tilewright_task":"{GEMM.hash}","definition":{{}}}}',
            "the task cannot be read: the JSON of a task is an object",
        ),
    ],
)
def test_a_task_that_is_wrong_inside_is_named_when_it_is_asked_for(log: RecordLog, line: str, reason: str) -> None:
    assert line != TEXT
    written(log, line)
    with warnings.catch_warnings(action="error"):
        assert len(log.read()) == 2
    with pytest.raises(RecordFormatError, match=f"records.jsonl:2: {reason}") as raised:
        read_tasks(log.path)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("num_bytes", [1, 10, 40, 200, len(TEXT) - 1])
def test_a_torn_task_at_the_end_is_left_out_and_removed_by_the_next_writer(log: RecordLog, num_bytes: int) -> None:
    log.append(of(NORM), NORM)
    log.path.write_text(log.path.read_text() + TEXT[:num_bytes])
    with warnings.catch_warnings(action="error"):
        assert len(log.read()) == 1
        assert list(read_tasks(log.path)) == [NORM.hash]
    log.append(of(GEMM), GEMM)
    assert list(read_tasks(log.path)) == [NORM.hash, GEMM.hash]


def test_a_torn_task_whose_name_looks_like_its_end_is_left_out(log: RecordLog) -> None:
    A = te.placeholder((4,), name="A")
    task = Task([A], te.compute((4,), lambda i: A[i] + 1.0, name="B"), name="}}")
    log.append(of(NORM), NORM)
    text = TaskLine.of(task).text
    log.path.write_text(log.path.read_text() + text[: text.index("}}") + 2])
    assert list(read_tasks(log.path)) == [NORM.hash]


def test_a_task_that_is_too_long_for_a_line_is_not_written(log: RecordLog) -> None:
    A = te.placeholder((4,), name="A" * (1 << 22))
    task = Task([A], te.compute((4,), lambda i: A[i] + 1.0, name="B"))
    log.append(of(GEMM), GEMM)
    with pytest.raises(RecordFormatError, match="is a line of .* bytes, and 4194304 are read"):
        log.append(of(task), task)
    assert len(log.read()) == 1
