"""What a cost model learns from: measured programs, by task, sketch, device and context.

A dataset holds programs, and not what a model reads of them: any encoder computes that from the programs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples
from tilewright.errors import UsageError
from tilewright.features import Encoder, JoinedEncoder, PrimitiveReader, PrimitiveSequence
from tilewright.schedule import Extent
from tilewright.space import Candidate, Population

WARM = "warm"
LOG = "log"
"""The context of programs of a log: how they were timed, the other tool knows."""


class Group(ABC):
    """Programs of one task that differ in numbers alone, and how long each ran; infinite for a failure."""

    __slots__ = ()
    latencies_s: NDArray[np.float64]
    context: str
    device: str

    def __len__(self) -> int:
        return len(self.latencies_s)

    @property
    @abstractmethod
    def task_hash(self) -> str:
        """Which task the programs are of; a task has the same hash on every device."""

    @property
    @abstractmethod
    def subject(self) -> Hashable:
        """Latencies of the same subject can be compared: of one task, on one device, in one context."""

    @abstractmethod
    def encoded(self, encoder: Encoder) -> NDArray[np.float32]:
        """The programs as the encoder has them, which are computed once."""

    @abstractmethod
    def select(self, programs: NDArray[np.int64]) -> Group:
        """Some of the programs, by their numbers."""

    @abstractmethod
    def forget(self) -> None:
        """Let go of what encoders gave: they compute it again if it is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured(Group):
    """Programs of one sketch, and how long each ran on the device of the sketch; infinite for a failure."""

    population: Population
    latencies_s: NDArray[np.float64]
    context: str = WARM
    device: str = ""
    """What the dataset calls the device; empty where its target and threads say all."""
    _encoded: dict[Encoder, NDArray[np.float32]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.latencies_s.shape != (len(self.population),):
            raise UsageError(
                f"each of the {len(self.population)} programs has a latency, got an array of shape "
                f"{self.latencies_s.shape}; give one number for each"
            )
        wrong = self.latencies_s[~(self.latencies_s > 0)]
        if len(wrong):
            raise UsageError(f"a latency is above 0, or infinite for a failure, got {wrong[0]} among the measured ones")

    @property
    def task_hash(self) -> str:
        return self.population.sketch.task.hash

    @property
    def subject(self) -> Hashable:
        sketch = self.population.sketch
        return sketch.task.hash, str(sketch.options.target), sketch.options.threads, self.device, self.context

    def encoded(self, encoder: Encoder) -> NDArray[np.float32]:
        if encoder not in self._encoded:
            self._encoded[encoder] = encoder.encode(self.population)
        return self._encoded[encoder]

    def forget(self) -> None:
        self._encoded.clear()

    def select(self, programs: NDArray[np.int64]) -> Measured:
        return Measured(self.population[programs], self.latencies_s[programs], self.context, self.device)


@dataclass(frozen=True, slots=True, eq=False)
class Logged(Group):
    """Programs of another tool's log, of which only the primitives are known."""

    primitives: PrimitiveSequence
    latencies_s: NDArray[np.float64]
    task: str
    """The hash of what the tool calls the task."""
    device: str
    context: str = LOG
    _encoded: dict[Encoder, NDArray[np.float32]] = field(default_factory=dict, init=False, repr=False)

    @property
    def task_hash(self) -> str:
        return self.task

    @property
    def subject(self) -> Hashable:
        return self.task, self.device, self.context

    def encoded(self, encoder: Encoder) -> NDArray[np.float32]:
        if encoder not in self._encoded:
            self._encoded[encoder] = self._as_read_by(encoder)
        return self._encoded[encoder]

    def _as_read_by(self, encoder: Encoder) -> NDArray[np.float32]:
        if isinstance(encoder, JoinedEncoder):
            return encoder.join([self._as_read_by(part) for part in encoder.parts])
        if not isinstance(encoder, PrimitiveReader):
            raise UsageError(
                f"programs of another tool's log have primitives alone, and the encoder {encoder.name} reads more of "
                "them; choose a model that reads primitives, or programs that tilewright measured, and not those of "
                f"{self.device or 'a log'}"
            )
        return encoder.encode_primitives(self.primitives, len(self))

    def forget(self) -> None:
        self._encoded.clear()

    def select(self, programs: NDArray[np.int64]) -> Logged:
        primitives = tuple(
            replace(primitive, numbers=tuple(_selected(number, programs) for number in primitive.numbers))
            for primitive in self.primitives
        )
        return Logged(primitives, self.latencies_s[programs], self.task, self.device, self.context)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Groups of programs, in the order in which they were measured."""

    groups: tuple[Group, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The groups whose programs are candidates of a sketch, and not of another tool's log."""
        return tuple(group for group in self.groups if isinstance(group, Measured))

    @property
    def num_valid(self) -> int:
        """How many programs ran."""
        return sum(int(np.isfinite(group.latencies_s).sum()) for group in self.groups)

    def with_trials(
        self,
        candidates: Sequence[Candidate],
        latencies_s: Sequence[float | None],
        context: str = WARM,
        device: str = "",
    ) -> Dataset:
        """The dataset with more programs; None is the latency of a failure."""
        return Dataset((*self.groups, *_grouped(candidates, latencies_s, context, device)))

    def encoded(self, encoder: Encoder) -> Examples:
        """What a model with this encoder learns from. Labels are relative to the best of each subject."""
        values = [group.encoded(encoder) for group in self.groups]
        return Examples.of_groups(
            values,
            [group.latencies_s for group in self.groups],
            [group.subject for group in self.groups],
            [group.device for group in self.groups],
        )


def _selected(number: Extent, programs: NDArray[np.int64]) -> Extent:
    """What some programs have for a number; one that is the same in all stays as it is."""
    return number[programs] if isinstance(number, np.ndarray) else number


def _grouped(
    candidates: Sequence[Candidate], latencies_s: Sequence[float | None], context: str, device: str
) -> Iterable[Measured]:
    for sketch in dict.fromkeys(candidate.sketch for candidate in candidates):
        mine = [n for n, candidate in enumerate(candidates) if candidate.sketch is sketch]
        times = [latencies_s[n] for n in mine]
        yield Measured(
            Population.of([candidates[n] for n in mine]),
            np.array([np.inf if latency_s is None else latency_s for latency_s in times]),
            context,
            device,
        )
