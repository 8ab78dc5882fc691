"""`Station`: what a machine of the fleet does, in the actor that stands for it: it builds, and runs one at a time.

Inside are the same builder and runner as on the tuner's own machine, with the same processes and the same faults that
cost one program. What goes wrong with the machine itself is answered as a "fault", and the program tried elsewhere.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from tilewright.errors import TilewrightError
from tilewright.measure.fleet import turns
from tilewright.measure.fleet.emulated import EmulatedRunner
from tilewright.measure.fleet.pace import Clock, Contention
from tilewright.measure.fleet.wire import (
    PROTOCOL,
    read_built,
    read_setup,
    write_built,
    write_measurement,
)
from tilewright.measure.local.builder import LocalBuilder
from tilewright.measure.local.messages import Setup
from tilewright.measure.local.runner import LocalRunner
from tilewright.measure.local.workers import ForkServer
from tilewright.measure.measurement import Measurement
from tilewright.measure.protocols import Built, Runner
from tilewright.measure.sequential import time_in_turns, time_program
from tilewright.schedule import Trace
from tilewright.target import Target, stands_for
from tilewright.target.machine import read_name
from tilewright.version import __version__

_KEPT = 4  # setups whose processes are kept: those of so many tuners
_RATE_S = 30.0

Form = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A machine as it joins: what it is called, what it runs, on which cores, and how many builders it has.

    Without a target it only builds. `emulator` is the program that runs code of another architecture, such as
    qemu-aarch64.
    """

    name: str
    target: str | None
    cores: tuple[int, ...]
    num_builders: int
    emulator: str = ""
    simulated: int = 0

    def write(self) -> str:
        fields = (self.name, self.target, list(self.cores), self.num_builders, self.emulator, self.simulated)
        return json.dumps(fields)

    @classmethod
    def read(cls, text: str) -> DeviceSpec:
        name, target, cores, num_builders, emulator, simulated = json.loads(text)
        return cls(name, target, tuple(cores), num_builders, emulator, simulated)

    def describe(self) -> Form:
        """What tuners and people are told of it."""
        return {
            "protocol": PROTOCOL,
            "version": __version__,
            "name": self.name,
            "host": socket.gethostname(),
            "boot": boot_id(),
            "target": self.target,
            "cores": list(self.cores),
            "num_builders": self.num_builders,
            "emulator": self.emulator,
            "simulated": self.simulated,
            "processor": self.emulator or read_name(Path("/")),
        }


_Measures: TypeAlias = "Callable[[Runner, Sequence[Built]], list[Measurement]]"


class _DisturbedError(TilewrightError):
    """The machine is slower than it was, and no program has a part in it."""


class Station:
    """Runs in an actor: `build` in one thread, `run` and `compare` in another, `status` in a third."""

    def __init__(self, spec: str) -> None:
        self._spec = DeviceSpec.read(spec)
        os.sched_setaffinity(0, self._spec.cores)
        self._target = None if self._spec.target is None else Target.parse(self._spec.target)
        here = Target.native() if self._target is None or self._spec.emulator else self._target
        self._build_server = ForkServer(here)
        self._run_server = ForkServer(here)
        self._builders: _Shelf[LocalBuilder] = _Shelf(self._new_builder)
        self._runners: _Shelf[Runner] = _Shelf(self._new_runner)
        self._bests: _Shelf[_Best] = _Shelf(_Best)
        self._neighbours = turns.neighbours(self._spec.cores)
        self._clock = Clock()
        self._tally = Tally()

    def describe(self) -> str:
        return json.dumps(self._spec.describe())

    def status(self) -> str:
        return json.dumps(self._tally.form())

    def build(self, setup_text: str, traces: Sequence[str]) -> list[Form]:
        """Build the programs, while nothing is timed on these cores."""
        setup = read_setup(setup_text)
        outcomes: dict[int, Form] = {}
        try:
            with turns.shared(self._spec.cores):
                builder = self._builders.of(setup_text)
                steps = [Trace.from_json(text) for text in traces]
                for index, outcome in builder.build(setup.task, steps):
                    outcomes[index] = _outcome(outcome)
        except TilewrightError as error:
            self._builders.clear()
            self._build_server.close()
            self._build_server = ForkServer(Target.native())
            return [{"fault": str(error)} for _ in traces]
        return [outcomes[index] for index in range(len(traces))]

    def run(self, setup_text: str, built: Sequence[Form], best_latency_s: float | None, batch: str) -> list[Form]:
        """Time programs one after the other; one that seems to be the best once more, and only that counts."""
        best = self._bests.of(batch)
        best.hear(best_latency_s)
        answers: list[Form] = []
        for form in built:
            (answer,) = self._measure(setup_text, [form], best.measured)
            answers.append(answer)
            if "fault" in answer:
                return answers + [answer] * (len(built) - len(answers))
        return answers

    def compare(self, setup_text: str, built: Sequence[Form], num_turns: int) -> list[Form]:
        """Time programs in short turns, one after the other in each, while nothing else is timed beside this cache."""

        def measures(runner: Runner, kernels: Sequence[Built]) -> list[Measurement]:
            return time_in_turns(runner, kernels, num_turns)

        return self._measure(setup_text, built, measures, self._neighbours)

    def _measure(
        self, setup_text: str, built: Sequence[Form], measures: _Measures, cores: Sequence[int] | None = None
    ) -> list[Form]:
        """On the cores alone, by default its own. Two calls may be here at once: one is timed, and one gets ready."""
        setup = read_setup(setup_text)
        self._tally.begin(setup.task.name)
        try:
            self._check(setup)
            kernels = [read_built(form, setup.task, setup.target) for form in built]
            with turns.alone(self._spec.cores if cores is None else cores):
                found = self._time(setup_text, kernels, measures)
        except TilewrightError as error:
            self._tally.end([], str(error))
            return [{"fault": str(error), "is_disturbed": isinstance(error, _DisturbedError)} for _ in built]
        self._tally.end(found, "")
        return [{"measurement": write_measurement(measurement)} for measurement in found]

    def _time(self, setup_text: str, kernels: Sequence[Built], measures: _Measures) -> list[Measurement]:
        """What came of the kernels, with the cores alone; an error if the machine is to blame for it."""
        if reason := self._clock.reason():
            raise _DisturbedError(reason)
        setup = read_setup(setup_text)
        try:
            runner = self._runners.of(setup_text)
            runner.prepare(setup.task, setup.context)
            contention = Contention(getattr(runner, "pid", None))
            found = measures(runner, kernels)
        except TilewrightError:
            self._renew_runners()
            raise
        if self._spec.emulator:
            runner.reset()  # no files are left when the machine leaves
        if reason := contention.reason():
            raise _DisturbedError(reason)
        return found

    def _check(self, setup: Setup) -> None:
        """The code is for this machine, on so many threads as it has cores."""
        if self._target is None or not stands_for(str(setup.target), self._target):
            raise TilewrightError(f"{self._spec.name} is for {self._target}, and the program for {setup.target}")
        if setup.threads > len(self._spec.cores):
            raise TilewrightError(
                f"{self._spec.name} measures on {len(self._spec.cores)} cores, and the program uses {setup.threads} "
                "threads; tune with fewer"
            )

    def _new_builder(self, setup_text: str) -> LocalBuilder:
        setup = read_setup(setup_text)
        options = replace(setup.options, num_builders=max(1, self._spec.num_builders))
        return LocalBuilder(self._build_server, setup.target, setup.threads, options)

    def _new_runner(self, setup_text: str) -> Runner:
        setup = read_setup(setup_text)
        if self._spec.emulator:
            return EmulatedRunner(self._spec.emulator, setup.target, setup.threads, setup.options)
        return LocalRunner(self._run_server, setup.target, setup.threads, setup.options)

    def _renew_runners(self) -> None:
        """After an error that is no program's nothing is kept."""
        self._runners.clear()
        self._run_server.close()
        self._run_server = ForkServer(Target.native())


class _Best:
    """The best latency of a batch, as far as it is known here: two calls of it are under way at once."""

    def __init__(self, _: str) -> None:
        self._latency_s: float | None = None

    def hear(self, latency_s: float | None) -> None:
        if latency_s is not None and (self._latency_s is None or latency_s < self._latency_s):
            self._latency_s = latency_s

    def measured(self, runner: Runner, kernels: Sequence[Built]) -> list[Measurement]:
        found = [time_program(runner, kernel, self._latency_s) for kernel in kernels]
        for measurement in found:
            self.hear(measurement.latency_s)
        return found

    def reset(self) -> None:
        """Nothing runs for it."""


class _Resettable(Protocol):
    def reset(self) -> None: ...


_Worker = TypeVar("_Worker", bound=_Resettable)


class _Shelf(Generic[_Worker]):
    """What belongs to the setups, or batches, that were used last, so that several tuners may take turns."""

    def __init__(self, make: Callable[[str], _Worker]) -> None:
        self._make = make
        self._kept: OrderedDict[str, _Worker] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, name: str) -> _Worker:
        with self._lock:
            return self._found(name)

    def _found(self, name: str) -> _Worker:
        worker = self._kept.pop(name, None) or self._make(name)
        self._kept[name] = worker
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)[1].reset()
        return worker

    def clear(self) -> None:
        for worker in self._kept.values():
            worker.reset()
        self._kept.clear()


class Tally:
    """What the machine has done, for people."""

    def __init__(self) -> None:
        self.num_trials = self._num_failed = self._num_faults = 0
        self._last_fault = self._task = ""
        self._ends_s: deque[float] = deque(maxlen=10_000)

    def begin(self, task: str) -> None:
        self._task = task

    def end(self, found: Sequence[Measurement], fault: str) -> None:
        self._task = ""
        self.num_trials += len(found)
        self._num_failed += sum(measurement.latency_s is None for measurement in found)
        self._ends_s.extend([time.monotonic()] * len(found))
        if fault:
            self._num_faults += 1
            self._last_fault = fault.splitlines()[0]

    def form(self) -> Form:
        now_s = time.monotonic()
        recent = sum(now_s - end_s <= _RATE_S for end_s in list(self._ends_s))
        return {
            "task": self._task,
            "num_trials": self.num_trials,
            "num_failed": self._num_failed,
            "num_faults": self._num_faults,
            "last_fault": self._last_fault,
            "per_second": recent / _RATE_S,
        }


def _outcome(outcome: Built | Measurement) -> Form:
    if isinstance(outcome, Built):
        return {"built": write_built(outcome)}
    return {"measurement": write_measurement(outcome)}


def boot_id() -> str:
    """Tells whether two processes are on the same machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()
