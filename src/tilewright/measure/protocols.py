"""What measures programs: `Measurer`, all that tuning knows of it; and `Builder` and `Runner`, of which one is made.

`sequential.SequentialMeasurer` is a measurer of any builder and runner; `local.LocalMeasurer` has those of this
machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from tilewright.codegen import KernelBinary
from tilewright.measure.context import WARM, Context
from tilewright.measure.measurement import Measurement
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task

Ticket: TypeAlias = int
"""Stands for one program that was submitted, and for no other of the same measurer."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Programs of one task, which are measured in the same way.

    `best_latency_s` is the best that is known of the task in this context: programs much slower are timed briefly, and
    outputs are checked where a program could beat it or comes near. Without it all are timed fully and checked.

    With `turns` the programs are compared: timed in so many short turns, one after the other in each, so that what
    disturbs a machine for a moment hits all of them. All outputs are checked.
    """

    task: Task
    traces: tuple[Trace, ...]
    context: Context = WARM
    best_latency_s: float | None = None
    turns: int | None = None


class Result(NamedTuple):
    """What came of a program that was submitted. Of a comparison `runs_s` has one number for each turn."""

    ticket: Ticket
    measurement: Measurement


class Measurer(Protocol):
    """Measures programs, on one machine or on many: results come as they arrive, in any order.

    Whatever a program does costs that program alone: it has a status that says so. Errors are raised for anything else,
    such as a machine that is gone, and for an interrupt; what was submitted is cancelled then.
    """

    @property
    def target(self) -> Target:
        """What programs are compiled for."""

    @property
    def threads(self) -> int:
        """How many threads they use."""

    @property
    def has_room(self) -> bool:
        """Whether it would soon have nothing to do without another batch. One that has no room takes them too."""

    def submit(self, batch: Batch) -> list[Ticket]:
        """Have the programs measured; return at once, with a ticket for each."""

    def next_result(self) -> Result:
        """Wait for a result of what was submitted. An error if all of them were given already."""

    def cancel(self) -> None:
        """Forget what was submitted: no result of it comes any more."""

    def close(self) -> None:
        """Cancel, and end all that it has started."""


@dataclass(frozen=True, slots=True)
class Built:
    """A program that compiles. `build_s` is the time the compiler took, `error_growth` how much more it may be off."""

    binary: KernelBinary
    build_s: float
    error_growth: float = 1.0


class Builder(Protocol):
    """Compiles programs."""

    def build(self, task: Task, traces: Sequence[Trace]) -> Iterator[tuple[int, Built | Measurement]]:
        """Each trace's index and its kernel, or the status of one that does not compile; in the order of the ends."""

    def reset(self) -> None:
        """Leave what is under way; the next call starts anew."""


class Runner(Protocol):
    """Times kernels, one at a time, and looks at what they compute."""

    def prepare(self, task: Task, context: Context) -> None:
        """What is run from now on. Returns at once: arrays can be made while kernels are built."""

    def run(self, built: Built, best_latency_s: float | None) -> Measurement:
        """Time a kernel for as long as it is worth beside the best."""

    def take_turn(self, built: Built) -> Measurement:
        """Time a kernel for a short while, for a comparison."""

    def reset(self) -> None:
        """Leave what is under way; the next call starts anew."""


def measure_all(measurer: Measurer, batch: Batch) -> list[Measurement]:
    """A measurement for each program of the batch, after all are there; nothing else may be under way."""
    index_of = {ticket: index for index, ticket in enumerate(measurer.submit(batch))}
    found: dict[int, Measurement] = {}
    while len(found) < len(index_of):
        ticket, measurement = measurer.next_result()
        found[index_of[ticket]] = measurement
    return [found[index] for index in range(len(index_of))]
