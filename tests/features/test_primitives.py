"""The primitives of a population say what its traces say, in names that nobody chose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tilewright import te
from tilewright.features import Primitive, primitives_of
from tilewright.schedule import Schedule, Stage, Step, Trace
from tilewright.space import Population, Sketch, SpaceOptions
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.encoder_checks import sketches_of
from tilewright.testing.programs import FAMILIES

OPTIONS = SpaceOptions(Target.parse("haswell"))


# --- the slow way: one trace, its names taken apart -------------------------------------------------------------------


def read_trace(task: Task, trace: Trace) -> list[tuple[str, list[str], list[int]]]:
    """Kind, names and numbers of each step, from one schedule that is changed step by step."""
    schedule = Schedule(task)
    stages = {tensor.name: f"S{len(task.stages) - 1 - k}" for k, tensor in enumerate(task.stages)}
    stages |= {tensor.name: f"I{k}" for k, tensor in enumerate(task.inputs)}
    extents: dict[tuple[str, str], int] = {}
    read = []
    kinds = {"cache_read": "read", "cache_write": "write", "rfactor": "rf", "pack": "pack"}
    for step in trace.steps:
        for stage in schedule:
            for axis, loop in stage.loop_of_axis.items():
                extents.setdefault((stage.name, loop.name), int(axis.extent))
        read.append((step.name, read_names(schedule, stages, step), read_numbers(extents, step)))
        before = set(schedule.stages)
        schedule.apply(step)
        for new in set(schedule.stages) - before:
            name = f"{stages[step.stage]}.{kinds[step.name]}"
            same = sum(known == name or known.rstrip("0123456789") == name for known in stages.values())
            stages[new] = f"{name}{same or ''}"
    return read


def read_names(schedule: Schedule, stages: dict[str, str], step: Step) -> list[str]:
    names = [stages[step.stage]]
    given: list[Any] = step.arguments()
    if step.name == "compute_at":
        return [*names, stages[given[0]], canonical_loop(schedule[given[0]], given[1])]
    if step.name in ("cache_read", "pack"):
        return [*names, *(stages[name] for name in given if isinstance(name, str))]
    return [*names, *(canonical_loop(schedule[step.stage], name) for name in given if isinstance(name, str))]


def canonical_loop(stage: Stage, name: str) -> str:
    """What the loop is called if the last axis is s0, the one before it s1, and those of a reduction r0, r1."""
    axes = {axis.name: f"s{k}" for k, axis in enumerate(reversed(stage.axes))}
    axes |= {axis.name: f"r{k}" for k, axis in enumerate(reversed(stage.reduce_axes))}
    parts = []
    for part in name.split("@"):
        axis = max((axis for axis in axes if part == axis or part.startswith(f"{axis}.")), key=len)
        parts.append(axes[axis] + part.removeprefix(axis))
    return "@".join(parts)


def read_numbers(extents: dict[tuple[str, str], int], step: Step) -> list[int]:
    """The numbers of the step; `extents` learns those of the loops that it makes."""
    given: list[Any] = step.arguments()
    if step.name == "split":
        loop, factors = given
        whole = rest = extents[step.stage, loop]
        for level in range(len(factors)):
            tile = min(math.prod(factors[level:]), rest)
            extents[step.stage, f"{loop}.{level}"] = -(-rest // tile)
            rest = tile
        extents[step.stage, f"{loop}.{len(factors)}"] = rest
        return [whole, *factors]
    if step.name == "fuse":
        if len(given) == 1:
            return []
        product = math.prod(extents[step.stage, name] for name in given)
        extents[step.stage, "@".join(given)] = product
        return [product]
    if step.name in ("parallel", "vectorize", "unroll"):
        return [extents[step.stage, given[0]]]
    return [value for value in given if isinstance(value, int)]


def of_candidate(primitive: Primitive, number: int) -> tuple[str, list[str], list[int]]:
    numbers = [int(value[number]) if isinstance(value, np.ndarray) else value for value in primitive.numbers]
    return primitive.kind, list(primitive.names), numbers


@pytest.mark.parametrize("family", FAMILIES)
def test_the_primitives_of_a_candidate_are_those_of_its_trace(family: str) -> None:
    for seed in range(3):
        for sketch in sketches_of(family, seed):
            population = sketch.sample(np.random.default_rng(seed), 4)
            primitives = primitives_of(population)
            for number, candidate in enumerate(population):
                expected = read_trace(sketch.task, candidate.trace)
                assert [of_candidate(primitive, number) for primitive in primitives] == expected


# --- by hand ----------------------------------------------------------------------------------------------------------


def sketch_of(schedule: Schedule) -> Population:
    sketch = Sketch(schedule.task, schedule.trace.steps, OPTIONS)
    return Population(sketch, np.zeros((1, 0), np.int64))


def test_copies_are_named_after_their_source_and_told_apart() -> None:
    A = te.placeholder((16, 16), name="A")
    k = te.reduce_axis(16, name="k")
    s = Schedule(Task([A], te.compute((16, 16), lambda i, j: te.sum(A[i, k] * A[j, k], axis=k), name="B")))
    s["A"].cache_read("B")
    for packed in ("A.cache.pack", "A.cache.pack1"):
        s["A.cache"].pack("B", 0 if packed[-1] == "k" else None)
        s[packed].vectorize(s[packed].loops[-1])
    read, first, mark_first, second, mark_second = primitives_of(sketch_of(s))
    assert read.names == ("I0", "S0")
    assert (first.names, first.numbers) == (("I0.read", "S0"), (0,))
    assert (second.names, second.numbers) == (("I0.read", "S0"), ())
    assert (mark_first.names[0], mark_second.names[0]) == ("I0.read.pack", "I0.read.pack1")


def test_a_loop_that_is_fused_with_nothing_keeps_its_name() -> None:
    A = te.placeholder((16, 6), name="A")
    s = Schedule(Task([A], te.compute((16, 6), lambda i, j: A[i, j] * 2.0, name="B")))
    s["B"].vectorize(s["B"].fuse("j"))
    fuse, vectorize = primitives_of(sketch_of(s))
    assert (fuse.names, fuse.numbers) == (("S0", "s0"), ())
    assert (vectorize.names, vectorize.numbers) == (("S0", "s0"), (6,))


def test_a_program_without_steps_has_no_primitives() -> None:
    A = te.placeholder((16, 6), name="A")
    assert primitives_of(sketch_of(Schedule(Task([A], te.compute((16, 6), lambda i, j: A[i, j], name="B"))))) == ()
