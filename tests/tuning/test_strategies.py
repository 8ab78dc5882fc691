"""The tuner with each search strategy: what it asks for is measured, and it is told all that is known of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.tuning.fake_measurer import FakeMeasurer, measurement_of
from tilewright.measure import Measurement
from tilewright.schedule import Trace
from tilewright.search import STRATEGIES, RandomSearch, Told
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.tuning.tuner import tune
from tilewright.workloads import parse

TASK = parse("gmm:48x40x56")
HASWELL = Target.parse("haswell")


@pytest.mark.parametrize("search", STRATEGIES)
def test_a_run_that_is_resumed_measures_no_program_twice(search: str, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    for trials in (10, 30):
        result = tune(
            TASK,
            trials=trials,
            target=HASWELL,
            threads=1,
            search=search,
            cost_model="analytical",
            records=records,
            measurer=FakeMeasurer(HASWELL, 1),
        )
    assert len({record.trace for record in result.records}) == 30


@dataclass(kw_only=True, eq=False)
class Listening(RandomSearch):
    """Notes the runs that it is told."""

    told: list[Sequence[float]] = field(init=False)

    def prepare(self) -> None:
        self.told = HEARD

    def learn(self, told: Sequence[Told]) -> None:
        self.told += [each.runs_s for each in told]


HEARD: list[Sequence[float]] = []


def failing_now_and_then(trace: Trace) -> Measurement:
    measurement = measurement_of(trace)
    assert measurement.latency_s is not None
    return measurement if math.floor(measurement.latency_s * 1e6) % 3 else Measurement("RUN_ERROR", error="it failed")


def test_a_strategy_is_told_the_single_runs_also_of_records(tmp_path: Path) -> None:
    HEARD.clear()
    for trials in (8, 16):
        measurer = FakeMeasurer(HASWELL, 1, failing_now_and_then)
        result = tune(
            TASK,
            trials=trials,
            target=HASWELL,
            threads=1,
            search=Listening,
            records=tmp_path / "r.jsonl",
            measurer=measurer,
        )
    assert len(HEARD) == 24
    assert {len(runs) for runs in HEARD[:8]} == {0, 3}
    assert [tuple(runs) for runs in HEARD[8:]] == [record.runs_s for record in result.records]


@pytest.mark.parametrize("search", ["evolutionary", "annealing"])
def test_the_first_round_measures_every_algorithm(search: str) -> None:
    fake = FakeMeasurer(HASWELL, 1)
    grouped = parse("grp:1x14x14x64,64,3x3,s1,p1,g4")
    tune(grouped, trials=16, target=HASWELL, threads=1, search=search, measurer=fake)
    space = derive(grouped, SpaceOptions(HASWELL, threads=1, exact=False))
    algorithms = {sketch.algorithms for sketch in space}
    assert len(algorithms) > 2
    assert {trace.algorithms for trace in fake.batches[0].traces} == algorithms
