"""The best program and what is said of it: chosen by some turns of a comparison, told by others."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.measure import Batch, Measurement, Result, Ticket
from tilewright.records import Record, RecordLog, fastest, read_records
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.tuning.finals import fastest_first, final_of
from tilewright.tuning.rounds import measure_rounds
from tilewright.tuning.tuner import NUM_LAST_FINALISTS, Tuner
from tilewright.workloads import parse

TASK = parse("gmm:48x40x56")


class Noisy:
    """A measurer. Every program takes what `true_s` says, a millisecond by default, times the noise of the moment."""

    def __init__(self, noise: float = 0.0, seed: int = 0) -> None:
        self.target = Target.native()
        self.threads = 1
        self.rng = np.random.default_rng(seed)
        self.noise = noise
        self.true_s: dict[Trace, float] = {}
        self.failing: set[Trace] = set()
        self.compared: list[tuple[Trace, ...]] = []
        self.waiting: list[Result] = []

    @property
    def has_room(self) -> bool:
        return not self.waiting

    def submit(self, batch: Batch) -> list[Ticket]:
        if batch.turns is not None:
            self.compared.append(batch.traces)
        self.waiting = [Result(n, self.measure(trace, batch.turns or 1)) for n, trace in enumerate(batch.traces)]
        return list(range(len(batch.traces)))

    def next_result(self) -> Result:
        return self.waiting.pop(0)

    def cancel(self) -> None:
        self.waiting.clear()

    def close(self) -> None:
        self.cancel()

    def measure(self, trace: Trace, turns: int = 1) -> Measurement:
        if trace in self.failing:
            return Measurement("RUN_ERROR")
        runs_s = self.true_s.get(trace, 1e-3) * np.exp(self.noise * self.rng.normal(size=turns))
        return Measurement("OK", float(np.median(runs_s)), tuple(map(float, runs_s)))


@pytest.fixture(scope="module")
def searched() -> Tuner:
    """After forty trials."""
    tuner = Tuner(TASK, Target.native(), threads=1)
    rounds = iter([tuner.round(40, None)])
    measure_rounds(Noisy(), lambda: next(rounds, None))
    return tuner


@pytest.fixture
def tuner(searched: Tuner) -> Tuner:
    return measured_anew(searched, Noisy())


def measured_anew(tuner: Tuner, measurer: Noisy) -> Tuner:
    """The tuner as it is if its trials gave what this measurer says."""
    again = copy.copy(tuner)
    results = [measurer.measure(record.trace) for record in tuner.records]
    again.records = [
        replace(record, latency_s=result.latency_s, runs_s=result.runs_s)
        for record, result in zip(tuner.records, results, strict=True)
    ]
    return again


def test_what_is_said_of_the_best_is_not_what_chose_it(searched: Tuner) -> None:
    """Forty programs that are all alike: the least of their noisy trials is far too small, the final is not."""
    found, told, chosen = [], [], []
    for seed in range(20):
        measurer = Noisy(noise=0.1, seed=seed)
        tuner = measured_anew(searched, measurer)
        best = tuner.compare_finalists(measurer, None)
        assert tuner.best_latency_s is not None
        assert best.latency_s is not None
        assert best.compared_s is not None
        found.append(tuner.best_latency_s)
        told.append(best.latency_s)
        chosen.append(best.compared_s)
    assert np.mean(found) < 0.85e-3
    assert np.mean(chosen) < 0.97e-3
    assert np.mean(told) == pytest.approx(1e-3, rel=0.025)


def test_the_first_program_is_always_a_finalist(tuner: Tuner) -> None:
    measurer = Noisy()
    measurer.true_s[tuner.records[0].trace] = 0.1e-3  # as it turns out
    best: list[Record] = []
    final = tuner.final_round(2, 4, None, best.append)
    assert final is not None
    assert len(final.batch.traces) == 2
    for index, trace in enumerate(final.batch.traces):
        final.tell(index, measurer.measure(trace, 4))
    assert [record.trace for record in best] == [tuner.records[0].trace]


def test_of_many_finalists_the_fastest_are_compared_in_more_turns(tuner: Tuner) -> None:
    measurer = Noisy()
    fast = tuner.records[9].trace
    measurer.true_s[fast] = 0.5e-3  # among equal ones the first are finalists
    assert tuner.compare_finalists(measurer, None).trace == fast
    qualifying, last = measurer.compared
    assert tuner.records[0].trace not in qualifying
    assert last[0] == tuner.records[0].trace
    assert len(last) == NUM_LAST_FINALISTS


@pytest.mark.parametrize("seed", range(8))
def test_the_records_name_the_same_best_as_the_tuner(searched: Tuner, tmp_path: Path, seed: int) -> None:
    log = RecordLog(tmp_path / "records.jsonl")
    measurer = Noisy(noise=0.2, seed=seed)
    tuner = measured_anew(searched, measurer)
    log.extend(tuner.records)
    best = tuner.compare_finalists(measurer, log)
    assert fastest(read_records(log.path)) == best
    num_finals = len(measurer.compared) - 1
    assert len(list(read_records(log.path))) == 40 + num_finals * NUM_LAST_FINALISTS


def test_a_final_that_something_disturbed_is_repeated_once(tuner: Tuner, tmp_path: Path) -> None:
    class Disturbed(Noisy):
        def __init__(self, num_slow: int) -> None:
            super().__init__()
            self.num_slow = num_slow

        def submit(self, batch: Batch) -> list[Ticket]:
            is_slow = len(batch.traces) == NUM_LAST_FINALISTS and self.num_slow > 0
            self.num_slow -= is_slow
            self.true_s = dict.fromkeys(batch.traces, 2e-3 if is_slow else 1e-3)
            return super().submit(batch)

    once, always = Disturbed(1), Disturbed(9)
    log = RecordLog(tmp_path / "records.jsonl")
    log.extend(tuner.records)
    best = tuner.compare_finalists(once, log)
    assert best.latency_s == pytest.approx(1e-3)
    assert fastest(read_records(log.path)) == best
    assert len(once.compared) == 3, "one to qualify, and two finals"
    assert tuner.compare_finalists(always, None).latency_s == pytest.approx(2e-3)
    assert len(always.compared) == 3


def test_a_finalist_that_fails_now_does_not_win(tuner: Tuner) -> None:
    measurer = Noisy()
    tuner.records = tuner.records[:3]
    measurer.true_s[tuner.records[1].trace] = 0.1e-3
    measurer.failing = {tuner.records[1].trace}
    assert tuner.compare_finalists(measurer, None).trace != tuner.records[1].trace
    measurer.failing = {record.trace for record in tuner.records}
    assert tuner.compare_finalists(measurer, None).latency_s == 1e-3, "as it was found"


def test_halves_of_a_failure() -> None:
    failure = Measurement("RUN_ERROR", error="died")
    assert final_of(failure).measurement == failure
    assert final_of(failure).compared_s is None
    assert fastest_first([Measurement("OK", 2.0), failure, Measurement("OK", 1.0)]) == [2, 0]
