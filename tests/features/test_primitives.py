"""The primitives of a population say what its traces say, in names that nobody chose."""

from __future__ import annotations

import numpy as np
import pytest

from tests.features.read_trace import read_trace
from tilewright import te
from tilewright.features import Primitive, primitives_of
from tilewright.schedule import Schedule
from tilewright.space import Population, Sketch, SpaceOptions
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.encoder_checks import sketches_of
from tilewright.testing.programs import FAMILIES

OPTIONS = SpaceOptions(Target.parse("haswell"))


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
