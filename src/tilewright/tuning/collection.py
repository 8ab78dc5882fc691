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
from dataclasses import dataclass

from tilewright.arguments import seconds, whole_number
from tilewright.errors import UsageError
from tilewright.measure import Context, Measurement, MeasureOptions, Measurer
from tilewright.records.dataset import DatasetFolder, Device, NetworkTasks
from tilewright.target import Target, read_machine
from tilewright.te import Task
from tilewright.tuning.rounds import Round, measure_rounds, measurer_or_local
from tilewright.tuning.task_collection import Slice, TaskCollection
from tilewright.tuning.task_scheduler import WeightedTask, deployed_context

MEASURING = MeasureOptions(contender_factor=math.inf, hopeless_factor=5.0)
"""Every output is checked, not only those of programs that could be the best, and fewer are timed but once."""
MOST_PROGRAMS = 100_000
"""Of a task. What they are drawn from takes memory in proportion, also where the space has fewer."""


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
    if whole_number("programs", programs, least=1) > MOST_PROGRAMS:
        raise UsageError(f"programs is {programs}; it must be at most {MOST_PROGRAMS}")
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
    wanted = Device(f"{target.cpu}-{threads}t" if name is None else name, str(target), threads, called)
    found = folder.add_device(wanted, is_named=name is not None)
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
            TaskCollection(
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

    def _round(
        self, job: TaskCollection, found: Slice, again: float, on_progress: Callable[[CollectProgress], None]
    ) -> Round:
        def take(index: int, measurement: Measurement) -> None:
            found.take(index, measurement)
            if found.adds:
                self._statuses[measurement.status] += 1
            on_progress(self._progress(job, again))

        return Round(found.batch, take, lambda _: job.save())

    def _rounds(self, again: float, recheck: bool) -> Iterator[tuple[TaskCollection, Slice]]:
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
            for found in job.comparison(keeps_level=True):
                yield job, found
        for job in self._jobs:
            for found in job.slices_again(again):
                yield job, found

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._start_s

    def _progress(self, job: TaskCollection, again: float) -> CollectProgress:
        return CollectProgress(
            job.task,
            self._elapsed_s,
            sum(job.num_done for job in self._jobs),
            sum(job.num_expected(again) for job in self._jobs),
            self._statuses.total(),
            dict(self._statuses),
        )


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
