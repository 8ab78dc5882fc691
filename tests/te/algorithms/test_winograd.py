"""Winograd's convolution: where it applies, what it is made of, and how far off it is."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tests.te.algorithms.convolutions import in_double, layer, windows, windows_in_double
from tilewright import te
from tilewright.errors import ExpressionError
from tilewright.te import Expr, Tensor
from tilewright.te.algorithms import ALGORITHMS, algorithms_for, rewritten
from tilewright.te.algorithms.tiled_convolution import TiledConvolution
from tilewright.workloads import parse

EPSILON = 2.0**-23


def conv_of(task: tw.Task, name: str = "conv") -> Tensor:
    return next(stage for stage in task.stages if stage.name == name)


def test_the_stages_of_a_convolution() -> None:
    found = rewritten(conv_of(layer(14, 64, 32)), "winograd4")
    assert {stage.name: stage.shape for stage in found.stages} == {
        "conv.long": (1, 18, 18, 64),
        "conv.data0": (1, 4, 4, 6, 6, 64),
        "conv.data1": (6, 6, 1, 4, 4, 64),
        "conv.weights0": (6, 3, 64, 32),
        "conv.weights1": (6, 6, 64, 32),
        "conv.product": (6, 6, 1, 4, 4, 32),
        "conv.result0": (1, 4, 4, 4, 6, 32),
        "conv.result1": (1, 4, 4, 4, 4, 32),
    }
    assert [stage.name for stage in found.ahead] == ["conv.weights0", "conv.weights1"]
    assert [stage.dtype for stage in found.ahead] == ["float64", "float32"]
    assert str(found.body) == "conv.result1[n, y // 4, x // 4, y % 4, x % 4, f]"


def test_data_that_tiles_cover_is_not_made_longer() -> None:
    assert "conv.long" not in [stage.name for stage in rewritten(conv_of(layer(12, 64, 32)), "winograd4").stages]


def test_names_that_axes_have_are_not_given_again() -> None:
    X = te.placeholder((1, 8, 8, 4), name="X")
    W = te.placeholder((3, 3, 4, 4), name="W", constant=True)
    t0, p0, c = te.reduce_axis(3, "t0"), te.reduce_axis(3, "p0"), te.reduce_axis(4, "c")
    Y = te.compute((1, 6, 6, 4), lambda n, d0, d1, f: te.sum(X[n, d0 + t0, d1 + p0, c] * W[t0, p0, c, f], [t0, p0, c]))
    for stage in rewritten(Y, "winograd2").stages:
        names = [axis.name for axis in stage.axes]
        assert len(set(names)) == len(names)


def conv(
    element: Callable[..., Expr], *, constant: bool = True, dtype: str = "float32", taps: int = 3, size: int = 16
) -> Tensor:
    """A convolution of the given read of the data, whose arguments are its axes and reduce axes."""
    X = te.placeholder((1, size, size, 16), dtype, name="X")
    W = te.placeholder((taps, taps, 16, 16), dtype, name="W", constant=constant)
    r, s, c = te.reduce_axis(taps, "r"), te.reduce_axis(taps, "s"), te.reduce_axis(16, "c")
    return te.compute(
        (1, 7, 7, 16), lambda n, y, x, f: te.sum(element(X, n, y, x, r, s, c) * W[r, s, c, f], axis=[r, s, c]), "conv"
    )


@pytest.mark.parametrize(
    "tensor",
    [
        conv(lambda X, n, y, x, r, s, c: X[n, y * 2 + r, x + s, c]),
        conv(lambda X, n, y, x, r, s, c: X[n, y * 2 + r * 2, x * 2 + s * 2, c], size=20),
        conv(lambda X, n, y, x, r, s, c: X[n, y - r + 2, x + s, c]),
        conv(lambda X, n, y, x, r, s, c: X[n, c, y + r, x + s]),
        conv(lambda X, n, y, x, r, s, c: X[n, y + r, x, s]),
        conv(lambda X, n, y, x, r, s, c: X[n, y + r, y + s, c]),
        conv(lambda X, n, y, x, r, s, c: te.maximum(X[n, y + r, x + s, c], 0.0)),
        conv(lambda X, n, y, x, r, s, c: X[n, y + r, x + s, c], constant=False),
        conv(lambda X, n, y, x, r, s, c: X[n, y + r, x + s, c], dtype="float64"),
        conv(lambda X, n, y, x, r, s, c: X[n, y + r, x + s, c], taps=4),
        conv_of(parse("c2d:1x14x14x32,32,3x3,s3,p1")),
        conv_of(parse("c2d:1x14x14x32,32,1x1,s1,p0")),
        parse("gmm:16x16x16").stages[-1],
    ],
    ids=[
        "stride", "stride and dilation", "taps backwards", "channels first", "no window", "one axis twice",
        "not a product of reads", "no constant", "float64", "four taps", "workload with stride", "one by one",
        "matrix product",
    ],
)  # fmt: skip
def test_what_is_no_such_convolution_is_left_alone(tensor: Tensor) -> None:
    assert algorithms_for(tensor) == []
    with pytest.raises(ExpressionError, match=r"float32 over up to three windows of 3 taps and stride 1.*; .* is none"):
        rewritten(tensor, "winograd4")


def test_a_plain_convolution_is_found_whichever_operand_comes_first() -> None:
    found = conv(lambda X, n, y, x, r, s, c: X[n, r + y, x + s + 1, c])
    assert algorithms_for(found) == ["winograd2", "winograd4"]


def test_an_algorithm_that_is_not_known_is_named_with_those_that_are() -> None:
    with pytest.raises(
        ExpressionError, match="there is no algorithm 'fft'; use one of: dot4, winograd2, winograd2s2, winograd2x2, "
    ):
        rewritten(conv_of(layer(8, 16, 16)), "fft")


@pytest.mark.parametrize(
    ("size", "inputs", "outputs", "names"),
    [
        (56, 64, 64, ["winograd2", "winograd4", "winograd6"]),
        (7, 512, 512, ["winograd2", "winograd4"]),
        (1, 64, 64, []),
        (56, 3, 64, []),
        (56, 64, 8, []),
    ],
)
def test_algorithms_are_for_enough_channels_and_tiles_that_are_filled(
    size: int, inputs: int, outputs: int, names: list[str]
) -> None:
    assert algorithms_for(conv_of(layer(size, inputs, outputs))) == names


@pytest.mark.parametrize("algorithm", ["winograd2", "winograd4", "winograd6"])
@pytest.mark.parametrize(
    ("size", "inputs", "outputs", "padding", "batch"),
    [(7, 17, 5, 1, 1), (13, 3, 17, 0, 2), (14, 64, 16, 1, 1), (28, 16, 17, 1, 1), (57, 1, 3, 1, 1), (3, 5, 1, 0, 3)],
)
def test_it_is_as_far_off_as_it_says(
    algorithm: str, size: int, inputs: int, outputs: int, padding: int, batch: int
) -> None:
    task = layer(size, inputs, outputs, padding=padding, batch=batch)
    schedule = tw.Schedule(task)
    schedule["conv"].algorithm(algorithm)
    rng = np.random.default_rng(size)
    random = te.random_inputs(task, rng)
    # Data after a ReLU, and weights of a size that keeps its variance.
    data = np.maximum(rng.normal(size=task.inputs[0].shape), 0).astype(np.float32)
    weights = (rng.normal(size=task.inputs[1].shape) * math.sqrt(2 / (9 * inputs))).astype(np.float32)
    kernel = tw.build(schedule, threads=1)
    growth = schedule.trace.error_growth
    for arrays in (random, [data, weights, *random[2:]]):
        found, expected = kernel(*arrays), in_double(arrays, padding=padding)
        of_sums = 4 * (4 + math.sqrt(9 * inputs)) * max(1, expected.std())
        assert np.max(np.abs(found - expected) / (growth * EPSILON * (16 * np.abs(expected) + of_sums))) < 1
        bound = kernel.bind(W=arrays[1], bias=arrays[2])
        np.testing.assert_array_equal(bound(arrays[0], arrays[3]), found)


@pytest.mark.parametrize(
    ("sizes", "taps", "names"),
    [
        ((60,), (3,), ["winograd4", "winograd6"]),
        ((20, 60), (1, 3), ["winograd4", "winograd6"]),
        ((20, 20), (5, 5), ["winograd2of5", "winograd4of5"]),
        ((16, 16), (7, 1), ["winograd2of7"]),
        ((8, 24, 24), (3, 3, 3), ["winograd2", "winograd2x2", "winograd4", "winograd6", "winograd2x4"]),
        ((8, 24, 24), (1, 3, 3), ["winograd2", "winograd4", "winograd6"]),
        ((24, 24), (3, 5), []),
        ((8, 8, 8, 8), (3, 3, 3, 3), []),
    ],
)
def test_other_windows_have_algorithms_too(sizes: tuple[int, ...], taps: tuple[int, ...], names: list[str]) -> None:
    assert algorithms_for(conv_of(windows(sizes, taps, 16, 16))) == names


FORMS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((9,), (3,)), ((1,), (3,)), ((11,), (5,)), ((1, 10), (1, 3)), ((7, 4), (3, 1)), ((9, 7), (5, 5)), ((3, 6), (1, 7)),
    ((2, 5, 7), (3, 3, 3)), ((1, 1, 1), (3, 3, 3)), ((5, 3, 2), (3, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "taps"), FORMS, ids=str)
def test_other_windows_are_as_far_off_as_is_said(sizes: tuple[int, ...], taps: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(sizes))
    num_channels, num_outputs, first, batch = rng.integers(1, [40, 20, 3, 3]).tolist()
    task = windows(sizes, taps, num_channels, num_outputs, first=first, batch=batch)
    data = np.maximum(rng.normal(size=task.inputs[0].shape), 0).astype(np.float32)
    weights = (rng.normal(size=task.inputs[1].shape) / math.sqrt(math.prod(taps) * num_channels)).astype(np.float32)
    expected = windows_in_double(data, weights, sizes, first)
    allowed = EPSILON * (16 * np.abs(expected) + 4 * (4 + math.sqrt(math.prod(taps) * num_channels)))
    used = [a for a in ALGORITHMS.values() if isinstance(a, TiledConvolution) and a.num_taps == max(taps)]
    used = [a for a in used if a.stride == 1 and (not a.first_tile or taps == (3, 3, 3))]
    assert used
    for algorithm in used:
        schedule = tw.Schedule(task)
        schedule["conv"].algorithm(algorithm.name)
        found = tw.build(schedule, threads=1).bind(W=weights)(data)
        assert np.max(np.abs(found - expected) / allowed) < algorithm.error_growth


STRIDED: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((9,), (3,)), ((1,), (3,)), ((7, 4), (3, 3)), ((9, 8), (3, 3)), ((1, 1), (3, 3)), ((2, 5, 7), (3, 3, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "taps"), STRIDED, ids=str)
@pytest.mark.parametrize("algorithm", ["winograd2s2", "winograd4s2"])
def test_with_stride_two_it_is_as_far_off_as_is_said(
    sizes: tuple[int, ...], taps: tuple[int, ...], algorithm: str
) -> None:
    rng = np.random.default_rng(sum(sizes))
    num_channels, num_outputs, first, batch = rng.integers(1, [200, 20, 3, 3]).tolist()
    task = windows(sizes, taps, num_channels, num_outputs, first=first, batch=batch, stride=2)
    data = np.maximum(rng.normal(size=task.inputs[0].shape), 0).astype(np.float32)
    weights = (rng.normal(size=task.inputs[1].shape) / math.sqrt(math.prod(taps) * num_channels)).astype(np.float32)
    expected = windows_in_double(data, weights, sizes, first, stride=2)
    allowed = EPSILON * (16 * np.abs(expected) + 4 * (4 + math.sqrt(math.prod(taps) * num_channels)))
    schedule = tw.Schedule(task)
    schedule["conv"].algorithm(algorithm)
    found = tw.build(schedule, threads=1).bind(W=weights)(data)
    assert np.max(np.abs(found - expected) / allowed) < schedule.trace.error_growth


def test_with_stride_two_the_weights_of_the_taps_between_are_there_once() -> None:
    found = rewritten(conv_of(windows((28, 28), (3, 3), 64, 32, stride=2)), "winograd4s2")
    shapes = {stage.name: stage.shape for stage in found.stages}
    assert shapes["conv.product"] == (9, 9, 1, 7, 7, 32)
    assert shapes["conv.weights1"] == (6, 6, 64, 32)
    product = next(stage for stage in found.stages if stage.name == "conv.product")
    assert "conv.weights1[min(p0, 5), min(p1, 5), c, f]" in str(product.body).replace("i3", "f")


@pytest.mark.parametrize(
    ("sizes", "names"),
    [((28, 28), ["winograd2s2", "winograd4s2"]), ((14, 14), ["winograd2s2"]), ((3, 3), [])],
)
def test_with_stride_two_tiles_are_filled_as_well(sizes: tuple[int, int], names: list[str]) -> None:
    assert algorithms_for(conv_of(windows(sizes, (3, 3), 16, 16, stride=2))) == names


def test_windows_that_move_differently_are_left_alone() -> None:
    tensor = conv(lambda X, n, y, x, r, s, c: X[n, y * 2 + r, x + s, c])
    with pytest.raises(ExpressionError, match="stride 2"):
        rewritten(tensor, "winograd4s2")


def in_groups(size: int, group: int, inputs: int, outputs: int) -> tw.Task:
    """A 3x3 convolution in groups whose channels lie in one dimension, group after group, as in ONNX."""
    X = te.placeholder((1, size + 2, size + 2, group * inputs), name="X")
    W = te.placeholder((3, 3, inputs, group * outputs), name="W", constant=True)
    r, s, c = te.reduce_axis(3, "r"), te.reduce_axis(3, "s"), te.reduce_axis(inputs, "c")
    conv = te.compute(
        (1, size, size, group, outputs),
        lambda n, y, x, g, f: te.sum(X[n, y + r, x + s, g * inputs + c] * W[r, s, c, g * outputs + f], [r, s, c]),
        "conv",
    )
    flat = te.compute(
        (1, size, size, group * outputs), lambda n, y, x, f: conv[n, y, x, f // outputs, f % outputs] + 1.0, "flat"
    )
    return tw.Task([X, W], flat)


@pytest.mark.parametrize(
    ("inputs", "outputs", "names"), [(16, 32, ["winograd2", "winograd4"]), (8, 32, []), (32, 4, [])]
)
def test_groups_have_algorithms_where_each_has_enough_channels(inputs: int, outputs: int, names: list[str]) -> None:
    assert algorithms_for(conv_of(in_groups(14, 4, inputs, outputs))) == names


@pytest.mark.parametrize(("group", "inputs", "outputs"), [(2, 16, 17), (3, 5, 4), (1, 8, 8)])
def test_groups_are_as_far_off_as_is_said(group: int, inputs: int, outputs: int) -> None:
    task, rng = in_groups(7, group, inputs, outputs), np.random.default_rng(group)
    data = rng.normal(size=task.inputs[0].shape).astype(np.float32)
    weights = (rng.normal(size=task.inputs[1].shape) / math.sqrt(9 * inputs)).astype(np.float32)
    parts = [
        windows_in_double(of_data, of_weights, (7, 7), 0)
        for of_data, of_weights in zip(np.split(data, group, -1), np.split(weights, group, -1), strict=True)
    ]
    expected = np.concatenate(parts, -1) + 1
    for name in ("winograd2", "winograd4", "winograd6"):
        schedule = tw.Schedule(task)
        schedule["conv"].algorithm(name)
        found = tw.build(schedule, threads=1).bind(W=weights)(data)
        allowed = schedule.trace.error_growth * EPSILON * (16 * np.abs(expected) + 4 * (4 + math.sqrt(9 * inputs)))
        assert np.max(np.abs(found - expected) / allowed) < 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize(("algorithm", "tile"), [("winograd2", 2), ("winograd4", 4), ("winograd6", 6)])
def test_what_is_not_finite_spoils_the_results_of_its_tiles_and_no_others(
    algorithm: str, tile: int, value: float
) -> None:
    """A large number does, where sums of it overflow in the transform; here it may, or may not."""
    size, at = 13, 6
    task = windows((size, size), (3, 3), 5, 4)
    data, weights = te.random_inputs(task, np.random.default_rng(0))
    schedule = tw.Schedule(task)
    schedule["conv"].algorithm(algorithm)
    kernel = tw.build(schedule, threads=1).bind(W=weights)
    clean = kernel(data)
    data[0, at, at, 2] = value
    with np.errstate(all="ignore"):
        spoilt = kernel(data)
    place = np.arange(size)
    reads = (place // tile * tile <= at) & (at < place // tile * tile + tile + 2)  # tiles that have it in their data
    in_window = (place <= at) & (at <= place + 2)
    in_tile = np.outer(reads, reads)
    np.testing.assert_array_equal(spoilt[0, ~in_tile], clean[0, ~in_tile])
    if not np.isfinite(value):
        assert not np.isfinite(spoilt[0, np.outer(in_window, in_window)]).any()
