"""Questions to records, and files made from files."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from tests.records.samples import TARGET, TRACE, failed, record
from tilewright.errors import TilewrightError, UsageError
from tilewright.records import (
    Key,
    Record,
    RecordLog,
    best,
    by_speed,
    count_statuses,
    export,
    fastest,
    for_target,
    group_by_task,
    latest,
    merge,
    prune,
)
from tilewright.schedule import Trace
from tilewright.target import Target


def test_the_best_is_of_the_same_task_target_and_threads() -> None:
    records = [
        record(latency_s=3e-3),
        record(latency_s=2e-3, time=7.0),
        failed(),
        record(latency_s=1e-3, task="other"),
        record(latency_s=1e-3, target="other"),
        record(latency_s=1e-3, threads=1),
        record(latency_s=1e-3, context="cold-47M"),
    ]
    found = best(records, "5f3a", TARGET, 2)
    assert found is records[1]
    assert best(records, "5f3a", TARGET, 2, "cold-47M") is records[-1]
    assert best(records, "5f3a", TARGET, 3) is None
    assert best([failed()], "5f3a", TARGET, 2) is None


def test_finalists_are_ranked_by_what_they_were_compared_by() -> None:
    records = [record(latency_s=2e-3, trace=Trace()), record(latency_s=3e-3, compared_s=1.9e-3)]
    assert fastest(records) is records[1]


def test_records_are_grouped_and_counted() -> None:
    records = [record(), record(threads=1), failed("RUN_TIMEOUT"), failed("INVALID")]
    cold = record(context="cold-47M")
    groups = group_by_task([*records, cold])
    assert groups[Key("5f3a", TARGET, 2, "cold-47M")] == [cold]
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


def test_latencies_of_different_contexts_are_not_compared() -> None:
    warm = [record(latency_s=1e-3), record(latency_s=2e-3)]
    cold = [record(latency_s=x, context="cold-47M") for x in (6e-3, 4e-3, 5e-3)]
    others = [record(latency_s=3e-3, context="cold-9M"), failed(context="cold-9M"), failed(context="cold-9M")]
    every = [*others, *warm, *cold]
    in_order = [cold[1], cold[2], cold[0]]
    assert by_speed(every) == [*warm, *in_order, *others[:1]]
    assert by_speed(every, "cold-47M") == [*in_order, *warm, *others[:1]]
    assert by_speed(every, "cold-9M") == [*others[:1], *in_order, *warm]
    assert by_speed(every, "never-measured") == [*in_order, *warm, *others[:1]]
    assert fastest([*cold, failed()]) is cold[1]


def test_a_program_of_one_context_is_no_finalist_because_of_another() -> None:
    lucky, finalist = record(latency_s=1e-3), record(latency_s=2e-3)
    cold = record(latency_s=9e-3, trace=finalist.trace, context="cold-47M")
    assert fastest([lucky, finalist, cold]) is lucky
    assert latest([lucky, finalist, cold]) == [lucky, finalist, cold]


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


def test_files_of_different_contexts_are_merged_and_thinned_out_apart(tmp_path: Path) -> None:
    first = write(tmp_path / "a", record(latency_s=1e-3), record(latency_s=2e-3))
    second = write(tmp_path / "b", record(latency_s=3e-3, context="cold-9M"), record(context="cold-9M"))
    assert merge([first, second], tmp_path / "out") == 4
    assert prune(tmp_path / "out", keep_best=1) == (4, 2)
    kept = RecordLog(tmp_path / "out").read()
    assert [(r.latency_s, r.context) for r in kept] == [(1e-3, "warm"), (2e-3, "cold-9M")]


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


def test_what_is_the_best_stays_it_when_a_file_is_thinned_out(tmp_path: Path) -> None:
    lucky, chosen, other = record(latency_s=1e-3), record(latency_s=1.1e-3), record(latency_s=1.2e-3)
    finals = [
        record(latency_s=2e-3, compared_s=1.9e-3, trace=chosen.trace),
        record(latency_s=3e-3, compared_s=2.9e-3, trace=other.trace),
    ]
    for keep, expected in {1: finals[:1], 2: finals, 3: [lucky, *finals], 4: [lucky, chosen, *finals]}.items():
        path = write(tmp_path / f"keep {keep}", lucky, chosen, other, *finals)
        assert fastest(RecordLog(path).read()) == finals[0]
        assert prune(path, keep) == (5, keep)
        assert RecordLog(path).read() == expected
        assert fastest(RecordLog(path).read()) == finals[0]


def test_a_file_that_is_reached_by_a_link_is_changed_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a", record(latency_s=1e-3), record(latency_s=2e-3))
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link"
    link.symlink_to(path)
    assert prune(link, keep_best=1) == (2, 1)
    assert merge([write(tmp_path / "b", record(latency_s=3e-3))], link) == 2
    assert link.is_symlink()
    assert [r.latency_s for r in RecordLog(path).read()] == [1e-3, 3e-3]
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["link"]


def test_an_interrupt_leaves_the_file_as_it_was_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{'r' * 249}.jsonl"  # as long as a name may be
    RecordLog(path).extend([record(latency_s=2e-3), record(latency_s=1e-3)])
    before = path.read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prune(path, 1)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    assert prune(path, 1) == (2, 1)


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


OLD = "llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu -num-cores=2"  # as the version before wrote it


def test_records_are_for_targets_that_they_stand_for() -> None:
    target = Target.parse("llvm -mcpu=haswell -num-cores=2 -l2=1M -core=window:224")
    told = [OLD, str(target), f"{OLD} -l2=1M", OLD.replace("haswell", "znver3"), f"{OLD} -l2=2M", "llvm", "?"]
    records = [record(target=text, time=float(number)) for number, text in enumerate(told)]
    found = for_target(records, target)
    assert [r.time for r in found] == [0, 1, 2]
    assert {r.target for r in found} == {str(target)}
    assert found[1] is records[1]
    assert len(group_by_task(found)) == 1
