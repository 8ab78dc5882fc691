"""Runs a partition group by group with naive kernels: what a compiled network has to compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.graph.evaluation.fallback import FallbackOperator
from tilewright.partition.groups import Fallback, Group, KernelGroup, Partition, View
from tilewright.runtime import Kernel
from tilewright.runtime.build import build


def run_partition(partition: Partition, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every output of the network. A group may read only what is there, and write only what is not."""
    graph = partition.graph
    values: dict[str, Any] = {**graph.constants, **inputs}
    kernels: dict[str, Kernel] = {}
    for group in partition.groups:
        for name, value in _run(group, partition, values, kernels).items():
            assert name not in values, f"{name} is computed twice"
            values[name] = value
    return {name: values[name] for name in graph.outputs}


def _run(group: Group, partition: Partition, values: dict[str, Any], kernels: dict[str, Kernel]) -> dict[str, Any]:
    types = partition.graph.types
    if isinstance(group, View):
        known = types[group.output]
        assert known is not None
        return {group.output: np.asarray(values[group.input]).reshape(known.shape)}
    if isinstance(group, Fallback):
        arrays = [values[name] if name else None for name in group.node.inputs]
        outputs = FallbackOperator(group.node)(arrays)
        return {name: value for name, value in zip(group.node.outputs, outputs, strict=True) if name}
    return dict(zip(group.outputs, _call(group, values, kernels), strict=True))


def _call(group: KernelGroup, values: dict[str, Any], kernels: dict[str, Kernel]) -> tuple[Any, ...]:
    task = group.task
    if task.hash not in kernels:
        kernels[task.hash] = build(task, threads=1)
    arrays = [np.asarray(values[name], order="C") for name in group.inputs]
    outputs = kernels[task.hash](*arrays)
    return (outputs,) if len(task.outputs) == 1 else tuple(outputs)
