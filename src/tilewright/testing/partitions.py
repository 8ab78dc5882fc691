"""Runs a partition part by part with naive kernels: what a compiled network has to compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.graph.evaluation.fallback import FallbackOperator
from tilewright.operators import facts_of
from tilewright.partition import Fallback, KernelPart, Part, Partition, View
from tilewright.runtime import Kernel
from tilewright.runtime.build import build


def run_partition(partition: Partition, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every output of the network. A part may read only what is there, and write only what is not."""
    graph = partition.graph
    values: dict[str, Any] = {**graph.constants, **inputs}
    kernels: dict[str, Kernel] = {}
    for part in partition.parts:
        for name, value in _run(part, partition, values, kernels).items():
            assert name not in values, f"{name} is computed twice"
            values[name] = value
    return {name: values[name] for name in graph.outputs}


def _run(part: Part, partition: Partition, values: dict[str, Any], kernels: dict[str, Kernel]) -> dict[str, Any]:
    types = partition.graph.types
    if isinstance(part, View):
        known = types[part.output]
        assert known is not None
        source = np.asarray(values[part.input])
        is_reinterpreted = facts_of(part.node).reinterprets
        return {part.output: (source.view(known.dtype) if is_reinterpreted else source).reshape(known.shape)}
    if isinstance(part, Fallback):
        arrays = [values[name] if name else None for name in part.node.inputs]
        outputs = FallbackOperator(part.node)(arrays)
        return {name: value for name, value in zip(part.node.outputs, outputs, strict=True) if name}
    return dict(zip(part.outputs, _call(part, values, kernels), strict=True))


def _call(part: KernelPart, values: dict[str, Any], kernels: dict[str, Kernel]) -> tuple[Any, ...]:
    task = part.task
    if task.hash not in kernels:
        kernels[task.hash] = build(task, threads=1)
    arrays = [np.asarray(values[name], order="C") for name in part.inputs]
    outputs = kernels[task.hash](*arrays)
    return (outputs,) if len(task.outputs) == 1 else tuple(outputs)
