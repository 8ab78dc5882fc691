"""The benchmark of calibration: its verdict, and a run on a tiny network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import calibration
from benchmarks.calibration import Row
from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.target import Target, read_calibration

NUMBERS = {"loads_per_cycle": 0.25, "region_cycles": 1e6}
FAST = ["--rounds", "2", "--trials", "2", "--threads", "1", "--format", "json"]


@pytest.fixture(autouse=True)
def measured_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "calibrate", lambda target, threads: dict(NUMBERS))
    monkeypatch.setattr(calibration, "TURN_MS", 0.01)
    calibration.targets.cache_clear()


def test_the_means_are_of_the_tasks_that_ran() -> None:
    rows = [Row("a", 2, before_ratio=0.5, after_ratio=1.0), Row("b", 2, before_ratio=0.5, after_ratio=0.25)]
    assert calibration.means(rows) == pytest.approx((0.5, 0.5))
    assert calibration.passed(rows)
    assert calibration.means([*rows, Row("c", 2, failure="it fell")]) == pytest.approx((0.5, 0.5))
    assert not calibration.passed([*rows, Row("c", 2, failure="it fell")])
    assert not calibration.passed([rows[1]])


def test_a_network_is_measured_and_the_file_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(write_tiny_model(tmp_path))
    options = [*FAST, "--networks", model, "--records", str(tmp_path / "results")]
    assert calibration.main(options) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert len(found["cases"]) == NUM_TASKS
    assert all(case["before_ratio"] > 0 and case["after_ratio"] > 0 for case in found["cases"])
    kept = read_calibration(tmp_path / "results" / "numbers.json")
    assert kept is not None
    assert kept.core == NUMBERS
    before, after = calibration.targets(tmp_path / "results" / "numbers.json", 1)
    assert (before, after.core.loads_per_cycle) == (Target.native(), 0.25)
    assert calibration.main([*options, "--report"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["cases"] == found["cases"]


def test_records_may_give_the_best_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(write_tiny_model(tmp_path))
    options = [*FAST, "--networks", model, "--records", str(tmp_path / "results")]
    calibration.main(options)
    tuned = tmp_path / "results" / "tuned.jsonl"
    num_lines = len(tuned.read_text().splitlines())
    first = next(iter(calibration.tasks_of((model,))))
    capsys.readouterr()
    calibration.main([*options, "--best", str(tuned), "--case", first])
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert not case["failure"]
    assert len(tuned.read_text().splitlines()) == num_lines
    tuned.write_text("")
    assert calibration.main([*options, "--best", str(tuned), "--case", first]) == 1
    assert "has no program of this task" in capsys.readouterr().out
