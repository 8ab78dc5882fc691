"""What every encoder must do. An encoder's tests subclass `EncoderChecks` and say how to make the encoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache

import numpy as np
import pytest

from tilewright.features import Encoder
from tilewright.space import Population, Sketch, SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task, Tensor, names_in, renamed
from tilewright.testing.programs import FAMILIES, random_task

OPTIONS = SpaceOptions(Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2)


@cache
def sketches_of(family: str, seed: int = 0) -> tuple[Sketch, ...]:
    """The space of a random task."""
    return tuple(derive(random_task(family, np.random.default_rng(seed), max_points=4096), OPTIONS))


@cache
def renamed_sketches_of(family: str, seed: int = 0) -> tuple[Sketch, ...]:
    """The same space, of the task under other names."""
    return tuple(derive(with_other_names(sketches_of(family, seed)[0].task), OPTIONS))


def with_other_names(task: Task) -> Task:
    """The same computation, with another name for every tensor and axis, and the same names in every stage."""
    tensors = (*task.inputs, *task.stages)
    made: dict[Tensor, Tensor] = {}
    for number, tensor in enumerate(tensors):
        axes = range(len(names_in(tensor)) - 1, 0, -1)
        made[tensor] = renamed(tensor, [f"z{len(tensors) - number}", *(f"q{axis}" for axis in axes)], made)
    return Task([made[tensor] for tensor in task.inputs], [made[tensor] for tensor in task.outputs], "renamed")


class EncoderChecks(ABC):
    """The conformance checks; `make` gives a new encoder each time."""

    @abstractmethod
    def make(self) -> Encoder: ...

    @pytest.mark.parametrize("family", FAMILIES)
    def test_programs_become_finite_numbers(self, family: str) -> None:
        for sketch in sketches_of(family)[:3]:
            values = self.make().encode(sketch.sample(np.random.default_rng(0), 5))
            assert values.ndim == 3
            assert values.dtype == np.float32
            assert len(values) == 5
            assert np.isfinite(values).all()
            assert len(self.make().columns) in (0, values.shape[2])
            assert self.make().num_rows in (None, values.shape[1])

    @pytest.mark.parametrize("family", FAMILIES)
    def test_names_change_nothing(self, family: str) -> None:
        for sketch, other in zip(sketches_of(family), renamed_sketches_of(family), strict=True):
            population = sketch.sample(np.random.default_rng(0), 5)
            values = self.make().encode(Population(other, population.rows))
            np.testing.assert_array_equal(self.make().encode(population), values)

    def test_a_candidate_is_the_same_in_any_population(self) -> None:
        (sketch, *_) = sketches_of("gemm")
        population = sketch.sample(np.random.default_rng(0), 6)
        values = self.make().encode(population)
        np.testing.assert_array_equal(self.make().encode(population[np.array([4, 1])]), values[[4, 1]])
        for number in range(len(population)):
            np.testing.assert_allclose(
                self.make().encode(population[number : number + 1])[0], values[number], rtol=1e-6
            )

    def test_a_population_of_nobody_has_no_values(self) -> None:
        (sketch, *_) = sketches_of("gemm")
        nobody = Population(sketch, np.zeros((0, len(sketch.knobs)), np.int64))
        assert len(self.make().encode(nobody)) == 0

    def test_two_of_a_kind_are_the_same(self) -> None:
        assert self.make() == self.make()
        assert hash(self.make()) == hash(self.make())
