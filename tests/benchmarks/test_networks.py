"""The benchmark of networks: what is tuned, kept and compared, and how the results are judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import networks
from benchmarks.networks import Row
from benchmarks.tuned_network import Curve, Point, close_after_s, subject_of, tune_network
from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright import peers
from tilewright.errors import UsageError
from tilewright.network import partition_network
from tilewright.records import read_records
from tilewright.runtime import Timing
from tilewright.target import Target
from tilewright.tuning.task_scheduler import NetworksResult, TaskScheduler

GOOD = Row("zoo:resnet18", 2, 600, 20, 900, 598.0, 90.0, 20.0, 40.0, 20.0, {}, "openvino", 1.2, 1.4)


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(networks, "NETWORKS", (write_tiny_model(tmp_path),))
    records = ["--records", str(tmp_path / "records"), "--threads", "1"]
    return [*records, "--budget", "3", "--rounds", "2", "--format", "json"]


def cases(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["cases"]
    return found


def test_a_network_is_tuned_once_timed_each_time_and_reported(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    networks.main(options)
    (first,) = cases(capsys)
    assert first["failure"] == ""
    assert first["num_tasks"] == NUM_TASKS
    assert set(first["peers_ms"]) == {"onnxruntime", "openvino"}
    assert first["peers_ms"][first["peer"]] == min(first["peers_ms"].values())
    assert min(first[name] for name in ("untuned_ms", "tuned_ms", "untuned_ratio", "tuned_ratio")) > 0
    assert 0 < first["close_after_s"] <= first["tuning_s"]
    records = list(read_records(tmp_path / "records" / "tiny.jsonl"))
    assert 0 < first["num_trials"] <= len(records)

    networks.main([*options, "--report"])
    assert cases(capsys) == [first]

    networks.main(options)
    (again,) = cases(capsys)
    assert list(read_records(tmp_path / "records" / "tiny.jsonl")) == records
    tuning = ("num_trials", "tuning_s", "close_after_s", "estimated_ms", "budget_s")
    assert [again[name] for name in tuning] == [first[name] for name in tuning]


def test_with_zero_trials_nothing_is_tuned(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    networks.main([*options, "--zero-trials"])
    (case,) = cases(capsys)
    assert case["failure"] == ""
    assert (case["num_tasks"], case["num_trials"], case["tuned_ms"], case["budget_s"]) == (NUM_TASKS, 0, None, 0)
    assert min(case[name] for name in ("untuned_ms", "untuned_ratio")) > 0
    assert not (tmp_path / "records" / "tiny.jsonl").exists()


class Wrong:
    """A library that computes something else."""

    name = "wrong"

    def run(self, inputs: object) -> list[object]:
        return [np.ones((1, 4), np.float32)]


def missing(library: str, *_: object) -> object:
    raise peers.PeerError(f"{library} is not installed")


def test_a_network_that_cannot_be_compared_has_no_ratio(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(networks, "network_peer", lambda *_: Wrong())
    assert networks.main(options) == 1
    (case,) = cases(capsys)
    assert case["failure"].startswith("untuned: tilewright and onnxruntime must compute the same")
    assert (case["tuned_ratio"], case["untuned_ratio"]) == (0.0, 0.0)
    assert case["num_trials"] > 0
    monkeypatch.setattr(networks, "network_peer", missing)
    assert networks.main(options) == 1
    assert cases(capsys)[0]["failure"] == "onnxruntime is not installed"


def test_a_run_that_was_interrupted_has_the_rest_of_its_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets_s = []

    def tune(scheduler: TaskScheduler, *, budget_s: float, **_: object) -> NetworksResult:
        budgets_s.append(budget_s)
        return NetworksResult(scheduler.networks, (), {"tiny": 0.25}, 7, budget_s)

    monkeypatch.setattr(TaskScheduler, "tune", tune)
    partition, target = partition_network(write_tiny_model(tmp_path)), Target.native()
    curve = Curve(tmp_path / "tiny.curve.jsonl", subject_of(partition, target, 2))
    curve.append(Point(4000.0, 0.5, 0, 5))

    def run(budget_s: float) -> Sequence[Point]:
        records = tmp_path / "tiny.jsonl"
        return tune_network("tiny", lambda: partition, records, budget_s=budget_s, target=target, threads=2)[1]

    last = run(5000.0)[-1]
    assert 900.0 < budgets_s[0] <= 1000.0
    assert last.elapsed_s > 4000.0
    assert (last.latency_s, last.num_trials, last.budget_s) == (0.25, 7, 5000.0)
    assert run(5000.0)[-1] == run(600.0)[-1] == last
    assert run(9000.0)[-1].budget_s == 9000.0
    assert len(budgets_s) == 2


def test_records_whose_seconds_are_not_known_are_refused(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "tiny.jsonl").touch()
    assert networks.main(options) == 1
    assert "took is not known" in cases(capsys)[0]["failure"]


def test_a_report_of_an_unfinished_suite_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [replace(GOOD, network=network) for network in networks.NETWORKS[:2]]
    (tmp_path / "networks.json").write_text(networks.as_json(rows))
    arguments = ["--report", "--records", str(tmp_path)]
    assert networks.main([*arguments, "--case", "resnet18"]) == 0
    assert networks.main(arguments) == 1
    printed = capsys.readouterr()
    assert printed.out.endswith("pass\n")
    assert printed.err == f"not measured yet: {', '.join(networks.NETWORKS[2:])}\n"


def test_the_chosen_networks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert networks.main(["--list", "--case", "bert"]) == 0
    assert capsys.readouterr().out.split() == ["zoo:bert_tiny", "zoo:bert_base"]


@pytest.mark.parametrize(
    ("changes", "is_good"),
    [
        ({}, True),
        ({"tuned_ratio": 1.35}, True),
        ({"tuned_ratio": 1.34}, False),
        ({"untuned_ratio": 1.14}, False),
        ({"budget_s": 0, "tuned_ratio": 0.0, "tuned_ms": None, "close_after_s": None}, True),  # with zero trials alone
        ({"close_after_s": 180.1}, False),
        ({"close_after_s": 180.1, "network": "zoo:resnet50"}, True),
        ({"budget_s": 601}, False),
        ({"failure": "no valid candidate"}, False),
    ],
)
def test_what_networks_must_reach(changes: dict[str, Any], is_good: bool) -> None:
    rows = [replace(GOOD, **changes)]
    assert networks.passed(rows) == is_good
    assert networks.as_table(rows).splitlines()[-1] == ("pass" if is_good else "FAIL")


def test_a_good_mean_does_not_make_up_for_one_slow_network() -> None:
    rows = [replace(GOOD, tuned_ratio=4.0), replace(GOOD, network="zoo:dcgan", tuned_ratio=0.99)]
    assert networks.means(rows)[0] == pytest.approx(np.sqrt(4.0 * 0.99))
    assert not networks.passed(rows)
    rows = [replace(GOOD, untuned_ratio=4.0), replace(GOOD, network="zoo:dcgan", untuned_ratio=0.84)]
    assert not networks.passed(rows)


def test_nothing_is_no_pass() -> None:
    assert not networks.passed([])


def test_the_ratio_is_the_median_of_those_of_the_rounds() -> None:
    theirs, ours = Timing(1, (2.0, 9.0, 4.0)), Timing(1, (4.0, 1.0, 4.0))
    assert networks.ratio(theirs, ours) == 1.0


def points(*latencies: tuple[float, int]) -> list[Point]:
    """One each second: the latency, and how many tasks are not measured."""
    return [Point(float(n), latency_s, unmeasured, n) for n, (latency_s, unmeasured) in enumerate(latencies, start=1)]


@pytest.mark.parametrize(
    ("curve", "after_s"),
    [
        (points((2.0, 0), (1.11, 0), (1.1, 0), (1.0, 0)), 3.0),
        (points((0.5, 1), (1.05, 0), (1.0, 0)), 2.0),  # what is not measured counts for nothing
        (points((1.0, 1), (1.0, 1)), 1.0),  # unless it never was
        (points((1.0, 0), (1.2, 0), (1.0, 0)), 3.0),
        (points((2.0, 0), (1.0, 0)), 2.0),
    ],
)
def test_a_curve_is_close_once_it_stays_so(curve: Sequence[Point], after_s: float) -> None:
    assert close_after_s(curve) == after_s


def test_a_curve_is_kept_and_taken_for_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "tiny.curve.jsonl"
    curve = Curve(path, "these tasks")
    assert curve.read() == []
    first, last = Point(1.5, 0.25, 3, 1), Point(2.5, 0.125, 0, 2, budget_s=10)
    curve.append(first)
    curve.append(last)
    assert Curve(path, "these tasks").read() == [first, last]
    with pytest.raises(UsageError, match="is of other tasks"):
        Curve(path, "other tasks").read()


def test_trials_serve_the_same_tasks_and_threads(tmp_path: Path) -> None:
    path, target = write_tiny_model(tmp_path), Target.native()
    one, two = partition_network(path), partition_network(path)
    assert subject_of(one, target, 1) == subject_of(two, target, 1)
    assert subject_of(one, target, 1) != subject_of(one, target, 2)
