"""The templates of the package: right results on tasks of their operator, of any sizes and under any names."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tilewright as tw
from tests.space.templates.programs import OPTIONS
from tilewright import te
from tilewright.network import partition_network
from tilewright.space import SpaceOptions, operator_of
from tilewright.space.templates import Template, x86
from tilewright.te import Task, assert_matches, evaluate, random_inputs, reduction_size
from tilewright.workloads import parse

TEMPLATES = {"matmul": x86.matmul, "batch_matmul": x86.batch_matmul, "conv2d": x86.conv2d, "depthwise": x86.depthwise}
NATIVE = SpaceOptions(tw.Target.native(), threads=2)
WORKLOADS = [
    "gmm:30x70x24+bias+relu",
    "gmm:1x33x16",
    "gmm:1x1x8",
    "gmm:3x17x40x12",
    "tbg:1x20x3x8",
    "c2d:1x9x11x5,24,3x3,s1,p1+bias+relu",
    "c2d:2x8x8x4,3,1x1,s2,p0",
    "dep:1x9x10x20,3x3,s2,p1+relu",
    "dep:2x6x6x1,3x3,s1,p0",
]


def with_constant(n: int, m: int, depth: int) -> Task:
    a, w = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="W", constant=True)
    k = te.reduce_axis(depth, name="k")
    return Task([a, w], te.compute((n, m), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), "C"))


def check(template: Template, task: Task, num_rows: int = 2) -> None:
    """Random rows of each sketch compute what NumPy computes."""
    rng = np.random.default_rng(0)
    inputs = random_inputs(task, rng)
    (expected,) = evaluate(task, *inputs)
    for sketch in template.sketches(task, NATIVE):
        population = sketch.sample(rng, 64)
        for candidate in population[population.legal(NATIVE.target)][:num_rows]:
            kernel = tw.build(candidate.trace.apply(task), NATIVE.target, NATIVE.threads)
            assert_matches(kernel(*inputs), expected, task.outputs[0].dtype, reduction_size(task))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_random_rows_compute_what_numpy_computes(workload: str) -> None:
    task = parse(workload)
    operator = operator_of(task)
    assert operator is not None
    check(TEMPLATES[operator], task)


def test_a_constant_is_packed_ahead_of_time() -> None:
    task = with_constant(24, 40, 16)
    check(x86.matmul, task)
    for sketch in x86.matmul.sketches(task, OPTIONS):
        assert 's["W"].pack("C.cache")' in [str(step) for step in sketch.steps]


@pytest.mark.parametrize("network", ["zoo:mobilenet_v2", "zoo:bert_tiny"])
def test_tasks_of_networks_have_sketches(network: str) -> None:
    found = set()
    for item in partition_network(network).tasks:
        operator = operator_of(item.task)
        if operator in TEMPLATES:
            found.add(operator)
            assert TEMPLATES[operator].sketches(item.task, OPTIONS)
    assert found == ({"conv2d", "depthwise", "matmul"} if "mobilenet" in network else {"matmul", "batch_matmul"})


def test_a_task_of_a_network_computes_what_numpy_computes() -> None:
    tasks = {item.task.name: item.task for item in partition_network("zoo:bert_tiny@size=24").tasks}
    check(x86.batch_matmul, tasks["transpose_matmul"], num_rows=1)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=lambda template: template.name)
def test_a_template_is_short(template: Template) -> None:
    assert len(inspect.getsource(template.function).splitlines()) <= 40
