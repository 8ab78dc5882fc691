"""A fleet and its link, with machines that answer at once: what a tuner makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilewright as tw
from tests.measure.fleet.linked import InstantStation, connect, native_station
from tests.tuning.fake_measurer import FakeMeasurer
from tilewright import workloads
from tilewright.measure import Batch, Measurer
from tilewright.measure.fleet import Fleet
from tilewright.records import read_records
from tilewright.schedule import Trace
from tilewright.search import EvolutionarySearch
from tilewright.target import Target
from tilewright.testing.measurer_checks import doubling, split_program


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_FLEET", str(tmp_path / "state"))


def test_a_fleet_and_a_local_tuner_with_the_same_seed_make_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, target = workloads.parse("gmm:32x32x32"), Target.native()

    def recorded(name: str, measurer: Measurer) -> list[tuple[str, float | None]]:
        path = str(tmp_path / name)
        search = EvolutionarySearch(population=64, generations=2)
        tw.tune(task, trials=40, seed=3, records=path, target=target, threads=1, measurer=measurer, search=search)
        return sorted((str(record.trace), record.latency_s) for record in read_records(path))

    local = recorded("local.jsonl", FakeMeasurer(target, 1))
    connect({"alpha": native_station()}, monkeypatch)
    with Fleet("anywhere", threads=1) as fleet:
        assert recorded("fleet.jsonl", fleet) == local


def test_all_devices_of_the_kind_measure_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    other = InstantStation("other", "llvm -mcpu=nehalem -l2=3M")
    stations = {name: native_station(name) for name in ("alpha", "beta")}
    connect(stations | {"other": other}, monkeypatch)
    traces = tuple(split_program(doubling(), 2 + number % 7) for number in range(32))
    with Fleet("anywhere", threads=1, target=Target.native()) as fleet:
        tickets = fleet.submit(Batch(doubling(), traces))
        assert sorted(fleet.next_result().ticket for _ in tickets) == tickets
        assert fleet.num_measured.keys() == {"alpha", "beta"}


def test_what_was_submitted_before_a_cancel_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    connect({"alpha": native_station()}, monkeypatch)
    with Fleet("anywhere", threads=1) as fleet:
        fleet.submit(Batch(doubling(), (Trace(),) * 8))
        fleet.cancel()
        (ticket,) = fleet.submit(Batch(doubling(), (Trace(),)))
        assert fleet.next_result().ticket == ticket
