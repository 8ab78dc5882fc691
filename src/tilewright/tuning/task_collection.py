"""What a collection measures of one task: which programs, in which turns, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.cost_model import AnalyticalModel
from tilewright.errors import RecordFormatError
from tilewright.measure import BUILD_TIMEOUT, RUN_TIMEOUT, Batch, Context, Measurement
from tilewright.records.dataset import DatasetFolder, Device, Part, TaskPrograms
from tilewright.records.dataset.folder import set_aside
from tilewright.schedule import Trace
from tilewright.space import Candidate, Population, Sketch, SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.mixture import Choice, mixture
from tilewright.tuning.recorded import candidate_of

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

_TIMEOUTS = (BUILD_TIMEOUT, RUN_TIMEOUT)


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Programs that are measured together; `take` is told of each result. It `adds` measurements, or mends some."""

    batch: Batch
    take: Callable[[int, Measurement], None]
    adds: bool = True


class TaskCollection:
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
        self._keeps_level = False
        self._num_again: int | None = None  # second measurements that there will be, once it is known
        self._sketches: list[Sketch] = []

    @property
    def _num_twice(self) -> int:
        return int(np.isfinite(self.programs.again_s).sum())

    def num_expected(self, again: float) -> int:
        """Measurements that there will be, as far as is known."""
        num_again = round(again * self._num_wanted) if self._num_again is None else self._num_again
        return max(self._num_wanted, len(self.programs)) + num_again

    def slices(self) -> Iterator[Slice]:
        """The programs that are missing, and once more those that took too long: the machine may have been busy."""
        choices = self._choices(self._num_wanted - len(self.programs))
        self._num_wanted = len(self.programs) + len(choices)  # the space may have no more
        for start in range(0, len(choices), SLICE):
            yield self._slice(choices[start : start + SLICE])
        late, self._late = self._late, []
        for start in range(0, len(late), SLICE):
            yield self._slice(late[start : start + SLICE], is_last_chance=True)

    def _slice(self, choices: Sequence[Choice], is_last_chance: bool = False) -> Slice:
        def take(index: int, measurement: Measurement) -> None:
            if measurement.status in _TIMEOUTS and not is_last_chance:
                self._late.append(choices[index])
                return
            self._new.append((*choices[index], _undisturbed(measurement)))
            self.num_done += 1

        return Slice(self._batch([candidate for candidate, _ in choices], TURNS), take)

    def comparison(self, keeps_level: bool = False) -> Iterator[Slice]:
        """The fastest programs in turns, unless that was done since the last program came.

        It `keeps_level` where they are compared on another day than the rest of the task was measured.
        """
        if self.programs.num_compared == len(self.programs):
            return
        numbers = self.programs.fastest(NUM_COMPARED, COMPARED_WITHIN)
        if len(numbers) < 2:
            return

        told: dict[int, Measurement] = {}

        def take(index: int, measurement: Measurement) -> None:
            told[numbers[index]] = measurement
            if len(told) == len(numbers):
                self._compared, self._keeps_level = told, keeps_level

        candidates = [self.programs.candidate(number) for number in numbers]
        yield Slice(self._batch(candidates, COMPARED_TURNS), take, adds=False)

    def slices_suspicious(self) -> Iterator[Slice]:
        """Programs that took much longer than expected."""
        suspicious = suspects(self.programs)
        for start in range(0, len(suspicious), SLICE):
            yield self._slice_again(suspicious[start : start + SLICE], self._new_faster, adds=False)

    def slices_again(self, share: float) -> Iterator[Slice]:
        """Some of the programs that ran; the same ones, and more, when there are more programs."""
        drawn = np.random.default_rng([self._seed, _number(self.task)]).random(len(self.programs)) < share
        missing = np.flatnonzero(drawn & self.programs.is_valid & np.isnan(self.programs.again_s)).tolist()
        self._num_again = self._num_twice + len(missing)
        for start in range(0, len(missing), SLICE):
            yield self._slice_again(missing[start : start + SLICE], self._new_again, adds=True)

    def _slice_again(self, numbers: Sequence[int], told: list[tuple[int, float | None]], adds: bool) -> Slice:
        """Programs that are written already; the latencies of this time are told by their numbers."""

        def take(index: int, measurement: Measurement) -> None:
            told.append((numbers[index], _undisturbed(measurement).latency_s))
            self.num_done += adds

        return Slice(self._batch([self.programs.candidate(number) for number in numbers], TURNS), take, adds)

    def _batch(self, candidates: Sequence[Candidate], turns: int | None = None) -> Batch:
        traces = tuple(candidate.trace for candidate in candidates)
        return Batch(self.task, traces, self._context, self.programs.best_latency_s, turns)

    def save(self) -> None:
        """Write what was measured since. An interrupt meanwhile leaves it to be written the next time."""
        if not (self._new or self._new_again or self._new_faster or self._compared):
            return
        candidates, origins, measurements = zip(*self._new, strict=True) if self._new else ((), (), ())
        programs = self.programs.with_measured(candidates, origins, measurements).with_again(
            [number for number, _ in self._new_again], [latency_s for _, latency_s in self._new_again]
        )
        if self._new_faster:
            programs = programs.with_faster(*map(list, zip(*self._new_faster, strict=True)))
        if self._compared:
            programs = programs.with_compared(list(self._compared), list(self._compared.values()), self._keeps_level)
        programs.write(self._part.path, self.task, str(self._context))
        self.programs, self._new, self._compared = programs, [], {}
        self._new_again.clear()
        self._new_faster.clear()

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
