"""The networks of the zoo cut into kernels: how many they take, and that the parts can run one after the other."""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np
import pytest

from tilewright import zoo
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import LAST_PASSES, PASSES, optimize
from tilewright.network import partition_network
from tilewright.partition import Fallback, KernelPart, Partition, View, partition
from tilewright.testing.partitions import run_partition
from tilewright.testing.random_graphs.networks import random_network

NUM_RANDOM = 40

# Kernels and tasks: a convolution or product each, the pools, and what could not be done in passing.
SIZES = {
    "resnet18": (20 + 2 + 1, 18),
    "resnet50": (53 + 2 + 1, 27),
    "mobilenet_v2": (52 + 1 + 1, 32),
    "resnet3d_18": (20 + 1 + 1, 17),
    "dcgan": (5 + 1, 6),
    "bert_tiny": (2 * 9 + 3, 9),
}

_partition = functools.cache(lambda name: partition_network(f"zoo:{name}"))


def written(found: Partition) -> list[str]:
    names: list[str] = []
    for part in found.parts:
        if isinstance(part, KernelPart):
            names += part.outputs
        else:
            names += [part.output] if isinstance(part, View) else [name for name in part.node.outputs if name]
    return names


@pytest.mark.parametrize("name", SIZES)
def test_networks_take_few_kernels_and_no_fallback(name: str) -> None:
    found = _partition(name)
    assert (len(found.kernels), len(found.tasks)) == SIZES[name]
    assert sum(item.weight for item in found.tasks) == len(found.kernels)
    assert not any(isinstance(part, Fallback) for part in found.parts)


@pytest.mark.parametrize("name", SIZES)
def test_nothing_is_moved_but_at_the_border(name: str) -> None:
    found = _partition(name)
    moving = [part for part in found.kernels if len(part.nodes) == 1 and part.nodes[0].op == "Transpose"]
    border = {*found.graph.inputs, *found.graph.outputs}
    assert all(border.intersection((*part.inputs, *part.outputs)) for part in moving)


@pytest.mark.parametrize("name", SIZES)
def test_groups_run_in_order_and_write_each_value_once(name: str) -> None:
    found = _partition(name)
    known = {*found.graph.inputs, *found.graph.constants}
    for part in found.parts:
        inputs = part.inputs if isinstance(part, KernelPart) else tuple(filter(None, part.node.inputs))
        assert known.issuperset(inputs)
        known |= set(written(Partition(found.graph, (part,))))
    assert known.issuperset(found.graph.outputs)
    assert set(Counter(written(found)).values()) == {1}


@pytest.mark.parametrize("name", SIZES)
def test_tasks_have_the_types_of_the_graph(name: str) -> None:
    found = _partition(name)
    for part in found.kernels:
        for value, tensor in zip((*part.inputs, *part.outputs), (*part.task.inputs, *part.task.outputs), strict=True):
            known = found.graph.types[value]
            assert known is not None
            assert (known.dtype, known.shape) == (tensor.dtype, tensor.shape)
            assert tensor.is_constant == (value in found.graph.constants)


@pytest.mark.parametrize("name", ["bert_tiny", "dcgan"])
def test_networks_compute_what_onnxruntime_computes(name: str) -> None:
    import onnxruntime

    model = zoo.build(name)
    inputs = zoo.inputs(model)
    computed = run_partition(_partition(name), inputs)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for output, expected in zip(session.get_outputs(), session.run(None, inputs), strict=True):
        np.testing.assert_allclose(computed[output.name], expected, rtol=1e-3, atol=1e-4, err_msg=output.name)


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("seed", range(NUM_RANDOM))
def test_random_networks_compute_the_same(seed: int, optimized: bool) -> None:
    draft = random_network(1000 + seed)
    graph = load_model(draft.model())
    computed = run_partition(partition(optimize(graph, PASSES if optimized else LAST_PASSES)), draft.inputs)
    for name in graph.outputs:
        expected = draft.values[name]
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(computed[name], expected, rtol=2e-4, atol=2e-5 * scale, err_msg=name)
