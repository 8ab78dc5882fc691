"""What the space's rules make of the operators as networks run them: tiles where there is reuse, and right results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.operators import OWN, Call, Node, express
from tilewright.space import Sketch, SpaceOptions, derive
from tilewright.te import Task, assert_matches, evaluate, random_inputs, reduction_size

OPTIONS = SpaceOptions(tw.Target.parse("llvm -mcpu=native"), threads=2)


def task_of(op: str, shapes: Sequence[tuple[int, ...]], domain: str = OWN, **attributes: Any) -> Task:
    """One node with a ReLU after it. All inputs but the first are constant."""
    inputs = [te.placeholder(shape, name=f"x{n}", constant=n > 0) for n, shape in enumerate(shapes)]
    node = Node(op, tuple(T.name for T in inputs), ("y",), attributes, domain=domain, opset=21)
    Y = express(Call(node, inputs, [None] * len(inputs)))[0]
    return Task(inputs, te.compute(Y.shape, lambda *i: te.maximum(Y[i], 0.0), "relu"), op)


PRODUCTS: dict[str, tuple[Task, str]] = {
    "conv": (task_of("Conv", [(1, 10, 10, 32), (3, 3, 32, 48), (48,)], pads=[1, 1, 1, 1]), "conv_2"),
    "conv_stride": (task_of("Conv", [(1, 10, 10, 32), (3, 3, 32, 48)], strides=[2, 2]), "conv"),
    "grouped": (task_of("Conv", [(1, 10, 10, 64), (3, 3, 32, 64), (64,)], group=2), "conv"),
    "depthwise": (task_of("Conv", [(1, 12, 12, 32), (3, 3, 1, 32), (32,)], group=32, pads=[1, 1, 1, 1]), "conv_2"),
    "transposed": (
        task_of("ConvTranspose", [(1, 6, 6, 32), (4, 4, 32, 32), (32,)], strides=[2, 2], pads=[1, 1, 1, 1]),
        "conv_2",
    ),
    "matmul": (task_of("MatMul", [(1, 24, 64), (64, 48)], domain=""), "product"),
    "gemm": (task_of("Gemm", [(24, 64), (48, 64), (48,)], domain="", transB=1), "product"),
}
OTHERS: dict[str, Task] = {
    "softmax": task_of("Softmax", [(2, 24, 64)], domain=""),
    "layer_norm": task_of("LayerNormalization", [(2, 24, 64), (64,), (64,)], domain=""),
    "max_pool": task_of("MaxPool", [(1, 12, 12, 32)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "average_pool": task_of("AveragePool", [(1, 12, 12, 32)], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "global_average_pool": task_of("GlobalAveragePool", [(2, 7, 7, 64)]),
}


def check_some_candidates(task: Task, sketches: Sequence[Sketch]) -> None:
    """One candidate of each sketch computes what NumPy computes."""
    rng = np.random.default_rng(0)
    inputs = random_inputs(task, rng)
    (expected,) = evaluate(task, *inputs)
    for sketch in sketches:
        schedule = sketch.sample(rng, 1).trace(0).apply(task)
        result = tw.build(schedule, threads=2)(*inputs)
        assert_matches(result, expected, task.outputs[0].dtype, reduction_size(task))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_tiled_and_their_weights_packed(name: str) -> None:
    task, stage = PRODUCTS[name]
    sketches = derive(task, OPTIONS)
    tiled = [s for s in sketches if _num_levels(s, stage) >= 4 and _packs(s)]
    assert tiled, "no sketch has the four levels of tiles with the weights packed"
    check_some_candidates(task, sketches)


def _num_levels(sketch: Sketch, stage: str) -> int:
    """Into how many loops the last axis of the stage is cut, in its own loops and in those it is computed in."""
    lines = str(sketch.sample(np.random.default_rng(0), 1).trace(0).apply(sketch.task))
    last = f"i{next(T for T in sketch.task.stages if T.name == stage).ndim - 1}"
    return sum(f"{last}." in line.split(" in ")[0] for line in lines.splitlines() if " in range(" in line)


def _packs(sketch: Sketch) -> bool:
    return any(type(step).__name__ == "PackStep" for step in sketch.steps)


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows_are_computed_together(name: str) -> None:
    """Some sketch has all stages of a row inside one loop over the rows, in parallel."""
    sketches = derive(OTHERS[name], OPTIONS)
    fused = [s for s in sketches if sum(type(step).__name__ == "ComputeAtStep" for step in s.steps) >= 3]
    assert fused
    check_some_candidates(OTHERS[name], sketches)


@pytest.mark.parametrize("name", ["max_pool", "average_pool", "global_average_pool"])
def test_pools_run_along_the_channels_in_vectors(name: str) -> None:
    sketches = derive(OTHERS[name], OPTIONS)
    for sketch in sketches:
        nest = str(sketch.sample(np.random.default_rng(0), 1).trace(0).apply(sketch.task))
        assert "vectorize i3" in nest
    check_some_candidates(OTHERS[name], sketches)
