"""Random schedules of random programs against NumPy.

A case is one program and a few schedules of it. One that fails is replayed with fewer and fewer steps, and what is left
is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import ScheduleError, TilewrightError
from tilewright.schedule import Schedule, Step, Trace
from tilewright.te import Task, format_tensor
from tilewright.testing.check import check_program
from tilewright.testing.fuzz import harness
from tilewright.testing.fuzz.harness import Failure, Limits
from tilewright.testing.programs import FAMILIES, random_task
from tilewright.testing.schedules import check_trace, random_schedule

SCHEDULES_PER_CASE = 4
MAX_STEPS = 14
NATIVE = "llvm -mcpu=native"


@dataclass(frozen=True, slots=True)
class Case:
    """One program and its schedules; `family` follows from the seed unless it is given."""

    seed: int
    program: str | None = None
    target: str = NATIVE

    @property
    def family(self) -> str:
        return self.program or list(FAMILIES)[self.seed % len(FAMILIES)]

    def task(self) -> Task:
        return random_task(self.family, np.random.default_rng([self.seed, 0]))

    def schedule(self, task: Task, number: int) -> Schedule:
        rng = np.random.default_rng([self.seed, 1, number])
        return random_schedule(task, rng, int(rng.integers(1, MAX_STEPS + 1)))

    def check(self, task: Task, schedule: Schedule, number: int) -> None:
        rng = np.random.default_rng([self.seed, 2, number])
        check_program(task, schedule, rng, threads=int(rng.integers(1, 3)), target=self.target)

    def replay_command(self) -> str:
        target = "" if self.target == NATIVE else f" --target '{self.target}'"
        return (
            f"python -m tilewright.testing.fuzz schedules --program {self.family} --seed {self.seed} --cases 1{target}"
        )

    def check_schedule(self, number: int) -> None:
        task = self.task()
        schedule = self.schedule(task, number)
        check_trace(schedule)
        self.check(task, schedule, number)


@dataclass(frozen=True, slots=True)
class Schedules:
    """Cases like the given one, each with a seed of its own."""

    like: Case = Case(0)

    def case(self, seed: int) -> Case:
        return replace(self.like, seed=seed)

    def run(self, seed: int) -> str:
        for number in range(SCHEDULES_PER_CASE):
            self.case(seed).check_schedule(number)
        return f"all {SCHEDULES_PER_CASE} schedules equal NumPy"

    def content(self, seed: int) -> tuple[str, bytes]:
        return ".txt", "\n".join(_description(self.case(seed))).encode()


@dataclass(frozen=True, slots=True)
class _Steps:
    """One schedule of a case: its own, or the one that `steps` give. Fewer steps may be illegal: that is no failure."""

    case: Case
    number: int
    steps: tuple[Step, ...] | None = None

    def run(self, seed: int) -> str:
        if self.steps is None:
            self.case.check_schedule(self.number)
            return "equal"
        task = self.case.task()
        try:
            schedule = Trace(self.steps).apply(task)
        except ScheduleError:
            return "illegal"
        check_trace(schedule)
        self.case.check(task, schedule, self.number)
        return "equal"

    def content(self, seed: int) -> tuple[str, bytes]:
        return ".txt", b""

    def failure(self, timeout_s: float) -> Failure | None:
        """How it fails in a process of its own."""
        limits = Limits(seconds=2 * timeout_s, num_cases=1, timeout_s=timeout_s)
        return next(iter(harness.run(self, self.case.seed, limits).failures), None)


def shrink(
    case: Case, number: int, failure: Failure, steps: tuple[Step, ...], timeout_s: float
) -> tuple[tuple[Step, ...], Failure]:
    """The steps without those that the failure does not need, and how that fails."""
    kind = failure.kind
    was_shorter = True
    while was_shorter:
        was_shorter = False
        for n in reversed(range(len(steps))):
            fewer = steps[:n] + steps[n + 1 :]
            tried = _Steps(case, number, fewer).failure(timeout_s)
            if tried is not None and tried.kind == kind:
                steps, failure, was_shorter = fewer, tried, True
    return steps, failure


def report(case: Case, timeout_s: float = harness.TIMEOUT_S) -> None:
    """Print what fails in a case, first as it was found and then with as few steps as it needs."""
    print("\n".join(_description(case)))
    for number in range(SCHEDULES_PER_CASE):
        failure = _Steps(case, number).failure(timeout_s)
        if failure is not None:
            _report_schedule(case, number, failure, timeout_s)
            return
    print("it does not fail again")


def _description(case: Case) -> Iterator[str]:
    task = case.task()
    for tensor in task.inputs:
        yield f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}{' constant' if tensor.is_constant else ''}"
    for tensor in task.stages:
        yield f"{format_tensor(tensor)}  # {tensor.dtype}{list(tensor.shape)}"


def _report_schedule(case: Case, number: int, failure: Failure, timeout_s: float) -> None:
    from tilewright.ir import format_nest, lower

    print(f"\n{failure.kind} in program {case.family}, schedule {number}, seed {case.seed}\n{failure.text}")
    schedule = case.schedule(case.task(), number)
    print(f"\n{schedule.trace}\n\n{schedule}\n\nshrinking ...", flush=True)
    steps, failure = shrink(case, number, failure, schedule.steps, timeout_s)
    small = Trace(steps).apply(case.task())
    print(f"\n{small.trace}\n\n{small}\n", flush=True)
    try:
        print(format_nest(lower(small).kernel))
    except (TilewrightError, AssertionError) as error:
        print(f"it does not lower: {error}")
    print(f"\n{failure.kind}: {failure.text}\nreplay with: {case.replay_command()}")
