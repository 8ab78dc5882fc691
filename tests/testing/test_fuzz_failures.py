"""What the fuzzer does when something fails: real crashes, hangs and wrong answers, found, shrunk and reported."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import pytest

from tilewright.schedule import Schedule
from tilewright.task import Task
from tilewright.testing.fuzz import Case, report, run

TIMEOUT_S = 3.0


def _splits(schedule: Schedule) -> bool:
    return any(step.name == "split" for step in schedule.steps)


@dataclass(frozen=True, slots=True)
class WrongCase(Case):
    def check(self, task: Task, schedule: Schedule, number: int) -> None:
        assert not _splits(schedule), "3 of 4 elements differ"


@dataclass(frozen=True, slots=True)
class CrashingCase(Case):
    def check(self, task: Task, schedule: Schedule, number: int) -> None:
        if _splits(schedule):
            os.kill(os.getpid(), signal.SIGSEGV)


@dataclass(frozen=True, slots=True)
class HangingCase(Case):
    def check(self, task: Task, schedule: Schedule, number: int) -> None:
        if len(schedule.steps) >= 3:
            time.sleep(600)


@dataclass(frozen=True, slots=True)
class BrokenCase(Case):
    def check(self, task: Task, schedule: Schedule, number: int) -> None:
        if _splits(schedule):
            raise KeyError("no such loop")


@pytest.mark.parametrize(
    ("case", "kind", "text"),
    [
        (WrongCase(7, "elementwise"), "AssertionError", "3 of 4 elements differ"),
        (CrashingCase(7, "elementwise"), "crash", "exit code -11"),
        (BrokenCase(7, "elementwise"), "KeyError", "no such loop"),
    ],
)
def test_failure_is_found_shrunk_and_reported(
    case: Case, kind: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = run(case, seconds=120, timeout_s=60)
    assert failure is not None
    assert (failure.outcome.kind, type(failure.case)) == (kind, type(case))
    report(failure)
    printed = capsys.readouterr().out
    assert "FAILED" in printed
    assert f"{kind} in program elementwise, schedule {failure.number}, seed {failure.case.seed}" in printed
    assert text in printed
    assert f"--program elementwise --seed {failure.case.seed} --cases 1" in printed
    shrunk = printed.split("shrinking ...")[1]
    assert shrunk.count('s["') == 1
    assert ".split(" in shrunk
    assert "def elementwise(" in shrunk


def test_hang_is_a_failure_and_ends_in_time() -> None:
    start = time.monotonic()
    failure = run(HangingCase(3, "scalar"), seconds=120, timeout_s=TIMEOUT_S)
    assert failure is not None
    assert failure.outcome.kind == "hang"
    assert time.monotonic() - start < 60


def test_same_seed_gives_the_same_case() -> None:
    first, second = Case(11), Case(11)
    task = first.task()
    assert task.hash == second.task().hash
    assert str(first.schedule(task, 2)) == str(second.schedule(second.task(), 2))
    assert Case(11, first.family).task().hash == task.hash
