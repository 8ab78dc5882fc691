"""Random schedules of random programs against NumPy, for as long as one likes.

    python -m tilewright.testing.fuzz --seconds 600

A case is one program and a few schedules of it, and follows from one seed. Cases run in child processes, so that a
crash or a hang of generated code is a failure with a seed like any other. The first failure ends the run: it is
replayed with fewer and fewer steps, and what is left is printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import ScheduleError, TilewrightError
from tilewright.schedule import Schedule, Step, Trace
from tilewright.task import Task
from tilewright.te import format_tensor
from tilewright.testing.check import check_program
from tilewright.testing.programs import FAMILIES, random_task
from tilewright.testing.schedules import check_trace, random_schedule

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

SCHEDULES_PER_CASE = 4
MAX_STEPS = 14
PROGRESS_EVERY_S = 5.0
CASE_TIMEOUT_S = 120.0
NATIVE = "llvm -mcpu=native"
_SPAWN = multiprocessing.get_context("spawn")


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
        return f"python -m tilewright.testing.fuzz --program {self.family} --seed {self.seed} --cases 1{target}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one schedule: `kind` is the exception's name, or crash, or hang; empty if all is well."""

    kind: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    case: Case
    number: int
    outcome: Outcome


# --- in a child process ----------------------------------------------------------------------------------------------


def _run_cases(reports: Connection, first: Case, seeds: range, deadline: float) -> None:
    """Run cases until the deadline, telling what is about to run before it does."""
    for seed in seeds:
        if time.time() >= deadline:
            break
        case = replace(first, seed=seed)
        for number in range(SCHEDULES_PER_CASE):
            reports.send((seed, number, None))
            outcome = _try_schedule(case, number, None)
            reports.send((seed, number, outcome))
            if outcome.kind:
                return


def _try_steps(reports: Connection, case: Case, number: int, steps: tuple[Step, ...]) -> None:
    reports.send(_try_schedule(case, number, steps))


def _try_schedule(case: Case, number: int, steps: tuple[Step, ...] | None) -> Outcome:
    """Check the case's own schedule, or the one that `steps` give."""
    task = case.task()
    try:
        if steps is None:
            schedule = case.schedule(task, number)
        else:
            schedule = Trace(steps).apply(task)
        check_trace(schedule)
        case.check(task, schedule, number)
    except ScheduleError as error:
        # Fewer steps may be illegal, which is no failure; the generator itself lets none of these through.
        return Outcome("ScheduleError", str(error)) if steps is None else Outcome()
    except (AssertionError, TilewrightError) as error:
        return Outcome(type(error).__name__, str(error))
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, AttributeError, OSError) as error:
        return Outcome(type(error).__name__, traceback.format_exc())
    return Outcome()


# --- in the parent ---------------------------------------------------------------------------------------------------


class _Worker:
    """A child process that runs every `stride`-th case, and what it was last heard to do."""

    def __init__(self, first: Case, seeds: range, deadline: float) -> None:
        self.reports, theirs = _SPAWN.Pipe(duplex=False)
        self.process: SpawnProcess = _SPAWN.Process(
            target=_run_cases, args=(theirs, first, seeds, deadline), daemon=True
        )
        self.process.start()
        theirs.close()
        self.first = first
        self.running: tuple[int, int] | None = None
        self.heard_at = time.monotonic()
        self.is_done = False
        self.seeds: set[int] = set()
        self.num_schedules = 0

    def receive(self) -> Failure | None:
        """Take one report; the end of reports without a word is a crash, unless nothing was running."""
        self.heard_at = time.monotonic()
        try:
            seed, number, outcome = self.reports.recv()
        except EOFError:
            return self._end()
        if outcome is None:
            self.running = (seed, number)
            return None
        self.running = None
        self.seeds.add(seed)
        self.num_schedules += 1
        return Failure(replace(self.first, seed=seed), number, outcome) if outcome.kind else None

    def _end(self) -> Failure | None:
        self.process.join()
        self.is_done = True
        return None if self.running is None else self._failure("crash", f"exit code {self.process.exitcode}")

    def check_hang(self, timeout_s: float) -> Failure | None:
        if self.running is None or time.monotonic() - self.heard_at < timeout_s:
            return None
        return self._failure("hang", f"no answer for {timeout_s:.0f} s")

    def _failure(self, kind: str, text: str) -> Failure:
        assert self.running is not None
        seed, number = self.running
        return Failure(replace(self.first, seed=seed), number, Outcome(kind, text))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def run(
    first: Case,
    seconds: float,
    num_cases: int | None = None,
    num_jobs: int = 1,
    timeout_s: float = CASE_TIMEOUT_S,
) -> Failure | None:
    """Run cases, the first with the given seed and each with the next; print progress; return the first failure."""
    start = time.monotonic()
    deadline = time.time() + seconds
    end = sys.maxsize if num_cases is None else first.seed + num_cases
    workers = [_Worker(first, range(first.seed + n, end, num_jobs), deadline) for n in range(num_jobs)]
    told_at = start
    failure: Failure | None = None
    while failure is None and not all(worker.is_done for worker in workers):
        busy = {worker.reports: worker for worker in workers if not worker.is_done}
        for ready in wait(list(busy), timeout=1.0):
            failure = failure or busy[ready].receive()  # type: ignore[index]  # of the connections that were given
        for worker in workers:
            failure = failure or worker.check_hang(timeout_s)
        if time.monotonic() - told_at >= PROGRESS_EVERY_S:
            told_at = time.monotonic()
            _tell(start, workers, "")
    for worker in workers:
        worker.stop()
    _tell(start, workers, "all equal NumPy" if failure is None else "FAILED")
    return failure


def _tell(start: float, workers: list[_Worker], verdict: str) -> None:
    num_programs = len(set[int]().union(*(worker.seeds for worker in workers)))
    num_schedules = sum(worker.num_schedules for worker in workers)
    elapsed_s = time.monotonic() - start
    print(f"{elapsed_s:7.1f} s  {num_programs} programs  {num_schedules} schedules  {verdict}".rstrip(), flush=True)


def _outcome_of(failure: Failure, steps: tuple[Step, ...], timeout_s: float) -> Outcome:
    """Try these steps in a process of their own."""
    reports, theirs = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=_try_steps, args=(theirs, failure.case, failure.number, steps), daemon=True)
    process.start()
    theirs.close()
    try:
        if not reports.poll(timeout_s):
            return Outcome("hang", f"no answer for {timeout_s:.0f} s")
        outcome: Outcome = reports.recv()
        return outcome
    except EOFError:
        process.join()
        return Outcome("crash", f"exit code {process.exitcode}")
    finally:
        process.kill()
        process.join()


def shrink(
    failure: Failure, steps: tuple[Step, ...], timeout_s: float = CASE_TIMEOUT_S
) -> tuple[tuple[Step, ...], Outcome]:
    """The steps without those that the failure does not need, and how that fails."""
    outcome = failure.outcome
    was_shorter = True
    while was_shorter:
        was_shorter = False
        for n in reversed(range(len(steps))):
            fewer = steps[:n] + steps[n + 1 :]
            tried = _outcome_of(failure, fewer, timeout_s)
            if tried.kind == failure.outcome.kind:
                steps, outcome, was_shorter = fewer, tried, True
    return steps, outcome


def report(failure: Failure, timeout_s: float = CASE_TIMEOUT_S) -> None:
    """Print what failed, first as it was found and then with as few steps as it needs."""
    from tilewright.ir import format_nest, lower

    case = failure.case
    task = case.task()
    print(f"\n{failure.outcome.kind} in program {case.family}, schedule {failure.number}, seed {case.seed}")
    print(f"{failure.outcome.text}\nreplay with: {case.replay_command()}\n")
    for tensor in task.inputs:
        print(f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}{' constant' if tensor.is_constant else ''}")
    for tensor in task.stages:
        print(f"{format_tensor(tensor)}  # {tensor.dtype}{list(tensor.shape)}")
    schedule = case.schedule(task, failure.number)
    print(f"\n{schedule.trace}\n\n{schedule}\n\nshrinking ...", flush=True)
    steps, outcome = shrink(failure, schedule.steps, timeout_s)
    small = Trace(steps).apply(task)
    print(f"\n{small.trace}\n\n{small}\n", flush=True)
    try:
        print(format_nest(lower(small).kernel))
    except (TilewrightError, AssertionError) as error:
        print(f"it does not lower: {error}")
    print(f"\n{outcome.kind}: {outcome.text}\nreplay with: {case.replay_command()}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tilewright.testing.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (default: 60)")
    parser.add_argument("--cases", type=int, help="how many cases to run at most (default: as many as time allows)")
    parser.add_argument("--seed", type=int, help="the seed of the first case; the next has the next (default: any)")
    parser.add_argument("--program", choices=FAMILIES, help="try only this family of programs")
    parser.add_argument("--target", default=NATIVE, help=f"the target to compile for; it must run here ({NATIVE})")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run cases (default: 1)")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}", flush=True)
    failure = run(Case(seed, options.program, options.target), options.seconds, options.cases, max(1, options.jobs))
    if failure is None:
        return 0
    report(failure)
    return 1


if __name__ == "__main__":
    sys.exit(main())
