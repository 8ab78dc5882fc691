"""Questions to records, and files made from files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.records.samples import TARGET, TRACE, failed, record
from tilewright.errors import TilewrightError, UsageError
from tilewright.records import (
    Key,
    Record,
    RecordLog,
    best,
    count_statuses,
    export,
    fastest,
    group_by_task,
    merge,
    prune,
)
from tilewright.schedule import Trace


def test_the_best_is_of_the_same_task_target_and_threads() -> None:
    records = [
        record(latency_s=3e-3),
        record(latency_s=2e-3, time=7.0),
        failed(),
        record(latency_s=1e-3, task="other"),
        record(latency_s=1e-3, target="other"),
        record(latency_s=1e-3, threads=1),
    ]
    found = best(records, "5f3a", TARGET, 2)
    assert found is records[1]
    assert best(records, "5f3a", TARGET, 3) is None
    assert best([failed()], "5f3a", TARGET, 2) is None


def test_the_fastest_is_so_at_a_steady_pace() -> None:
    records = [record(latency_s=2e-3, trace=Trace()), record(latency_s=3e-3, pace=2.0)]
    assert fastest(records) is records[1]


def test_records_are_grouped_and_counted() -> None:
    records = [record(), record(threads=1), failed("RUN_TIMEOUT"), failed("INVALID")]
    groups = group_by_task(records)
    assert groups[Key("5f3a", TARGET, 2)] == [records[0], *records[2:]]
    assert groups[Key("5f3a", TARGET, 1)] == [records[1]]
    assert count_statuses(records) == {
        "OK": 2,
        "INVALID": 1,
        "BUILD_ERROR": 0,
        "BUILD_TIMEOUT": 0,
        "RUN_ERROR": 0,
        "RUN_TIMEOUT": 1,
        "WRONG_RESULT": 0,
    }


def test_a_finalist_is_the_fastest_unless_a_later_trial_is_faster() -> None:
    lucky, finalist = record(latency_s=1e-3), record(latency_s=2e-3)
    again = record(latency_s=1.9e-3, trace=finalist.trace)
    later, slower = record(latency_s=1.5e-3), record(latency_s=3e-3)
    assert fastest([lucky, finalist, again]) is again
    assert fastest([lucky, finalist, again, slower]) is again
    assert fastest([lucky, finalist, again, later]) is later


def write(path: Path, *records: Record) -> Path:
    RecordLog(path).extend(records)
    return path


def test_merged_files_hold_each_record_once_in_order_of_time(tmp_path: Path) -> None:
    first = write(tmp_path / "a", record(time=1.0), record(time=3.0))
    second = write(tmp_path / "b", record(time=2.0), record(time=3.0))
    out = write(tmp_path / "out", record(time=0.0))
    assert merge([first, second], out) == 4
    assert [r.time for r in RecordLog(out).read()] == [0.0, 1.0, 2.0, 3.0]
    assert merge([first, second], tmp_path / "new") == 3
    assert merge([second], first) == 3


def test_a_thinned_out_file_holds_the_fastest_of_each_task(tmp_path: Path) -> None:
    latencies_s = [5e-3, 1e-3, 4e-3, 2e-3]
    path = write(
        tmp_path / "a", *(record(task=t, latency_s=x) for t in ("t0", "t1") for x in latencies_s), failed(task="t2")
    )
    path.chmod(0o640)
    assert prune(path, keep_best=2) == (9, 4)
    kept = RecordLog(path).read()
    assert [(r.task, r.latency_s) for r in kept] == [("t0", 1e-3), ("t0", 2e-3), ("t1", 1e-3), ("t1", 2e-3)]
    assert fastest(kept) == kept[0]
    assert path.stat().st_mode & 0o777 == 0o640


def test_thinning_out_needs_a_file_and_a_number(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="No such file"):
        prune(tmp_path / "missing", keep_best=1)
    assert not (tmp_path / "missing").exists()
    with pytest.raises(UsageError, match="is 0; it must be at least 1"):
        prune(tmp_path / "missing", keep_best=0)


def test_exported_records_can_be_read_by_other_programs() -> None:
    records = [record(), failed(error='said "no",\nand died')]
    rows = list(csv.DictReader(io.StringIO(export(records, "csv"))))
    assert rows[0]["latency_s"] == "0.002"
    assert json.loads(rows[0]["trace"]) == TRACE.to_json()
    assert rows[1]["latency_s"] == ""
    assert rows[1]["error"] == 'said "no",\nand died'
    assert [Record.from_json(data) for data in json.loads(export(records, "json"))] == records
    with pytest.raises(UsageError, match="csv or json, got 'xml'"):
        export(records, "xml")
