"""Each family computes what its NumPy formulation computes: by the reference, and compiled as it stands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.workloads import formulations as f
from tests.workloads.formulations import Array
from tilewright import Schedule, build, workloads
from tilewright.te import assert_matches, evaluate, random_inputs, reduction_size


def relu(a: Array) -> Array:
    return np.maximum(a, 0)


CASES: list[tuple[str, Callable[..., Array]]] = [
    ("c1d:2x9x3,5,3,s2,p1", lambda x, w: f.conv(x, w, 2, 1)),
    ("c1d:1x9x3,5,1,s1,p0", lambda x, w: f.conv(x, w, 1, 0)),
    ("c1d:1x12x3,4,3,s1,p2,d3", lambda x, w: f.conv(x, w, 1, 2, 3)),
    ("c2d:2x7x6x3,5,3x3,s1,p1", lambda x, w: f.conv(x, w, 1, 1)),
    ("c2d:1x9x8x3,4,3x2,s2,p2", lambda x, w: f.conv(x, w, 2, 2)),
    ("c2d:1x6x6x4,8,1x1,s1,p0", lambda x, w: f.conv(x, w, 1, 0)),
    ("c2d:1x7x6x3,5,3x3,s1,p1+relu", lambda x, w: relu(f.conv(x, w, 1, 1))),
    ("c2d:1x7x6x3,5,3x3,s1,p1+bias+relu", lambda x, w, b: relu(f.conv(x, w, 1, 1) + b)),
    ("c2d:1x7x6x3,5,3x3,s1,p1+bn", lambda x, w, a, b: f.conv(x, w, 1, 1) * a + b),
    ("c3d:1x4x5x6x3,4,3x3x3,s1,p1", lambda x, w: f.conv(x, w, 1, 1)),
    ("c3d:2x5x5x5x2,3,3x2x1,s2,p0", lambda x, w: f.conv(x, w, 2, 0)),
    ("gmm:5x7x9", lambda a, b: a @ b),
    ("gmm:3x5x7x9", lambda a, b: a @ b),
    ("gmm:5x7x9+bias+relu", lambda a, b, c: relu(a @ b + c)),
    ("grp:2x6x5x8,12,3x3,s1,p1,g4", lambda x, w: f.grouped_conv(x, w, 1, 1)),
    ("grp:1x6x5x4,4,1x1,s2,p0,g2+bias", lambda x, w, b: f.grouped_conv(x, w, 2, 0) + b),
    ("dil:1x9x8x3,4,3x3,s1,p1,d2", lambda x, w: f.conv(x, w, 1, 1, 2)),
    ("dil:1x9x8x4,4,3x3,s2,p2,d2,g2", lambda x, w: f.grouped_conv(x, w, 2, 2, 2)),
    ("dep:2x7x6x5,3x3,s1,p1", lambda x, w: f.depthwise(x, w, 1, 1)),
    ("dep:1x8x8x5,3x3,s2,p1+bn+relu", lambda x, w, a, b: relu(f.depthwise(x, w, 2, 1) * a + b)),
    ("t2d:2x4x3x5,6,4x4,s2,p1", lambda x, w: f.transposed(x, w, 2, 1)),
    ("t2d:1x4x3x5,6,3x3,s2,p1", lambda x, w: f.transposed(x, w, 2, 1)),
    ("t2d:1x3x4x2,3,5x4,s3,p2", lambda x, w: f.transposed(x, w, 3, 2)),
    ("t2d:1x3x4x2,3,2x2,s3,p0", lambda x, w: f.transposed(x, w, 3, 0)),
    ("t2d:1x4x4x2,3,3x3,s1,p0+bias", lambda x, w, b: f.transposed(x, w, 1, 0) + b),
    ("cap:1x5x6x3,2,3x3,s2,p1", lambda x, w: f.capsule(x, w, 2, 1)),
    ("cap:2x4x4x2,3,1x1,s1,p0+relu", lambda x, w: relu(f.capsule(x, w, 1, 0))),
    ("nrm:3x5x7", lambda a: np.sqrt((a * a).sum((1, 2)))),
    ("sfm:2x5x7", f.softmax),
    ("convlayer:1x7x6x3,5,3x3,s1,p1", lambda x, w, a, b: relu(f.conv(x, w, 1, 1) * a + b)),
    ("tbg:2x5x3x4", f.attention_scores),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "formulation"), CASES, ids=[workload for workload, _ in CASES])
def test_family_computes_what_numpy_does(workload: str, formulation: Callable[..., Array]) -> None:
    task = workloads.parse(workload)
    arrays = random_inputs(task, np.random.default_rng(0))
    expected = formulation(*(array.astype(np.float64) for array in arrays)).astype(np.float32)
    assert_matches(evaluate(task, *arrays)[0], expected, "float32", reduction_size(task))
    assert_matches(build(Schedule(task), threads=1)(*arrays), expected, "float32", reduction_size(task))


def test_every_family_has_a_case() -> None:
    assert {workload.partition(":")[0] for workload, _ in CASES} == set(workloads.names())


@pytest.mark.parametrize(
    ("workload", "flop"),
    [
        ("gmm:128x64x32", 2 * 128 * 64 * 32),
        ("gmm:4x128x64x32+relu", 4 * 128 * 64 * (2 * 32 + 1)),
        ("c1d:1x256x64,128,3,s2,p1", 2 * 128 * 128 * 64 * 3),
        ("c2d:1x28x28x128,128,3x3,s1,p1", 2 * 28 * 28 * 128 * 128 * 9),
        ("c2d:1x28x28x128,128,3x3,s1,p1+bias+relu", 28 * 28 * 128 * (2 * 128 * 9 + 2)),
        ("c3d:1x16x14x14x256,256,3x3x3,s1,p1", 2 * 16 * 14 * 14 * 256 * 256 * 27),
        ("grp:1x14x14x256,256,3x3,s1,p1,g4", 2 * 14 * 14 * 256 * 64 * 9),
        ("dil:1x14x14x256,256,3x3,s1,p1,d2", 2 * 12 * 12 * 256 * 256 * 9),
        ("dep:16x112x112x64,3x3,s2,p1", 2 * 16 * 56 * 56 * 64 * 9),
        # With a stride of 2, only 2x2 of the 4x4 kernel's elements meet an output.
        ("t2d:1x8x8x256,128,4x4,s2,p1", 2 * 16 * 16 * 128 * 256 * 4),
        ("cap:1x16x16x32,32,3x3,s2,p1", 2 * 8 * 8 * 16 * 32 * 4 * 32 * 9),
        ("nrm:16x256x512", 16 * (2 * 256 * 512 + 1)),
        ("sfm:16x256x512", 5 * 16 * 256 * 512),
        ("convlayer:1x56x56x64,64,1x1,s1,p0", 56 * 56 * 64 * (2 * 64 + 3)),
        ("tbg:1x128x12x64", 2 * 12 * 128 * 128 * 64),
    ],
)
def test_flop_counts_the_arithmetic_on_elements(workload: str, flop: int) -> None:
    assert workloads.parse(workload).flop == flop


def test_weights_are_constant_and_the_operands_of_a_matrix_product_are_not() -> None:
    conv = workloads.parse("convlayer:1x7x6x3,5,3x3,s1,p1")
    assert [t.name for t in conv.constants] == ["W", "scale", "shift"]
    assert workloads.parse("gmm:5x7x9").constants == ()


def test_padding_is_a_stage_of_its_own_and_only_where_there_is_some() -> None:
    assert [t.name for t in workloads.parse("c2d:1x7x7x3,5,3x3,s1,p1").stages] == ["padded", "conv"]
    assert [t.name for t in workloads.parse("c2d:1x7x7x3,5,3x3,s1,p0").stages] == ["conv"]
