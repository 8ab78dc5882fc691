"""Scheduling primitives as a language: what each step of a trace does, to what, with which numbers.

Names of stages and loops are canonical: they follow from where a stage stands in the computation and an axis in its
stage, never from what a person called them. Programs that differ in names alone have the same primitives.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.features.encoders import Encoder
from tilewright.schedule import Extent, Loop, Schedule, Split, Stage, Step
from tilewright.schedule.steps import (
    AlgorithmStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    FuseStep,
    PackStep,
    ParallelStep,
    RFactorStep,
    SplitStep,
    UnrollStep,
    VectorizeStep,
)
from tilewright.space import Population
from tilewright.te import Task
from tilewright.te.index import ceil_div, minimum

_COPIES: dict[type[Step], str] = {
    CacheReadStep: "read",
    CacheWriteStep: "write",
    PackStep: "pack",
    RFactorStep: "rf",
}
_TELLS_EXTENT = (SplitStep, ParallelStep, VectorizeStep, UnrollStep)


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One scheduling primitive of many programs at once.

    `kind` is the name of a step, or what another tool's log calls its own. A number that is the same in all programs
    is an int; any other is an array with an entry for each program.
    """

    kind: str
    names: tuple[str, ...]
    numbers: tuple[Extent, ...]


PrimitiveSequence: TypeAlias = tuple[Primitive, ...]


class PrimitiveReader(Encoder):
    """An encoder that reads primitives alone, and so also those of another tool's log."""

    @abstractmethod
    def encode_primitives(self, sequence: PrimitiveSequence, num_programs: int) -> NDArray[np.float32]:
        """The array of programs that have these primitives."""

    def encode(self, population: Population) -> NDArray[np.float32]:
        return self.encode_primitives(primitives_of(population), len(population))


def primitives_of(population: Population) -> PrimitiveSequence:
    """The primitives of the population's sketch, with the numbers of each candidate.

    The numbers of a split are the extent of its loop and then its factors; those of fuse, parallel, vectorize and
    unroll the extent of the loop that they make or mark; that of pragma its limit, and of pack its place, if it has
    one. Extents are those of a stage that is computed as a whole: where it is attached changes nothing.

    >>> import numpy as np, tilewright as tw
    >>> from tilewright import te
    >>> from tilewright.space import Sketch, SpaceOptions
    >>> A = te.placeholder((64, 48), name="A")
    >>> task = tw.Task([A], te.compute((64, 48), lambda row, column: A[row, column] * 2.0, name="doubled"))
    >>> s = tw.Schedule(task)
    >>> _, inner = s["doubled"].split("column", 16)
    >>> s["doubled"].vectorize(inner)
    >>> sketch = Sketch(task, s.trace.steps, SpaceOptions(tw.Target.parse("haswell")))
    >>> for primitive in primitives_of(sketch.sample(np.random.default_rng(0), 3)):
    ...     print(primitive.kind, primitive.names, primitive.numbers)
    split ('S0', 's0') (48, 16)
    vectorize ('S0', 's0.1') (16,)
    """
    sketch = population.sketch
    sequence: list[Primitive] = []
    schedule = Schedule(sketch.task)
    schedule.replay(_described(schedule, sketch.decided(population.rows), sequence))
    return tuple(sequence)


def _described(schedule: Schedule, steps: tuple[Step, ...], sequence: list[Primitive]) -> Iterator[Step]:
    """The steps, each described before it is applied; whoever takes the next one has applied the last."""
    language = _Language(schedule)
    for step in steps:
        before = language.describe(step)
        yield step
        sequence.append(language.completed(before, step))


class _Language:
    """The canonical names of the stages and loops of a schedule while steps change it.

    Stages of the task are S0, S1, ... from the last one on, inputs I0, I1, ...; a copy is named after its source.
    Axes are s0, s1, ... from the last one on, those of a reduction r0, r1, ... likewise.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.stages = _stage_names(schedule.task)
        self.loops: dict[Loop, str] = {}
        self.extents: dict[Loop, Extent] = {}
        self.num_known: dict[Stage, int] = {}  # relations of each stage that have been looked at
        for stage in schedule:
            self._learn_axes(stage)

    def describe(self, step: Step) -> Primitive:
        """The step as a primitive, as far as it can be told before it is applied."""
        names: list[str] = []
        numbers: list[Extent] = []
        host = self.schedule[step.consumer if isinstance(step, ComputeAtStep) else step.stage]
        for field in fields(step):
            value = getattr(step, field.name)
            values = value if isinstance(value, tuple) else () if value is None else (value,)
            if field.name in ("stage", "consumer", "reader", "readers"):
                names += [self.stages[name] for name in values]
            elif field.name == "algorithm":
                names.append(value)
            elif field.name in ("loop", "loops"):
                found = [host.find_loop(name) for name in values]
                names += [self.loops[loop] for loop in found]
                numbers += [self.extents[loop] for loop in found if isinstance(step, _TELLS_EXTENT)]
            else:
                numbers += values
        return Primitive(step.name, tuple(names), tuple(numbers))

    def completed(self, primitive: Primitive, step: Step) -> Primitive:
        """The primitive of a step that has been applied; what it made has names from now on."""
        stage = self.schedule[step.stage]
        if isinstance(step, AlgorithmStep):
            self._name_stages_of(step)
            self._learn_axes(stage)  # which sums up something else now
        if type(step) in _COPIES:
            self._name_copy(step)
            self._learn_axes(stage)
        made = self._learn_relations(stage)
        if isinstance(step, SplitStep):
            for level, loop in enumerate(loop for loop in stage.leaves if loop in made):
                self.loops[loop] = f"{primitive.names[1]}.{level}"
        fused = next((loop for loop in stage.leaves if loop in made), None)
        if not isinstance(step, FuseStep) or fused is None:  # a single loop is fused with nothing
            return primitive
        self.loops[fused] = "@".join(primitive.names[1:])
        return replace(primitive, numbers=(self.extents[fused],))

    def _name_stages_of(self, step: AlgorithmStep) -> None:
        """The stages of an algorithm are named after the one that it computes, and what they are there."""
        for made in self.schedule:
            if made.name not in self.stages:
                self.stages[made.name] = f"{self.stages[step.stage]}{made.name.removeprefix(step.stage)}"
                self._learn_axes(made)

    def _name_copy(self, step: Step) -> None:
        made = list(self.schedule)[-1]
        wanted = name = f"{self.stages[step.stage]}.{_COPIES[type(step)]}"
        count = 0
        while name in self.stages.values():
            count += 1
            name = f"{wanted}{count}"
        self.stages[made.name] = name
        self._learn_axes(made)

    def _learn_axes(self, stage: Stage) -> None:
        """Names and extents of the loops that run over whole axes, as far as they are new."""
        spatial = [stage.loop_of_axis[axis] for axis in stage.axes]
        reduce = [stage.loop_of_axis[axis] for axis in stage.reduce_axes]
        for letter, loops in (("s", spatial), ("r", reduce)):
            for number, loop in enumerate(reversed(loops)):
                self.loops.setdefault(loop, f"{letter}{number}")
        for axis, loop in stage.loop_of_axis.items():
            self.extents.setdefault(loop, axis.extent)

    def _learn_relations(self, stage: Stage) -> set[Loop]:
        """The extents of what the last step has split or fused; gives the loops that are new."""
        made: set[Loop] = set()
        for relation in stage.relations[self.num_known.get(stage, 0) :]:
            if isinstance(relation, Split):
                whole = self.extents[relation.parent]
                tile = minimum(relation.factor, whole)
                self.extents[relation.outer], self.extents[relation.inner] = ceil_div(whole, tile), tile
                made |= {relation.outer, relation.inner}
            else:
                self.extents[relation.fused] = self.extents[relation.first] * self.extents[relation.second]
                made.add(relation.fused)
        self.num_known[stage] = len(stage.relations)
        return made


def _stage_names(task: Task) -> dict[str, str]:
    names = {tensor.name: f"S{number}" for number, tensor in enumerate(reversed(task.stages))}
    return names | {tensor.name: f"I{number}" for number, tensor in enumerate(task.inputs)}
