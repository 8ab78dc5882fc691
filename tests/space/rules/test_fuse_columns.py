"""Reductions along other axes than memory's own: vectors of results, alone, in a consumer, or as partial results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.schedule import PARALLEL, VECTORIZE, Schedule
from tilewright.space import SpaceOptions, derive
from tilewright.space.analysis import lane_axis
from tilewright.te import Task, assert_matches, evaluate, random_inputs, reduction_size
from tilewright.tuning.untuned import default_trace

AVX2 = tw.Target.parse("llvm -mcpu=haswell")  # 8 floats in a vector
NATIVE = tw.Target.native()


def mean_of_image(batch: int = 1, size: int = 7, channels: int = 512) -> Task:
    x = te.placeholder((batch, size, size, channels), name="X")
    ry, rx = te.reduce_axis(size, "ry"), te.reduce_axis(size, "rx")
    shape = (batch, 1, 1, channels)
    s = te.compute(shape, lambda n, i, j, c: te.sum(x[n, ry, rx, c], axis=[ry, rx]), "S")
    return Task([x], te.compute(shape, lambda n, i, j, c: s[n, i, j, c] * (1 / size**2), "M"))


def sum_of_rows(rows: int = 512, columns: int = 512) -> Task:
    x, k = te.placeholder((rows, columns), name="X"), te.reduce_axis(rows, "k")
    return Task([x], te.compute((columns,), lambda j: te.sum(x[k, j], axis=k), "S"))


def pooled(size: int = 20, channels: int = 40) -> Task:
    """The largest of each 3x3 window, with a border of zeros, and what it adds to the next."""
    x = te.placeholder((1, size, size, channels), name="X")
    bias = te.placeholder((channels,), name="bias", constant=True)
    ry, rx = te.reduce_axis(3, "ry"), te.reduce_axis(3, "rx")
    padded = te.compute(
        (1, size + 2, size + 2, channels),
        lambda n, y, z, c: te.select((y > 0) & (y <= size) & (z > 0) & (z <= size), x[n, y - 1, z - 1, c], 0.0),
        "padded",
    )
    shape = (1, size // 2, size // 2, channels)
    p = te.compute(shape, lambda n, i, j, c: te.max(padded[n, i * 2 + ry, j * 2 + rx, c], axis=[ry, rx]), "P")
    return Task([x, bias], te.compute(shape, lambda n, i, j, c: p[n, i, j, c] + bias[c], "Y"))


def largest_place() -> Task:
    x, k = te.placeholder((6, 50, 37), name="X"), te.reduce_axis(50, "k")
    return Task([x], te.compute((6, 37), lambda i, j: te.argmax(x[i, k, j], axis=k), "S"))


def channels_first() -> Task:
    x = te.placeholder((1, 64, 20, 20), name="X")
    ry, rx = te.reduce_axis(20, "ry"), te.reduce_axis(20, "rx")
    return Task([x], te.compute((1, 64), lambda n, c: te.sum(x[n, c, ry, rx], axis=[ry, rx]), "S"))


def half_precision() -> Task:
    x, k = te.placeholder((100, 100), "float16", name="X"), te.reduce_axis(100, "k")
    return Task([x], te.compute((100,), lambda j: te.sum(x[k, j], axis=k), "S"))


def scaled(size: int) -> Task:
    x = te.placeholder((size,), name="X")
    return Task([x], te.compute((size,), lambda i: x[i] * 2.0 + 1.0, "Y"))


def annotated(schedule: Schedule, stage: str, annotation: str) -> str:
    """The names of the stage's loops with the annotation."""
    return " ".join(loop.name for loop in schedule[stage].leaves if loop.annotation == annotation)


@pytest.mark.parametrize(
    "make",
    [
        mean_of_image,
        lambda: mean_of_image(3, 5, 100),
        sum_of_rows,
        lambda: sum_of_rows(999, 8),
        lambda: sum_of_rows(4096, 16),
        lambda: sum_of_rows(30, 9),
        pooled,
        largest_place,
        channels_first,
        half_precision,
        lambda: scaled(10_000),
        lambda: scaled(50_001),
        lambda: scaled(5),
    ],
)
def test_all_sketches_compute_what_numpy_computes(make: Callable[[], Task]) -> None:
    task = make()
    rng = np.random.default_rng(2)
    arrays = random_inputs(task, rng)
    expected = evaluate(task, *arrays)[0]
    for sketch in derive(task, SpaceOptions(NATIVE, threads=2)):
        population = sketch.sample(rng, 16).unique()
        legal = population[population.legal(NATIVE)]
        assert len(legal)
        for candidate in legal[:3]:
            kernel = tw.build(candidate.trace.apply(task), NATIVE, threads=2)
            assert_matches(kernel(*arrays), expected, task.outputs[0].dtype, reduction_size(task))


@pytest.mark.parametrize(
    ("make", "stage", "lane"),
    [
        (mean_of_image, "S", "c"),
        (sum_of_rows, "S", "j"),
        (lambda: sum_of_rows(512, 4), "S", "j"),
        (lambda: sum_of_rows(512, 3), "S", None),
        (channels_first, "S", None),
        (lambda: scaled(100), "Y", None),
    ],
)
def test_the_axis_of_the_lanes_is_memorys_own(make: Callable[[], Task], stage: str, lane: str | None) -> None:
    found = lane_axis(Schedule(make())[stage], AVX2)
    assert (None if found is None else found.name) == lane


def test_a_mean_over_places_has_its_channels_in_vectors_in_the_consumer() -> None:
    task = mean_of_image(batch=8)
    fused, alone = None, None
    for sketch in derive(task, SpaceOptions(AVX2, threads=2)):
        schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(task)
        if schedule["S"].attach_loop is None:
            alone = schedule
        elif schedule["S"].attach_loop.name == "c.0":
            fused = schedule
    assert fused is not None
    assert annotated(fused, "S", VECTORIZE) == "c"
    assert annotated(fused, "M", VECTORIZE) == "c.1"
    assert annotated(fused, "M", PARALLEL) == "n"
    assert alone is not None
    assert [loop.name for loop in alone["S"].leaves] == ["n", "i", "j", "c.0", "ry", "rx", "c.1"]
    assert annotated(alone, "S", VECTORIZE) == "c.1"


@pytest.mark.parametrize(
    ("make", "stage", "axis"),
    [(mean_of_image, "S", "c"), (sum_of_rows, "S", "j"), (lambda: scaled(100_000), "Y", "i"), (pooled, "P", "c")],
)
def test_the_default_is_in_vectors(make: Callable[[], Task], stage: str, axis: str) -> None:
    task = make()
    schedule = default_trace(task, AVX2, threads=2).apply(task)
    assert annotated(schedule, stage, VECTORIZE).partition(".")[0] == axis


def test_few_results_of_many_rows_are_partial_results_on_threads() -> None:
    task = sum_of_rows(4096, 16)
    first = derive(task, SpaceOptions(AVX2, threads=2))[0]
    schedule = first.sample(np.random.default_rng(0), 1).trace(0).apply(task)
    assert [loop.name for loop in schedule["S.rf"].leaves] == ["k.0", "j.0", "k.1", "j.1"]
    assert annotated(schedule, "S.rf", PARALLEL) == "k.0"
    assert annotated(schedule, "S.rf", VECTORIZE) == "j.1"
    assert schedule["S.rf"].leaves[0].extent == 8


@pytest.mark.parametrize(
    ("columns", "widths"),
    [(512, [8, 16, 32, 64]), (100, [8, 16]), (24, [8, 24]), (5, [5]), (64, [8, 16, 32, 64]), (65, [8])],
)
def test_tiles_of_columns_waste_little(columns: int, widths: list[int]) -> None:
    (knob,) = derive(sum_of_rows(600, columns), SpaceOptions(AVX2, threads=1))[-1].knobs
    assert knob.table[:, 0].tolist() == widths


@pytest.mark.parametrize("extent", [1, 31, 32, 33, 47, 63, 64, 65, 70, 97, 98, 129, 200, 1025])
def test_a_loop_of_any_length_has_a_legal_width(extent: int) -> None:
    x = te.placeholder((extent,), "uint8", name="X")  # of which a vector has many
    task = Task([x], te.compute((extent,), lambda i: x[i] // 2, "Y"))
    (sketch,) = derive(task, SpaceOptions(AVX2, threads=1))
    assert sketch.sample(np.random.default_rng(0), 8).legal(AVX2).all()


@pytest.mark.parametrize(
    ("shape", "threads", "expected"),
    [
        ((1, 1, 400, 100), 2, "i0@i1@i2"),
        ((2, 40, 5, 100), 2, "i0"),
        ((2, 40, 5, 100), 4, "i0@i1"),
        ((2, 1, 2, 10_000), 8, "i0@i1@i2"),
        ((1, 2, 2, 100), 2, ""),
    ],
)
def test_as_many_outer_loops_are_on_threads_as_it_takes(shape: tuple[int, ...], threads: int, expected: str) -> None:
    x = te.placeholder(shape, name="X")
    task = Task([x], te.compute(shape, lambda *i: te.maximum(x[i], 0.0), "Y"))
    (sketch,) = derive(task, SpaceOptions(AVX2, threads))
    schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(task)
    assert annotated(schedule, "Y", PARALLEL) == expected


def test_a_function_is_worth_threads_sooner() -> None:
    x = te.placeholder((64, 64), name="X")
    cheap = Task([x], te.compute((64, 64), lambda i, j: x[i, j] * 2.0, "Y"))
    costly = Task([x], te.compute((64, 64), lambda i, j: te.exp(x[i, j]), "Y"))
    found = [annotated(default_trace(t, AVX2, threads=2).apply(t), "Y", PARALLEL) for t in (cheap, costly)]
    assert found == ["", "i"]
