"""Datasets hold programs: by task, sketch, device and context, encoded when a model asks for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.cost_model import BoostedTrees, Dataset, Logged, Measured
from tilewright.errors import UsageError
from tilewright.features import (
    ChoicesEncoder,
    Encoder,
    FlatPrimitiveEncoder,
    JoinedEncoder,
    Primitive,
    PrimitiveEncoder,
    PublishedPrimitiveEncoder,
    StatementEncoder,
)
from tilewright.space import Population, Sketch, SpaceOptions, derive
from tilewright.target import Target
from tilewright.workloads import parse

OPTIONS = SpaceOptions(Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2)
GEMM = derive(parse("gmm:32x64x48"), OPTIONS)
SOFTMAX = derive(parse("gmm:24x24x24"), OPTIONS)


def programs(sketch: Sketch, num: int, seed: int = 0) -> Population:
    return sketch.sample(np.random.default_rng(seed), num)


def times(*latencies_s: float) -> NDArray[np.float64]:
    return np.array(latencies_s)


def test_labels_are_relative_to_the_best_of_the_same_task_device_and_context() -> None:
    elsewhere = derive(parse("gmm:32x64x48"), replace(OPTIONS, threads=1))
    dataset = Dataset(
        (
            Measured(programs(GEMM[0], 2), times(4.0, 2.0)),
            Measured(programs(GEMM[1], 2), times(1.0, np.inf)),
            Measured(programs(SOFTMAX[0], 1), times(8.0)),
            Measured(programs(GEMM[0], 1), times(10.0), context="cold-9M"),
            Measured(programs(elsewhere[0], 1), times(20.0), device="elsewhere"),
        )
    )
    examples = dataset.encoded(StatementEncoder())
    np.testing.assert_array_equal(examples.labels, [0.25, 0.5, 1.0, 0.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(examples.tasks, [0, 0, 0, 0, 1, 2, 3])
    np.testing.assert_array_equal(examples.devices, [0, 0, 0, 0, 0, 0, 1])
    assert examples.device_names == ("", "elsewhere")
    assert (len(dataset), dataset.num_valid) == (7, 6)


def test_examples_are_the_programs_one_after_the_other() -> None:
    first, second = programs(GEMM[0], 2), programs(GEMM[-1], 3)
    dataset = Dataset((Measured(first, times(1, 2)), Measured(second, times(3, 4, 5))))
    examples = dataset.encoded(StatementEncoder())
    whole = [*StatementEncoder().encode(first), *StatementEncoder().encode(second)]
    assert len(examples) == len(whole)
    for position, values in enumerate(whole):
        begin, end = examples.offsets[position : position + 2]
        np.testing.assert_array_equal(examples.values[begin:end], values)


def test_programs_are_encoded_once_for_each_encoder() -> None:
    calls: list[str] = []

    class Counting(ChoicesEncoder):
        def encode(self, population: Population) -> NDArray[np.float32]:
            calls.append("encode")
            return super().encode(population)

    group = Measured(programs(GEMM[0], 3), times(1, 2, 3))
    for encoder in (Counting(), Counting(), ChoicesEncoder()):
        Dataset((group,)).encoded(encoder)
    grown = Dataset((group,)).with_trials(list(programs(GEMM[0], 2, seed=1)), [1.0, None])
    grown.encoded(Counting())
    assert len(calls) == 2


def test_trials_are_grouped_by_sketch() -> None:
    candidates = [*programs(GEMM[0], 2), *programs(GEMM[1], 1), *programs(GEMM[0], 1, seed=1)]
    dataset = Dataset().with_trials(candidates, [1.0, None, 3.0, 4.0], context="cold-9M")
    assert [group.population.sketch for group in dataset.measured] == [GEMM[0], GEMM[1]]
    np.testing.assert_array_equal(dataset.groups[0].latencies_s, [1.0, np.inf, 4.0])
    assert {group.context for group in dataset.groups} == {"cold-9M"}


def test_a_model_learns_from_many_tasks_at_once() -> None:
    rng = np.random.default_rng(0)
    groups = [
        Measured(population, rng.uniform(1.0, 2.0, len(population)))
        for sketches in (GEMM, SOFTMAX)
        for population in [programs(sketch, 8) for sketch in sketches[:2]]
    ]
    model = BoostedTrees()
    model.fit(Dataset(tuple(groups)))
    for group in groups:
        assert np.isfinite(model.predict(group.population)).all()


def test_nothing_measured_is_an_empty_dataset() -> None:
    assert len(Dataset()) == Dataset().num_valid == 0
    assert len(Dataset().encoded(StatementEncoder())) == 0
    with pytest.raises(UsageError, match="at least one program"):
        BoostedTrees().fit(Dataset())


def test_each_program_has_a_latency() -> None:
    with pytest.raises(UsageError, match=r"each of the 3 programs has a latency, got an array of shape \(2,\)"):
        Measured(programs(GEMM[0], 3), times(1, 2))


def test_encoders_can_be_written_outside() -> None:
    class Number(Encoder):
        name = "number"

        def encode(self, population: Population) -> NDArray[np.float32]:
            return np.ones((len(population), 1, 1), np.float32)

    assert Dataset((Measured(programs(GEMM[0], 2), times(1, 2)),)).encoded(Number()).values.tolist() == [[1.0], [1.0]]


def test_some_programs_of_a_group_are_a_group() -> None:
    group = Measured(programs(GEMM[0], 4), times(1, 2, np.inf, 4), context="cold-9M", device="here")
    some = group.select(np.array([3, 1]))
    np.testing.assert_array_equal(some.latencies_s, [4, 2])
    assert (some.subject, some.task_hash) == (group.subject, GEMM[0].task.hash)
    np.testing.assert_array_equal(some.encoded(ChoicesEncoder()), group.encoded(ChoicesEncoder())[[3, 1]])


def test_some_programs_of_a_log_are_a_group() -> None:
    split = Primitive("SP", ("x",), (64, np.array([2, 4, 8])))
    group = Logged((split,), times(1, 2, 3), "2f" * 16, "v100")
    some = group.select(np.array([2, 0]))
    np.testing.assert_array_equal(some.latencies_s, [3, 1])
    assert (some.subject, some.task_hash) == (group.subject, "2f" * 16)
    encoder = PrimitiveEncoder()
    np.testing.assert_array_equal(some.encoded(encoder), group.encoded(encoder)[[2, 0]])


def test_programs_of_a_log_are_read_by_encoders_that_are_joined() -> None:
    group = Logged((Primitive("SP", ("x",), (64, np.array([2, 4, 8]))),), times(1, 2, 3), "2f" * 16, "v100")
    flat, published = FlatPrimitiveEncoder(), PublishedPrimitiveEncoder(length=2)
    values = group.encoded(JoinedEncoder((flat, published)))
    width = len(flat.columns)
    np.testing.assert_array_equal(values[:, :1, :width], group.encoded(flat))
    np.testing.assert_array_equal(values[:, 1:, width:], group.encoded(published))
    assert values.shape == (3, 3, width + len(published.columns))
    with pytest.raises(UsageError, match="the encoder choices reads more of them; .*, and not those of v100"):
        group.encoded(JoinedEncoder((flat, ChoicesEncoder())))


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan])
def test_a_latency_that_cannot_be_is_refused_when_it_is_given(wrong: float) -> None:
    with pytest.raises(UsageError, match=f"a latency is above 0, or infinite for a failure, got {wrong}"):
        Measured(programs(GEMM[0], 2), times(1.0, wrong))
