"""Runs seeded cases in child processes, goes on after a failure, and groups failures by where they happen."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

TIMEOUT_S = 60.0
PROGRESS_EVERY_S = 5.0
# What a case may take beyond what its process has when it begins.
MEMORY_BYTES = 4 * 2**30
# A process that has run this many is replaced: compiled code is never unloaded, and would add up.
CASES_A_PROCESS = 500
_TOLD_A_GROUP = 3
_HANG, _CRASH = "hang", "crash"
_SPAWN = multiprocessing.get_context("spawn")


class Subject(Protocol):
    """What is tried. It is sent to each worker process, which calls `run` for one seed after another."""

    def run(self, seed: int) -> str:
        """Try one case; a word on how it ended, such as "same" or "refused". Any exception is a failure."""
        ...

    def content(self, seed: int) -> tuple[str, bytes]:
        """The suffix and the bytes of a file that holds the case; the same for the same seed."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed case: `kind` is the exception's name, or crash, or hang; `place` is where in tilewright it was."""

    seed: int
    kind: str
    place: str
    text: str


@dataclass(slots=True)
class Tally:
    """How the cases ended: how many by each word, and those that failed."""

    labels: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def num_cases(self) -> int:
        return self.labels.total() + len(self.failures)

    def groups(self) -> dict[tuple[str, str], list[Failure]]:
        """Failures of the same kind at the same place, the most frequent first."""
        found: dict[tuple[str, str], list[Failure]] = {}
        for failure in self.failures:
            found.setdefault((failure.kind, failure.place), []).append(failure)
        return dict(sorted(found.items(), key=lambda group: -len(group[1])))

    def to_json(self) -> dict[str, Any]:
        groups = [
            {"kind": kind, "place": place, "cases": len(group), "seeds": [f.seed for f in group[:_TOLD_A_GROUP]]}
            for (kind, place), group in self.groups().items()
        ]
        return {"cases": self.num_cases, "labels": dict(self.labels), "failures": groups}


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends, and what one case may take."""

    seconds: float
    num_cases: int | None = None
    num_jobs: int = 1
    timeout_s: float = TIMEOUT_S
    memory_bytes: int = MEMORY_BYTES
    is_first_failure_last: bool = False


# --- in a child process ----------------------------------------------------------------------------------------------


def _work(reports: Connection, subject: Subject, seeds: range, deadline: float, memory_bytes: int, log: str) -> None:
    """Run cases until the deadline, telling which is about to run before it does."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), sys.stderr.fileno())
    faulthandler.enable()
    for number, seed in enumerate(seeds):
        if time.time() >= deadline:
            return
        reports.send((seed, None))
        outcome = _outcome(subject, seed)
        reports.send((seed, outcome))
        if number == 0:  # what every case needs is loaded by now
            _limit_memory(memory_bytes)


def _limit_memory(num_bytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + num_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _outcome(subject: Subject, seed: int) -> str | Failure:
    try:
        return subject.run(seed)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what is looked for
        text = "".join(traceback.format_exception(error))
        return Failure(seed, type(error).__name__, _place(reversed(traceback.extract_tb(error.__traceback__))), text)


def _place(frames: Any) -> str:
    """The innermost line of tilewright, tests aside."""
    for frame in frames:
        _, found, path = frame.filename.rpartition("/tilewright/")
        if found and not path.startswith("testing/"):
            return f"{path}:{frame.lineno} {frame.name}"
    return ""


# --- in the parent ---------------------------------------------------------------------------------------------------


class _Worker:
    """A child process that runs the cases of some seeds, and the one in its place when that is lost."""

    def __init__(self, subject: Subject, seeds: range, deadline: float, limits: Limits, log: str) -> None:
        self.subject = subject
        self.seeds = seeds
        self.deadline = deadline
        self.limits = limits
        self.log = log
        self.is_done = not seeds
        self._start()

    def _start(self) -> None:
        self.running: int | None = None
        self.heard_at = time.monotonic()
        Path(self.log).write_text("")
        self.reports, theirs = _SPAWN.Pipe(duplex=False)
        now, self.seeds = self.seeds[:CASES_A_PROCESS], self.seeds[CASES_A_PROCESS:]
        self.process: SpawnProcess = _SPAWN.Process(
            target=_work,
            args=(theirs, self.subject, now, self.deadline, self.limits.memory_bytes, self.log),
            daemon=True,
        )
        self._now = now
        self.process.start()
        theirs.close()

    def receive(self, tally: Tally) -> None:
        """Take one report; the end of reports in the middle of a case is a crash."""
        self.heard_at = time.monotonic()
        try:
            seed, outcome = self.reports.recv()
        except (EOFError, ConnectionError):
            self._end(tally)
            return
        if outcome is None:
            self.running = seed
            return
        self.running = None
        if isinstance(outcome, Failure):
            tally.failures.append(outcome)
        else:
            tally.labels[outcome] += 1

    def _end(self, tally: Tally) -> None:
        self.process.join()
        if self.running is not None:
            self._lost(tally, _CRASH, f"exit code {self.process.exitcode}")
        elif self.process.exitcode:
            raise RuntimeError(f"a worker ended before its first case:\n{Path(self.log).read_text()}")
        self._go_on()

    def _go_on(self) -> None:
        if not self.seeds or time.time() >= self.deadline:
            self.is_done = True
            return
        self._start()

    def check_hang(self, tally: Tally) -> None:
        if self.running is None or time.monotonic() - self.heard_at < self.limits.timeout_s:
            return
        os.kill(self.process.pid or 0, signal.SIGABRT)  # faulthandler says where it is
        self.process.join(5)
        self.stop()
        self._lost(tally, _HANG, f"no answer for {self.limits.timeout_s:.0f} s")
        self._go_on()

    def _lost(self, tally: Tally, kind: str, text: str) -> None:
        assert self.running is not None
        log = Path(self.log).read_text(errors="replace")
        frames = [
            traceback.FrameSummary(path, int(line), name, lookup_line=False)
            for path, line, name in re.findall(r'File "(.+)", line (\d+) in (\S+)', log)
        ]
        tally.failures.append(Failure(self.running, kind, _place(frames), f"{text}\n{log}"))
        self.seeds = range(self.running + self._now.step, self.seeds.stop, self._now.step)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def run(
    subject: Subject,
    first_seed: int,
    limits: Limits,
    on_progress: Callable[[float, Tally], None] | None = None,
    on_failure: Callable[[Failure], None] | None = None,
) -> Tally:
    """Run cases, the first with the given seed and each with the next, until a limit is reached or Ctrl-C."""
    tell = on_progress or (lambda elapsed_s, tally: None)
    tell_failure = on_failure or (lambda failure: None)
    num_told = 0
    start = told_at = time.monotonic()
    deadline = time.time() + limits.seconds
    end = sys.maxsize if limits.num_cases is None else first_seed + limits.num_cases
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as folder:
        workers = [
            _Worker(subject, range(first_seed + n, end, limits.num_jobs), deadline, limits, _log(folder, n))
            for n in range(min(limits.num_jobs, end - first_seed))
        ]
        try:
            while not all(worker.is_done for worker in workers):
                busy: dict[Any, _Worker] = {worker.reports: worker for worker in workers if not worker.is_done}
                for ready in wait(list(busy), timeout=1.0):
                    busy[ready].receive(tally)
                for worker in busy.values():
                    worker.check_hang(tally)
                for failure in tally.failures[num_told:]:
                    tell_failure(failure)
                num_told = len(tally.failures)
                if tally.failures and limits.is_first_failure_last:
                    break
                if time.monotonic() - told_at >= PROGRESS_EVERY_S:
                    told_at = time.monotonic()
                    tell(told_at - start, tally)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
        finally:
            for worker in workers:
                worker.stop()
    tell(time.monotonic() - start, tally)
    return tally


def _log(folder: str, number: int) -> str:
    return os.path.join(folder, f"worker{number}.log")


# --- the result ------------------------------------------------------------------------------------------------------


def progress_line(elapsed_s: float, tally: Tally) -> str:
    endings = ", ".join(f"{label} {count}" for label, count in tally.labels.most_common())
    failed = f", FAILED {len(tally.failures)}" if tally.failures else ""
    return f"{elapsed_s:7.1f} s  {tally.num_cases} cases: {endings}{failed}"


def describe(tally: Tally, kind: str, replay: Callable[[int], str]) -> str:
    """A line for each way to end, and for each group of failures its first text and how to see it again."""
    lines = [f"{kind}: {tally.num_cases} cases"]
    lines += [f"{count:>8}  {label}" for label, count in tally.labels.most_common()]
    for (error, place), group in tally.groups().items():
        seeds = ", ".join(str(failure.seed) for failure in group[:_TOLD_A_GROUP])
        lines.append(f"{len(group):>8}  FAILED: {error} at {place or 'an unknown place'}; seeds {seeds}")
    for group in tally.groups().values():
        lines.append(f"\nseed {group[0].seed}: {group[0].text.rstrip()}\nreplay with: {replay(group[0].seed)}")
    return "\n".join(lines)


def keep(subject: Subject, failure: Failure, folder: Path) -> None:
    """Write the file of a failed case, and what was said of it."""
    folder.mkdir(parents=True, exist_ok=True)
    suffix, content = subject.content(failure.seed)
    (folder / f"{failure.seed}{suffix}").write_bytes(content)
    (folder / f"{failure.seed}.txt").write_text(failure.text)


def to_json(tally: Tally, kind: str, seed: int) -> str:
    return json.dumps({"kind": kind, "seed": seed, **tally.to_json()}, indent=1)
