"""Collecting a dataset: programs of many tasks, measured as deployed and kept in a folder.

Task after task, in the order of their hashes. The programs of a task are so measured within seconds of each other, on a
machine in one state, and labels compare programs of one task. The order is as good as random, and the same on every
device: a collection that ends early has some tasks of every network, and those that others have. Programs are built
before any of them is timed, since what builds beside a kernel disturbs it. Each is timed in two turns that are seconds
apart, and the faster one counts: what disturbs a machine for a moment makes programs slower, up to twice. The
fastest ones of a task are then timed in more turns: the least of many noisy latencies would be too small, and labels
are relative to it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.arguments import seconds, whole_number
from tilewright.cost_model import AnalyticalModel
from tilewright.errors import RecordFormatError, UsageError
from tilewright.measure import BUILD_TIMEOUT, RUN_TIMEOUT, Batch, Context, Measurement, MeasureOptions, Measurer
from tilewright.records.dataset import DatasetFolder, Device, NetworkTasks, Part, TaskPrograms
from tilewright.records.dataset.folder import set_aside
from tilewright.schedule import Trace
from tilewright.space import Candidate, Population, Sketch, SpaceOptions, derive
from tilewright.target import Target, read_machine
from tilewright.te import Task
from tilewright.tuning.mixture import Choice, mixture
from tilewright.tuning.recorded import candidate_of
from tilewright.tuning.rounds import Round, measure_rounds, measurer_or_local
from tilewright.tuning.task_scheduler import WeightedTask, deployed_context

SLICE = 32
"""So many programs are built and timed together, and then written: what a killed run loses at most."""
TURNS = 2
"""In so many turns each of them is timed."""
NUM_COMPARED, COMPARED_WITHIN, COMPARED_TURNS = 8, 1.25, 3
"""So many of the fastest programs of a task, none slower than so many times the best, are timed again in turns."""
SUSPICIOUS, LIKED = 1.15, 2.0
"""A program is suspicious if it takes so many times what the analytical model expects of it beside the others, and the
model expects at most so many times what it expects of the best: models would like it, and be wrong."""
SHARED = "shared"
"""The origin of programs that were measured on another device before."""
MEASURING = MeasureOptions(contender_factor=math.inf, hopeless_factor=5.0)
"""Every output is checked, not only those of programs that could be the best, and fewer are timed but once."""

_TIMEOUTS = (BUILD_TIMEOUT, RUN_TIMEOUT)


@dataclass(frozen=True, slots=True, eq=False)
class TaskSource:
    """A network whose tasks are collected, or a single workload, with one task."""

    name: str
    tasks: tuple[WeightedTask, ...]
    sizes: str = ""
    is_workload: bool = False

    @property
    def context(self) -> Context:
        """Tasks of a network are measured as it runs them, those of a workload warm."""
        return Context() if self.is_workload else deployed_context(self.tasks)


@dataclass(frozen=True, slots=True)
class CollectProgress:
    """Where a collection stands, after each measurement."""

    task: Task
    elapsed_s: float
    num_done: int
    """Measurements that are there, those of earlier runs included."""
    num_total: int
    num_measured: int
    """Measurements of this run."""
    statuses: dict[str, int]
    """How many of them had which status."""

    @property
    def per_second(self) -> float:
        return self.num_measured / max(self.elapsed_s, 1e-9)

    @property
    def time_left_s(self) -> float | None:
        return (self.num_total - self.num_done) / self.per_second if self.num_measured else None


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run has added to a folder."""

    device: Device
    num_tasks: int
    num_programs: int
    """Of these tasks on this device, those of earlier runs included."""
    num_measured: int
    statuses: dict[str, int]
    elapsed_s: float
    is_complete: bool
    """Whether all that was asked for is there; not so where the time was up."""


def collect(
    sources: Sequence[TaskSource],
    folder: DatasetFolder,
    *,
    programs: int,
    target: Target,
    threads: int,
    device: str | None = None,
    processor: str | None = None,
    context: Context | None = None,
    seed: int = 0,
    again: float = 0.0,
    recheck: bool = False,
    budget_s: float | None = None,
    measurer: Measurer | None = None,
    on_progress: Callable[[CollectProgress], None] = lambda _: None,
) -> Collected:
    """Measure up to `programs` programs of each task of the sources, as far as the folder does not have them.

    Programs of a task that the folder has of other devices come first, where they are legal on this one. A share of the
    programs, `again`, is measured a second time after all others. With `recheck` so are programs, of earlier runs, too,
    that took much longer than expected, and the lower latency counts: a machine that is shared is slow for seconds.
    What was measured is written even if this is interrupted. `processor` is the name of the device's, by default of the
    one that is here.
    """
    whole_number("programs", programs, least=1)
    if not 0 <= again <= 1:
        raise UsageError(f"again is {again}; it must be a share of the programs, from 0 to 1")
    limit_s = math.inf if budget_s is None else seconds("budget_s", budget_s)
    options = None if measurer else MEASURING
    with folder.writing(), measurer_or_local(measurer, options, target, threads, seed) as chosen:
        collector = _Collector(
            sources, folder, _device(folder, device, target, threads, processor), context, programs, seed
        )
        return collector.run(chosen, again, recheck, limit_s, on_progress)


def _device(folder: DatasetFolder, name: str | None, target: Target, threads: int, processor: str | None) -> Device:
    """What is measured on, as the folder knows it."""
    called = read_machine().processor if processor is None else processor
    found = folder.add_device(Device(name or f"{target.cpu}-{threads}t", str(target), threads, called))
    if name is not None and found.name != name:
        raise UsageError(
            f"the device is to be called {name}, and {folder.path} knows it as {found.name}: {threads} threads on "
            f"{target}; use that name, or rename its folder"
        )
    return found


class _Collector:
    """The tasks of the sources, each once, and what was measured of them."""

    def __init__(
        self,
        sources: Sequence[TaskSource],
        folder: DatasetFolder,
        device: Device,
        context: Context | None,
        num_programs: int,
        seed: int,
    ) -> None:
        self._folder, self._device = folder, device
        self._num_programs = num_programs
        self._start_s = time.monotonic()
        self._statuses: Counter[str] = Counter()
        contexts = _contexts(sources, folder, device, context)
        tasks = {weighted.task.hash: weighted.task for source in sources for weighted in source.tasks}
        for source in sources:
            folder.add_network(_as_network(source, context))
        others = [
            (other, part) for other in _measured_devices(folder) if other != device for part in folder.parts(other)
        ]
        self._jobs = [
            _Job(
                folder.add_task(tasks[digest]),
                contexts[digest],
                folder,
                device,
                [(other, part) for other, part in others if part.task == digest],
                num_programs,
                seed,
            )
            for digest in sorted(tasks)
        ]

    def run(
        self,
        measurer: Measurer,
        again: float,
        recheck: bool,
        limit_s: float,
        on_progress: Callable[[CollectProgress], None],
    ) -> Collected:
        waiting = self._rounds(again, recheck)
        is_complete = False

        def next_round() -> Round | None:
            nonlocal is_complete
            if self._elapsed_s >= limit_s:
                return None
            found = next(waiting, None)
            is_complete = found is None
            return None if found is None else self._round(*found, again, on_progress)

        try:
            measure_rounds(measurer, next_round)
        finally:
            for job in self._jobs:
                job.save()
        return Collected(
            self._device,
            len(self._jobs),
            sum(len(job.programs) for job in self._jobs),
            self._statuses.total(),
            dict(self._statuses),
            self._elapsed_s,
            is_complete,
        )

    def _round(self, job: _Job, found: _Slice, again: float, on_progress: Callable[[CollectProgress], None]) -> Round:
        def take(index: int, measurement: Measurement) -> None:
            found.take(index, measurement)
            if found.adds:
                self._statuses[measurement.status] += 1
            on_progress(self._progress(job, again))

        return Round(found.batch, take, lambda _: job.save())

    def _rounds(self, again: float, recheck: bool) -> Iterator[tuple[_Job, _Slice]]:
        """Of each task what is missing; after that, what is suspicious, and second measurements."""
        for job in self._jobs:
            for found in job.slices():
                yield job, found
            for found in job.comparison():
                yield job, found
            job.forget()
        for job in self._jobs if recheck else ():
            for found in job.slices_suspicious():
                yield job, found
            for found in job.comparison():
                yield job, found
        for job in self._jobs:
            for found in job.slices_again(again):
                yield job, found

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._start_s

    def _progress(self, job: _Job, again: float) -> CollectProgress:
        return CollectProgress(
            job.task,
            self._elapsed_s,
            sum(job.num_done for job in self._jobs),
            sum(job.num_expected(again) for job in self._jobs),
            self._statuses.total(),
            dict(self._statuses),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Slice:
    """Programs that are measured together; `take` is told of each result. It `adds` measurements, or mends some."""

    batch: Batch
    take: Callable[[int, Measurement], None]
    adds: bool = True


class _Job:
    """One task in one context: the programs that are written, and those that were measured since."""

    def __init__(
        self,
        task: Task,
        context: Context,
        folder: DatasetFolder,
        device: Device,
        others: Sequence[tuple[Device, Part]],
        num_programs: int,
        seed: int,
    ) -> None:
        self.task = task
        self._context = context
        self._folder, self._device = folder, device
        self._others = others  # what other devices have of the task
        self._num_wanted = num_programs
        self._seed = seed
        self._part = folder.part(device, task, str(context))
        self.programs = folder.programs(device, self._part) if self._part.path.exists() else TaskPrograms()
        self.num_done = len(self.programs) + self._num_twice  # measurements that are there
        self._late: list[Choice] = []
        self._new: list[tuple[Candidate, str, Measurement]] = []
        self._new_again: list[tuple[int, float | None]] = []
        self._new_faster: list[tuple[int, float | None]] = []
        self._compared: dict[int, Measurement] = {}
        self._num_again: int | None = None  # second measurements that there will be, once it is known
        self._sketches: list[Sketch] = []

    @property
    def _num_twice(self) -> int:
        return int(np.isfinite(self.programs.again_s).sum())

    def num_expected(self, again: float) -> int:
        """Measurements that there will be, as far as is known."""
        num_again = round(again * self._num_wanted) if self._num_again is None else self._num_again
        return max(self._num_wanted, len(self.programs)) + num_again

    def slices(self) -> Iterator[_Slice]:
        """The programs that are missing, and once more those that took too long: the machine may have been busy."""
        choices = self._choices(self._num_wanted - len(self.programs))
        self._num_wanted = len(self.programs) + len(choices)  # the space may have no more
        for start in range(0, len(choices), SLICE):
            yield self._slice(choices[start : start + SLICE])
        late, self._late = self._late, []
        for start in range(0, len(late), SLICE):
            yield self._slice(late[start : start + SLICE], is_last_chance=True)

    def _slice(self, choices: Sequence[Choice], is_last_chance: bool = False) -> _Slice:
        def take(index: int, measurement: Measurement) -> None:
            if measurement.status in _TIMEOUTS and not is_last_chance:
                self._late.append(choices[index])
                return
            self._new.append((*choices[index], _undisturbed(measurement)))
            self.num_done += 1

        return _Slice(self._batch([candidate for candidate, _ in choices], TURNS), take)

    def comparison(self) -> Iterator[_Slice]:
        """The fastest programs in turns, unless that was done since the last program came."""
        if self.programs.num_compared == len(self.programs):
            return
        numbers = self.programs.fastest(NUM_COMPARED, COMPARED_WITHIN)
        if len(numbers) < 2:
            return

        told: dict[int, Measurement] = {}

        def take(index: int, measurement: Measurement) -> None:
            told[numbers[index]] = measurement
            if len(told) == len(numbers):
                self._compared = told

        candidates = [self.programs.candidate(number) for number in numbers]
        yield _Slice(self._batch(candidates, COMPARED_TURNS), take, adds=False)

    def slices_suspicious(self) -> Iterator[_Slice]:
        """Programs that took much longer than expected."""
        suspicious = suspects(self.programs)
        for start in range(0, len(suspicious), SLICE):
            yield self._slice_suspicious(suspicious[start : start + SLICE])

    def _slice_suspicious(self, numbers: Sequence[int]) -> _Slice:
        def take(index: int, measurement: Measurement) -> None:
            self._new_faster.append((numbers[index], _undisturbed(measurement).latency_s))

        return _Slice(self._batch([self.programs.candidate(number) for number in numbers], TURNS), take, adds=False)

    def slices_again(self, share: float) -> Iterator[_Slice]:
        """Some of the programs that ran; the same ones, and more, when there are more programs."""
        drawn = np.random.default_rng([self._seed, _number(self.task)]).random(len(self.programs)) < share
        missing = np.flatnonzero(drawn & self.programs.is_valid & np.isnan(self.programs.again_s)).tolist()
        self._num_again = self._num_twice + len(missing)
        for start in range(0, len(missing), SLICE):
            yield self._slice_again(missing[start : start + SLICE])

    def _slice_again(self, numbers: Sequence[int]) -> _Slice:
        def take(index: int, measurement: Measurement) -> None:
            self._new_again.append((numbers[index], _undisturbed(measurement).latency_s))
            self.num_done += 1

        return _Slice(self._batch([self.programs.candidate(number) for number in numbers], TURNS), take)

    def _batch(self, candidates: Sequence[Candidate], turns: int | None = None) -> Batch:
        traces = tuple(candidate.trace for candidate in candidates)
        return Batch(self.task, traces, self._context, self.programs.best_latency_s, turns)

    def save(self) -> None:
        """Write what was measured since."""
        if not (self._new or self._new_again or self._new_faster or self._compared):
            return
        candidates, origins, measurements = zip(*self._new, strict=True) if self._new else ((), (), ())
        self.programs = self.programs.with_measured(candidates, origins, measurements).with_again(
            [number for number, _ in self._new_again], [latency_s for _, latency_s in self._new_again]
        )
        if self._new_faster:
            self.programs = self.programs.with_faster(*map(list, zip(*self._new_faster, strict=True)))
        if self._compared:
            self.programs = self.programs.with_compared(list(self._compared), list(self._compared.values()))
        self._new, self._new_again, self._new_faster, self._compared = [], [], [], {}
        self.programs.write(self._part.path, self.task, str(self._context))

    def forget(self) -> None:
        """Let go of the space, which no more programs are drawn from."""
        self._sketches = []

    def _choices(self, num: int) -> list[Choice]:
        """Programs to measure: those of other devices, and then fresh ones."""
        if num < 1:
            return []
        options = SpaceOptions(Target.parse(self._device.target), self._device.threads)
        self._sketches = self.programs.own_sketches(derive(self.task, options))
        seen = set(self.programs.candidates())
        shared = [candidate for candidate in self._shared() if candidate not in seen][:num]
        seed = (self._seed, _number(self.task), len(self.programs))
        fresh = mixture(self._sketches, num - len(shared), seed, seen.union(shared)) if len(shared) < num else []
        own = [(self._own(candidate), origin) for candidate, origin in fresh]
        return [*((candidate, SHARED) for candidate in shared), *(choice for choice in own if choice[0] not in seen)]

    def _own(self, candidate: Candidate) -> Candidate:
        """The candidate of a sketch that is written already; the plain program is a sketch of its own."""
        if candidate.sketch in self._sketches:
            return candidate
        return Candidate(self.programs.own_sketches([candidate.sketch])[0], candidate.row)

    def _shared(self) -> list[Candidate]:
        """The programs of other devices that are legal candidates of this one's space, each once."""
        target = Target.parse(self._device.target)
        found = [candidate_of(trace, self._sketches) for trace in self._other_traces()]
        known = list(dict.fromkeys(candidate for candidate in found if candidate is not None))
        legal: set[Candidate] = set()
        for sketch in self._sketches:
            mine = [candidate for candidate in known if candidate.sketch is sketch]
            if mine:
                population = Population.of(mine)
                legal.update(population[population.legal(target)])
        return [candidate for candidate in known if candidate in legal]

    def _other_traces(self) -> Iterator[Trace]:
        for device, part in self._others:
            try:
                programs = self._folder.programs(device, part)
            except RecordFormatError as error:
                set_aside(error)
                continue
            for candidate in programs.candidates():
                yield candidate.trace


def suspects(programs: TaskPrograms) -> list[int]:
    """Programs that took much longer than the analytical model expects, of those that it expects to be fast."""
    model, expected = AnalyticalModel(), np.full(len(programs), np.nan)
    for population, numbers in programs.populations():
        expected[numbers] = np.exp(-model.predict(population))
    ratios = np.where(programs.is_valid, programs.latencies_s, np.nan) / expected
    if not np.isfinite(ratios).any():
        return []
    is_slow = ratios > SUSPICIOUS * np.nanmedian(ratios)
    found: list[int] = np.flatnonzero(is_slow & (expected <= LIKED * np.nanmin(expected))).tolist()
    return found


def _undisturbed(measurement: Measurement) -> Measurement:
    """The measurement with the latency of its fastest turn."""
    if measurement.latency_s is None:
        return measurement
    return replace(measurement, latency_s=min(measurement.runs_s))


def _number(task: Task) -> int:
    """A number that is always the same for a task."""
    return int(task.hash[:8], 16)


def _as_network(source: TaskSource, context: Context | None) -> NetworkTasks:
    weights: Counter[str] = Counter()
    for weighted in source.tasks:
        weights[weighted.task.hash] += weighted.weight
    return NetworkTasks(
        source.name,
        dict(weights),
        str(source.context if context is None else context),
        source.sizes,
        source.is_workload,
    )


def _contexts(
    sources: Sequence[TaskSource], folder: DatasetFolder, device: Device, context: Context | None
) -> dict[str, Context]:
    """In which context each task is measured, by its hash: in one, even if networks of many sizes have it.

    That which was asked for; or that in which this device, or else another, has measured it; or that of the first
    network that has it.
    """
    found: dict[str, Context] = {}
    if context is None:
        for known in sorted(_measured_devices(folder), key=lambda known: known != device):
            for part in folder.parts(known):
                found.setdefault(part.task, Context.parse(part.context))
    for source in sources:
        for weighted in source.tasks:
            wanted = source.context if context is None else context
            found.setdefault(weighted.task.hash, wanted.of_task(weighted.task))
    return found


def _measured_devices(folder: DatasetFolder) -> list[Device]:
    """Those whose programs were not imported."""
    return [device for device in folder.devices() if not device.tool]
