"""Winograd's convolution of dilated windows: as many convolutions without a dilation, in one."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tests.te.algorithms.convolutions import windows, windows_in_double
from tests.te.algorithms.test_winograd import EPSILON, conv_of
from tilewright import te
from tilewright.schedule import Trace
from tilewright.te.algorithms import algorithms_for, rewritten
from tilewright.workloads import parse

Array: TypeAlias = NDArray[Any]
NAMES = ["winograd2", "winograd4", "winograd6"]


def test_the_tiles_of_all_parts_stand_side_by_side() -> None:
    found = rewritten(conv_of(windows((12, 12), (3, 3), 64, 32, dilations=(2, 2))), "winograd2")
    assert {stage.name: stage.shape for stage in found.stages} == {
        "conv.data0": (1, 6, 6, 4, 4, 64),
        "conv.data1": (4, 4, 1, 6, 6, 64),
        "conv.weights0": (4, 3, 64, 32),
        "conv.weights1": (4, 4, 64, 32),
        "conv.product": (4, 4, 1, 6, 6, 32),
        "conv.result0": (1, 6, 6, 2, 4, 32),
        "conv.result1": (1, 6, 6, 2, 2, 32),
    }
    tile = "{0} // 4 * 2 + {0} % 2"
    places = "i1 // 2 % 2, i2 // 2 % 2"
    assert str(found.body) == f"conv.result1[i0, {tile.format('i1')}, {tile.format('i2')}, {places}, i3]"


def test_weights_are_those_without_a_dilation() -> None:
    (plain, dilated) = (
        rewritten(conv_of(windows((12, 12), (3, 3), 8, 8, dilations=d)), "winograd4").ahead for d in ((1, 1), (2, 3))
    )
    assert [str(stage.body) for stage in plain] == [str(stage.body) for stage in dilated]


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        ("dil:1x14x14x256,256,3x3,s1,p1,d2", ["winograd2", "winograd6"]),
        ("dil:1x7x7x512,512,3x3,s1,p1,d2", ["winograd2"]),
        ("dil:1x33x33x64,64,3x3,s1,p6,d6", ["winograd2", "winograd6"]),
        ("dil:1x32x32x16,16,5x5,s1,p4,d2", ["winograd2of5", "winograd4of5"]),
        ("c1d:1x60x16,16,3,s1,p0,d2", ["winograd4", "winograd6"]),
        ("dil:1x24x24x64,64,3x3,s1,p2,d2,g2", NAMES),
        ("dil:1x14x14x8,64,3x3,s1,p1,d2", []),
        ("dil:1x14x14x64,64,3x3,s2,p1,d2", []),
        ("dil:1x4x4x64,64,3x3,s1,p4,d4", []),
    ],
)
def test_algorithms_are_for_tiles_that_are_filled(workload: str, names: list[str]) -> None:
    assert algorithms_for(conv_of(parse(workload))) == names
    assert algorithms_for(conv_of(parse(workload)), exact=True) == []


def test_one_window_may_be_dilated_and_the_other_not() -> None:
    assert algorithms_for(conv_of(windows((24, 24), (3, 3), 16, 16, dilations=(2, 1)))) == NAMES


FORMS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((9,), (2,)), ((1,), (2,)), ((12, 12), (2, 2)), ((7, 9), (2, 2)), ((5, 5), (2, 2)), ((13, 8), (3, 3)),
    ((7, 10), (2, 1)), ((10, 7), (1, 3)), ((9, 11), (4, 2)), ((1, 1), (2, 2)), ((1, 12), (3, 2)), ((2, 3), (5, 5)),
    ((3, 5, 7), (2, 2, 2)), ((2, 6, 5), (1, 3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "dilations"), FORMS, ids=str)
@pytest.mark.parametrize("algorithm", NAMES)
def test_it_is_as_far_off_as_without_a_dilation(
    sizes: tuple[int, ...], dilations: tuple[int, ...], algorithm: str
) -> None:
    rng = np.random.default_rng(sum(sizes))
    num_channels, num_outputs, first, batch = rng.integers(1, [200, 20, 3, 3]).tolist()
    taps = (3,) * len(sizes)
    task = windows(sizes, taps, num_channels, num_outputs, first=first, batch=batch, dilations=dilations)
    data = np.maximum(rng.normal(size=task.inputs[0].shape), 0).astype(np.float32)
    weights = (rng.normal(size=task.inputs[1].shape) / math.sqrt(math.prod(taps) * num_channels)).astype(np.float32)
    expected = windows_in_double(data, weights, sizes, first, dilations=dilations)
    allowed = EPSILON * (16 * np.abs(expected) + 4 * (4 + math.sqrt(math.prod(taps) * num_channels)))
    schedule = tw.Schedule(task)
    schedule["conv"].algorithm(algorithm)
    found = tw.build(schedule, threads=1).bind(W=weights)(data)
    assert np.max(np.abs(found - expected) / allowed) < schedule.trace.error_growth
    assert Trace.from_json(schedule.trace.to_json()) == schedule.trace


@pytest.mark.parametrize(("algorithm", "taps"), [("winograd4of5", 5), ("winograd2of7", 7), ("winograd2x4", 3)])
def test_other_windows_may_be_dilated(algorithm: str, taps: int) -> None:
    sizes = (5, 6, 7) if taps == 3 else (9, 10)
    dilations = (2, 3, 2)[: len(sizes)]
    task = windows(sizes, (taps,) * len(sizes), 5, 4, first=1, dilations=dilations)
    data, weights = te.random_inputs(task, np.random.default_rng(1))
    schedule = tw.Schedule(task)
    schedule["conv"].algorithm(algorithm)
    found = tw.build(schedule, threads=1).bind(W=weights)(data)
    expected = windows_in_double(data, weights, sizes, 1, dilations=dilations)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("padding", [0, 1, 2, 3])
@pytest.mark.parametrize(("dilation", "groups"), [(2, 1), (3, 1), (2, 2)])
def test_padding_groups_bias_and_relu(dilation: int, groups: int, padding: int) -> None:
    task = parse(f"dil:2x11x10x16,8,3x3,s1,p{padding},d{dilation},g{groups}+bias+relu")
    arrays = te.random_inputs(task, np.random.default_rng(padding))
    X, W, bias = (array.astype(np.float64) for array in arrays)
    in_groups = X.reshape(*X.shape[:3], groups, -1), W.reshape(3, 3, groups, -1, 8 // groups)
    expected = np.maximum(_padded_in_double(*in_groups, padding, dilation) + bias.reshape(groups, -1), 0)
    for algorithm in NAMES:
        schedule = tw.Schedule(task)
        schedule["conv"].algorithm(algorithm)
        found = tw.build(schedule, threads=1)(*arrays)
        wanted = expected.astype(np.float32).reshape(found.shape)
        te.assert_matches(found, wanted, "float32", te.reduction_size(task), schedule.trace.error_growth)


def _padded_in_double(X: Array, W: Array, padding: int, dilation: int) -> Array:
    """X[n, y, x, g, c] with W[r, s, g, c, f], of 3x3 taps."""
    around = (padding, padding)
    padded = np.pad(X, ((0, 0), around, around, (0, 0), (0, 0)))
    rows, columns = (size - 2 * dilation for size in padded.shape[1:3])
    total = np.zeros((X.shape[0], rows, columns, W.shape[2], W.shape[4]))
    for r, s in np.ndindex(3, 3):
        part = padded[:, r * dilation : r * dilation + rows, s * dilation : s * dilation + columns]
        total += np.einsum("nyxgc,gcf->nyxgf", part, W[r, s])
    return total


def test_what_is_not_finite_spoils_tiles_of_its_own_part_only() -> None:
    size, at, dilation, tile = 13, 6, 2, 4
    task = windows((size, size), (3, 3), 5, 4, dilations=(dilation, dilation))
    data, weights = te.random_inputs(task, np.random.default_rng(0))
    schedule = tw.Schedule(task)
    schedule["conv"].algorithm(f"winograd{tile}")
    kernel = tw.build(schedule, threads=1).bind(W=weights)
    clean = kernel(data)
    data[0, at, at, 2] = np.nan
    spoilt = kernel(data)
    place = np.arange(size)
    begin = place // (tile * dilation) * tile * dilation + place % dilation
    reads = (place % dilation == at % dilation) & (begin <= at) & (at <= begin + (tile + 1) * dilation)
    in_window = np.isin(at - place, (0, dilation, 2 * dilation))
    in_tile = np.outer(reads, reads)
    np.testing.assert_array_equal(spoilt[0, ~in_tile], clean[0, ~in_tile])
    assert not np.isfinite(spoilt[0, np.outer(in_window, in_window)]).any()
