"""A machine whose pace changes while a task is tuned: programs are judged as if it had not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tilewright.measure import Measurement, Measurer, Pace
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.tuner import Tuner
from tilewright.workloads import parse

TASK = parse("gmm:48x40x56")


class Slowing(Measurer):
    """At a steady pace programs take a millisecond; the second of each batch measures 0.8, whatever the pace is."""

    def __init__(self) -> None:
        self.pace = 1.0
        self.known: dict[Trace, float] = {}

    def turn_to(self, task: Task) -> None:
        pass

    def _timed(self, trace: Trace) -> Measurement:
        return Measurement("OK", self.known[trace] * self.pace, (self.known[trace] * self.pace,))

    def measure(
        self,
        traces: Sequence[Trace],
        best_latency_s: float | None = None,
        on_result: Callable[[int, Measurement], None] | None = None,
        pace: Pace | None = None,
    ) -> list[Measurement]:
        if pace is not None:
            pace.see(self.known[pace.reference] * self.pace)
        results = []
        for index, trace in enumerate(traces):
            self.known[trace] = 0.8e-3 / self.pace if index == 1 else 1e-3
            results.append(replace(self._timed(trace), pace=1.0 if pace is None else pace.value))
            if on_result is not None:
                on_result(index, results[-1])
        return results

    def compare(self, traces: Sequence[Trace], rounds: int = 5) -> list[Measurement]:
        return [self._timed(trace) for trace in traces]


@pytest.fixture
def measurer() -> Slowing:
    return Slowing()


def test_a_program_found_while_the_machine_is_slow_can_win(measurer: Slowing) -> None:
    tuner = Tuner(TASK, Target.native(), threads=1)
    tuner.round(measurer, None, 4)
    measurer.pace = 2.0
    tuner.round(measurer, None, 4)
    assert [record.pace for record in tuner.records] == [1.0] * 4 + [pytest.approx(2.0)] * 4
    assert tuner.records[5].latency_s == tuner.records[1].latency_s
    assert tuner.best_latency_s == pytest.approx(0.4e-3)
    best = tuner.compare_finalists(measurer, None, max_finalists=2)
    assert best.trace == tuner.records[5].trace
    assert best.pace == pytest.approx(2.0)


def test_the_first_program_is_always_a_finalist(measurer: Slowing) -> None:
    tuner = Tuner(TASK, Target.native(), threads=1)
    tuner.round(measurer, None, 4)
    measurer.known[tuner.records[0].trace] = 0.1e-3  # as it turns out
    assert tuner.compare_finalists(measurer, None, max_finalists=2).trace == tuner.records[0].trace


def test_a_disturbed_reference_does_not_make_others_seem_fast(measurer: Slowing) -> None:
    tuner = Tuner(TASK, Target.native(), threads=1)
    for pace in (1.0, 1.1, 3.0):
        measurer.pace = pace
        tuner.round(measurer, None, 2)
    assert tuner.records[-1].pace == pytest.approx(1.1)
