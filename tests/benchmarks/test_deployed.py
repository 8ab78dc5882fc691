"""The benchmark of what the tuner says of a network: what is timed, and how it is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import deployed, fresh_runs
from benchmarks.deployed import DEPLOYED, WARM_TUNED, Row, TaskTimes, Way
from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.records import read_records

TASK = TaskTimes("conv", 2, 0.9, 0.7, 0.9, 0.95)
WAY = Way("cold-48M", 900, 118.0, 19.0, 15.9, 17.5, 18.3, 18.8, (TASK,))
GOOD = Row("zoo:resnet18 seed 0", "zoo:resnet18", 0, 2, 120, {DEPLOYED: WAY})


def test_a_network_is_tuned_in_both_ways_timed_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_tiny_model(tmp_path)
    monkeypatch.setattr(deployed, "NETWORKS", (path,))
    monkeypatch.setattr(deployed, "_ROUNDS_THEN", 1)
    monkeypatch.setattr(fresh_runs, "RUNS_S", 0.01)
    options = ["--records", str(tmp_path / "records"), "--threads", "1", "--budget", "3", "--rounds", "2"]
    deployed.main([*options, "--warm-too", "--format", "json"])
    (first,) = json.loads(capsys.readouterr().out)["cases"]
    assert first["failure"] == ""
    assert first["gain"] > 0
    assert set(first["ways"]) == {DEPLOYED, WARM_TUNED}
    assert first["ways"][WARM_TUNED]["context"] == "warm"
    assert first["ways"][DEPLOYED]["context"].startswith("cold-")
    for way in first["ways"].values():
        assert len(way["tasks"]) == NUM_TASKS
        for name in ("told_ms", "warm_ms", "cold_ms", "network_ms", "run_ms"):
            assert way[name] > 0
        assert way["network_ms"] == pytest.approx(sum(task["weight"] * task["network_ms"] for task in way["tasks"]))
    contexts = {
        name: {record.context for record in read_records(tmp_path / "records" / f"tiny-{name}-0.jsonl")}
        for name in ("deployed", "warm")
    }
    assert contexts["warm"] == {"warm"}
    assert contexts["deployed"] - {"warm"} == {first["ways"][DEPLOYED]["context"]}, "warm is what has no weights"

    deployed.main([*options, "--report", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["cases"] == [first]
    deployed.main([*options, "--report"])
    assert f"{path} seed 0: the tuner is" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("told_ms", "changes", "is_good"),
    [
        (18.8, {}, True),
        (18.8 * 1.079, {}, True),
        (18.8 * 0.921, {}, True),
        (18.8 * 1.081, {}, False),
        (18.8 * 0.919, {}, False),
        (18.8, {"gain": 1.01}, True),
        (18.8, {"gain": 0.99}, False),
        (18.8, {"gain": 0.99, "network": "zoo:bert_tiny"}, True),
        (18.8, {"failure": "no valid candidate"}, False),
        (18.8, {"ways": {}, "failure": "no valid candidate"}, False),
    ],
)
def test_what_a_network_must_reach(told_ms: float, changes: dict[str, Any], is_good: bool) -> None:
    row = replace(GOOD, **{"ways": {DEPLOYED: replace(WAY, told_ms=told_ms)}} | changes)
    assert deployed.passed([row]) == is_good
    assert deployed.as_table([row]).splitlines()[-1] == ("pass" if is_good else "FAIL")
    assert deployed.verdict(row)


def test_nothing_is_no_pass() -> None:
    assert not deployed.passed([])


def test_a_row_survives_json() -> None:
    rows = [replace(GOOD, ways={DEPLOYED: WAY, WARM_TUNED: replace(WAY, context="warm")}, gain=1.05)]
    assert [deployed.row_of(**case) for case in json.loads(deployed.as_json(rows))["cases"]] == rows


def test_the_chosen_cases_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert deployed.main(["--list", "--case", "bert_tiny", "--seeds", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == ["zoo:bert_tiny seed 0", "zoo:bert_tiny seed 1"]


def test_a_context_that_is_none_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        deployed.main(["--cold", "lukewarm"])
    assert stop.value.code == 2
    assert "the context is 'lukewarm'; it must be 'warm'" in capsys.readouterr().err
