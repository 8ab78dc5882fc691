"""A real cluster of a few nodes on this machine. All of it is in this module, so that only one is started."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright as tw
from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tests.measure.fleet.local_cluster import Cluster, kill_all, processes_of
from tilewright import workloads
from tilewright.cli import main, tune
from tilewright.errors import UsageError
from tilewright.measure import Batch, Measurement, MeasureOptions, Measurer, measure_all
from tilewright.measure.fleet import Fleet, stop_node
from tilewright.records import read_records
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.testing.measurer_checks import MeasurerChecks, doubling, split_program
from tilewright.tuning.tuner import Progress

pytestmark = pytest.mark.xdist_group("fleet")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("fleet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_FLEET", str(folder / "state"))
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(folder / "token"))
        patch.delenv("RAY_ADDRESS", raising=False)
        started = Cluster()
        try:
            yield started
        finally:
            started.close()


@pytest.fixture(scope="module")
def head(cluster: Cluster) -> str:
    cluster.add("alpha")
    return str(cluster.address)


@pytest.fixture(scope="module")
def connected(head: str) -> Iterator[Fleet]:
    with Fleet(head, threads=1) as made:
        yield made


@pytest.fixture
def fleet(connected: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """One for all tests, with nothing under way: connecting takes a second."""
    monkeypatch.setattr(connected, "_on_event", lambda _: None)
    yield connected
    connected.cancel()


class TestFleet(MeasurerChecks):
    """What every measurer must do."""

    @pytest.fixture
    def measurer(self, fleet: Fleet) -> Measurer:
        return fleet

    def make(self) -> Measurer:
        raise AssertionError("the fixture gives one")

    def test_it_may_be_closed_twice_and_with_work_left(self, head: str) -> None:  # type: ignore[override]
        measurer = Fleet(head, threads=1)
        measurer.submit(Batch(doubling(), (Trace(),)))
        measurer.close()
        measurer.close()


def programs(number: int) -> tuple[Trace, ...]:
    return tuple(split_program(doubling(), 2 + index % 7) for index in range(number))


def test_a_task_is_tuned_on_the_fleet_and_recorded_as_everywhere(fleet: Fleet, tmp_path: Path) -> None:
    path = os.path.join(tmp_path, "records.jsonl")
    task = workloads.parse("gmm:16x16x16")
    result = tw.tune(task, trials=6, records=path, target=fleet.target, threads=1, measurer=fleet)
    assert result.best.latency_s is not None
    assert len({str(record.trace) for record in read_records(path)}) == 6
    again = tw.tune(task, trials=6, records=path, target=fleet.target, threads=1, measurer=fleet)
    assert len(again.records) == 6


@pytest.mark.parametrize(
    ("compiler", "status"),
    [("writes_to_nowhere", "RUN_ERROR"), ("loops_for_ever", "RUN_TIMEOUT"), ("writes_one_element", "WRONG_RESULT")],
)
def test_a_bad_program_costs_itself_alone(
    fleet: Fleet, compiler: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = MeasureOptions(compiler=f"tests.measure.local.compilers:{compiler}", run_timeout_s=1.0)
    monkeypatch.setattr(fleet, "_options", options)
    results = measure_all(fleet, Batch(doubling(), (split_program(doubling(), 4), Trace())))
    assert [result.status for result in results] == ["OK", status]


def test_two_tuners_share_a_device_in_turns(head: str, fleet: Fleet) -> None:
    """The second one need not wait until the first, which has much to do, is done."""
    told: list[str] = []
    with Fleet(head, threads=1) as second:
        measure_all(second, Batch(doubling(), programs(1)))  # it is connected
        tickets = fleet.submit(Batch(doubling(), programs(32)))
        taking = threading.Thread(target=lambda: told.extend(fleet.next_result().measurement.status for _ in tickets))
        taking.start()
        for _ in second.submit(Batch(doubling(), programs(4))):
            assert second.next_result().measurement.status == "OK"
        num_told = len(told)
        taking.join()
    assert num_told < 32
    assert told == ["OK"] * 32


def test_without_a_cluster_the_error_has_the_command_that_starts_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "gmm:32x32x32", "--fleet", "127.0.0.1:1"]) == 2
    assert (
        "there is no fleet at 127.0.0.1:1; start one with `tilewright fleet up --listen 127.0.0.1:1`"
        in capsys.readouterr().err
    )


def test_status_says_what_each_device_has_done(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    measure_all(fleet, Batch(doubling(), (Trace(),)))
    assert main(["fleet", "status", "--format", "json"]) == 0  # the one of this machine
    (device,) = json.loads(capsys.readouterr().out)
    assert (device["name"], device["target"], device["num_builders"]) == ("alpha", str(Target.native()), 1)
    assert device["num_trials"] >= 1


def test_a_name_is_used_once(cluster: Cluster, head: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "up", "--address", head, "--as", "alpha"]) == 2
    assert "a device alpha of a fleet runs here already" in capsys.readouterr().err


def test_the_command_tunes_on_the_fleet_and_says_where(
    head: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = os.path.join(tmp_path, "records.jsonl")
    assert main(["tune", "gmm:16x16x16", "--trials", "4", "--fleet", head, "--records", path]) == 0
    said = capsys.readouterr()
    assert f"measuring on alpha: 1 threads on {Target.native()}" in said.err
    assert "trials: 4" in said.out
    assert "ray" not in (said.out + said.err).lower().replace("array", "")


def test_a_command_that_is_interrupted_goes_on_with_what_the_fleet_has_measured(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = os.path.join(tmp_path, "records.jsonl")
    command = ["tune", "gmm:16x16x16", "--trials", "20", "--fleet", head, "--records", path]
    show = tune.Display.show

    def interrupted(display: tune.Display, progress: Progress) -> None:
        if progress.num_trials == 3:
            raise KeyboardInterrupt
        show(display, progress)

    with monkeypatch.context() as patch:
        patch.setattr(tune.Display, "show", interrupted)
        assert main(command) == 130
    assert f"every finished trial is in {path}: the same command goes on from there" in capsys.readouterr().err
    before = [record.trace for record in read_records(path)]
    assert len(before) == 3
    assert main(command) == 0
    assert "trials: 20" in capsys.readouterr().out
    again = [record.trace for record in read_records(path)]
    assert again[:3] == before
    assert len(set(again)) == 20


def test_the_command_tunes_a_network_on_the_fleet_and_writes_it(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path)
    assert main(["tune", "tiny.onnx", "--trials", str(NUM_TASKS), "--fleet", head, "-o", "tiny.tw"]) == 0
    assert f"{NUM_TASKS} tuned and 0 with the default program" in capsys.readouterr().out
    assert main(["run", "tiny.tw", "--random"]) == 0


def test_the_command_collects_a_dataset_on_the_fleet_and_goes_on(
    head: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "data")
    command = ["dataset", "collect", "gmm:16x16x16", "--fleet", head, "-o", folder]
    assert main([*command, "--programs", "3"]) == 0
    said = capsys.readouterr().out
    assert "programs: 3 of 1 tasks" in said
    assert "1 threads on" in said
    assert main([*command, "--programs", "4"]) == 0
    assert "measured: 1 in" in capsys.readouterr().out


class Counted:
    """Results of batches, each once. Who kills something submits more: what was before may be measured by then."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self.events: list[str] = []
        fleet._on_event = self.events.append
        self._fleet = fleet
        self._waiting: set[int] = set()
        self.results: list[Measurement] = []
        self.submit(number)

    def submit(self, number: int) -> None:
        self._waiting.update(self._fleet.submit(Batch(doubling(), programs(number))))

    def take(self, number: int) -> None:
        for _ in range(number):
            ticket, measurement = self._fleet.next_result()
            self._waiting.remove(ticket)
            self.results.append(measurement)

    def take_all(self) -> None:
        self.take(len(self._waiting))
        assert [result.status for result in self.results] == ["OK"] * len(self.results)
        with pytest.raises(UsageError, match="no result to wait for"):
            self._fleet.next_result()


def test_a_runner_that_is_killed_is_replaced(fleet: Fleet) -> None:
    counted = Counted(fleet, 12)
    counted.take(2)
    kill_all(processes_of("alpha", "fork_server"))
    counted.take_all()


def test_a_device_whose_process_is_killed_measures_again_when_it_is_back(fleet: Fleet) -> None:
    counted = Counted(fleet, 12)
    counted.take(2)
    kill_all(processes_of("alpha", "ray::Station"))
    counted.submit(4)
    counted.take_all()
    assert any("alpha has failed" in event for event in counted.events)


def test_a_node_that_joins_late_is_killed_and_comes_back_loses_nothing(cluster: Cluster, fleet: Fleet) -> None:
    counted = Counted(fleet, 4)
    counted.take(3)
    cluster.add("beta")
    try:
        while not fleet.num_measured["beta"]:
            counted.submit(4)
            counted.take(4)
        counted.submit(24)
        counted.take(4)
        kill_all(processes_of("beta", ""))
        counted.submit(8)
        counted.take_all()
        assert any("beta has failed" in event for event in counted.events)
    finally:
        stop_node("beta")


def test_a_head_that_is_started_again_loses_nothing(fleet: Fleet) -> None:
    counted = Counted(fleet, 12)
    counted.take(2)
    kill_all(processes_of("alpha", ""))
    counted.submit(4)
    counted.take_all()
    assert any("is gone; waiting for it" in event for event in counted.events)
    assert any("is back; what was under way is measured again" in event for event in counted.events)
