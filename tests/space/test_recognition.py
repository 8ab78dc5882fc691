"""Which operator a task is, whatever it is called and whatever is fused to it."""

from __future__ import annotations

import pytest

from tilewright import te
from tilewright.network import partition_network
from tilewright.space import OPERATORS, operator_of
from tilewright.te import Task
from tilewright.workloads import parse


@pytest.mark.parametrize(
    ("workload", "operator"),
    [
        ("gmm:8x9x10", "matmul"),
        ("gmm:1x8x9+relu", "matmul"),
        ("gmm:3x8x9x10+bias", "batch_matmul"),
        ("tbg:1x16x2x8", "batch_matmul"),
        ("c1d:1x16x4,8,3,s1,p1", "conv1d"),
        ("c2d:1x8x8x4,8,3x3,s1,p1+bias+relu", "conv2d"),
        ("c2d:1x8x8x4,8,1x1,s2,p0", "conv2d"),
        ("c2d:2x8x8x1,8,3x3,s1,p1", "conv2d"),
        ("dil:1x8x8x4,8,3x3,s1,p1,d2", "conv2d"),
        ("c3d:1x4x8x8x4,8,3x3x3,s1,p1", "conv3d"),
        ("dep:1x8x8x4,3x3,s1,p1+relu", "depthwise"),
        ("grp:1x8x8x4,8,3x3,s1,p1,g2", None),
        ("nrm:1x16x16", None),
        ("sfm:1x16x16", None),
    ],
)
def test_workloads(workload: str, operator: str | None) -> None:
    assert operator_of(parse(workload)) == operator
    assert operator in (None, *OPERATORS)


def test_tasks_without_a_product() -> None:
    x, k = te.placeholder((4, 8), name="X"), te.reduce_axis(8, name="k")
    for body in (
        te.compute((4, 8), lambda i, j: x[i, j] * 2.0, name="Y"),
        te.compute((4,), lambda i: te.max(x[i, k], axis=k), name="Y"),
        te.compute((4,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), name="Y"),
        te.compute((4,), lambda i: te.sum(x[i, k] * 2.0, axis=k), name="Y"),
    ):
        assert operator_of(Task([x], body)) is None


def test_tasks_of_networks() -> None:
    found = {item.task.name: operator_of(item.task) for item in partition_network("zoo:bert_tiny@size=24").tasks}
    assert found["matmul_add_div_erf_mul"] == found["matmul_add"] == "matmul"
    assert found["transpose_matmul_add"] == found["transpose_matmul"] == "batch_matmul"
    assert found["softmax"] is found["layernormalization"] is None
