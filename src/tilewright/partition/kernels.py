"""The task of a cluster: its nodes as one tensor expression, from placeholders for what it reads to its result."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tilewright.partition.analyzed_graph import AnalyzedGraph
from tilewright.partition.node_expressions import express_node
from tilewright.partition.split_axes import split_axes
from tilewright.partition.stages import inlined, with_fewest_stages, with_structural_names
from tilewright.te import Task


@dataclass(frozen=True, slots=True)
class Kernel:
    """A task, and the values of the graph that its inputs and outputs hold; their shapes there may be coarser."""

    task: Task
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Kernels:
    """The kernels of a network. Those of clusters that differ in names alone have one task."""

    def __init__(self, analyzed: AnalyzedGraph) -> None:
        self._analyzed = analyzed
        self._known: dict[Hashable, tuple[Task, tuple[int, ...]]] = {}

    def of(self, nodes: Sequence[int], results: Sequence[str]) -> Kernel:
        """The kernel that computes `results` by these nodes, which are in the order of the graph."""
        wiring, places = self._analyzed.wiring(nodes)
        key = (wiring, tuple(places[name] for name in results))
        if key not in self._known:
            kernel = _kernel(self._analyzed, nodes, results)
            self._known[key] = kernel.task, tuple(places[name] for name in kernel.inputs)
            return kernel
        task, inputs = self._known[key]
        names = list(places)
        return Kernel(task, tuple(names[place] for place in inputs), tuple(results))


def _kernel(analyzed: AnalyzedGraph, nodes: Sequence[int], results: Sequence[str]) -> Kernel:
    operands = analyzed.operands()
    for n in nodes:
        operands.results.update(express_node(analyzed.nodes[n], operands, analyzed.wanted[n], f"n{n}_"))
    names = {tensor: name for name, tensor in operands.placeholders.items()}
    outputs = inlined([operands.results[name] for name in results])
    if len(outputs) == 1:
        output, finer = split_axes(outputs[0])
        outputs = (output,)
        names |= {new: names[old] for old, new in finer.items()}
    placeholders, outputs = with_structural_names(with_fewest_stages(outputs))
    task = Task(tuple(placeholders.values()), outputs, _name(analyzed, nodes))
    return Kernel(task, tuple(names[tensor] for tensor in placeholders), tuple(results))


def _name(analyzed: AnalyzedGraph, nodes: Sequence[int]) -> str:
    """The operators in the order of the graph, such as conv_add_relu; of repeated ones the first."""
    return "_".join(dict.fromkeys(analyzed.nodes[n].op.lower() for n in nodes))
