"""The task of a cluster: its nodes as one tensor expression, from placeholders for what it reads to its result."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tilewright.partition.forms import express_node
from tilewright.partition.network import Network
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

    def __init__(self, network: Network) -> None:
        self._network = network
        self._known: dict[Hashable, tuple[Task, tuple[int, ...]]] = {}

    def of(self, nodes: Sequence[int], results: Sequence[str]) -> Kernel:
        """The kernel that computes `results` by these nodes, which are in the order of the graph."""
        wiring, places = self._network.wiring(nodes)
        key = (wiring, tuple(places[name] for name in results))
        if key not in self._known:
            kernel = _kernel(self._network, nodes, results)
            self._known[key] = kernel.task, tuple(places[name] for name in kernel.inputs)
            return kernel
        task, inputs = self._known[key]
        names = list(places)
        return Kernel(task, tuple(names[place] for place in inputs), tuple(results))


def _kernel(network: Network, nodes: Sequence[int], results: Sequence[str]) -> Kernel:
    operands = network.operands()
    for n in nodes:
        operands.results.update(express_node(network.nodes[n], operands, network.wanted[n], f"n{n}_"))
    names = {tensor: name for name, tensor in operands.placeholders.items()}
    outputs = inlined([operands.results[name] for name in results])
    if len(outputs) == 1:
        output, finer = split_axes(outputs[0])
        outputs = (output,)
        names |= {new: names[old] for old, new in finer.items()}
    placeholders, outputs = with_structural_names(with_fewest_stages(outputs))
    task = Task(tuple(placeholders.values()), outputs, _name(network, nodes))
    return Kernel(task, tuple(names[tensor] for tensor in placeholders), tuple(results))


def _name(network: Network, nodes: Sequence[int]) -> str:
    """The operators in the order of the graph, such as conv_add_relu; of repeated ones the first."""
    return "_".join(dict.fromkeys(network.nodes[n].op.lower() for n in nodes))
