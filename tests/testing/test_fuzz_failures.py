"""What the fuzzer of schedules does when one fails: real crashes and wrong answers, found, shrunk and reported."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import pytest

from tilewright.schedule import Schedule
from tilewright.te import Task
from tilewright.testing.fuzz import harness
from tilewright.testing.fuzz.harness import Limits
from tilewright.testing.fuzz.schedules import Case, Schedules, report


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
    (failure,) = harness.run(Schedules(case), case.seed, Limits(120, is_first_failure_last=True)).failures
    assert failure.kind == kind
    failed = Schedules(case).case(failure.seed)
    assert type(failed) is type(case)
    report(failed)
    printed = capsys.readouterr().out
    assert f"{kind} in program elementwise, schedule " in printed
    assert text in printed
    assert f"--program elementwise --seed {failure.seed} --cases 1" in printed
    shrunk = printed.split("shrinking ...")[1]
    assert shrunk.count('s["') == 1
    assert ".split(" in shrunk
    assert "def elementwise(" in shrunk


def test_same_seed_gives_the_same_case() -> None:
    first, second = Case(11), Case(11)
    task = first.task()
    assert task.hash == second.task().hash
    assert str(first.schedule(task, 2)) == str(second.schedule(second.task(), 2))
    assert Case(11, first.family).task().hash == task.hash
