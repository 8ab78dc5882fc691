"""`partition`: a network as kernels, views and fallbacks, in an order in which they can run."""

from __future__ import annotations

from tilewright.graph.collecting import rare_collections
from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.operators import Node, TensorType
from tilewright.partition.analyzed_graph import AnalyzedGraph
from tilewright.partition.clusters import Clusters
from tilewright.partition.groups import Fallback, Group, KernelGroup, Partition, View
from tilewright.partition.kernels import Kernel, Kernels
from tilewright.partition.movements import one_reader_each
from tilewright.partition.node_expressions import Kind
from tilewright.te import Tensor


@rare_collections()
def partition(graph: Graph) -> Partition:
    """Cut a network into tasks. The graph of the result has the same inputs and outputs, and nodes as they are run."""
    return _Cutting(one_reader_each(AnalyzedGraph(graph))).run()


class _Cutting:
    """The groups, each at the position of its last node: what it reads is computed by nodes before that."""

    def __init__(self, analyzed: AnalyzedGraph) -> None:
        self._analyzed = analyzed
        self._editor = Editor(analyzed.graph)
        self._kernels = Kernels(analyzed)
        self._groups: list[tuple[int, list[Group]]] = []

    def run(self) -> Partition:
        analyzed = self._analyzed
        for cluster in Clusters(analyzed).all():
            nodes = sorted(cluster.nodes)
            self._groups.append((nodes[-1], self._kernel(nodes, (cluster.result,))))
        for n in analyzed.alive:
            kind = analyzed.kind(n)
            if kind is Kind.OTHER:
                self._groups.append((n, self._kernel([n], analyzed.wanted[n])))
            elif kind is Kind.VIEW:
                self._groups.append((n, [self._view(n)]))
            elif kind is Kind.FALLBACK:
                self._groups.append((n, [Fallback(analyzed.nodes[n], analyzed.expressions[n].reason)]))
        ordered = sorted(self._groups, key=lambda item: item[0])
        groups = tuple(group for _, groups in ordered for group in groups)
        return Partition(self._graph(groups), groups)

    def _graph(self, groups: tuple[Group, ...]) -> Graph:
        """The graph of what the groups hold."""
        old, editor = self._analyzed.graph, self._editor
        nodes = list({id(node): node for group in groups for node in _nodes(group)}.values())
        read = {name for group in groups for name in _inputs(group)} | {name for n in nodes for name in n.inputs}
        read |= set(old.outputs)
        constants = {name: array for name, array in editor.constants.items() if name in read}
        return Graph(old.name, old.inputs, old.outputs, nodes, constants, editor.types)

    def _view(self, n: int) -> View:
        node, operands = self._analyzed.nodes[n], self._analyzed.expressions[n].operands
        read = [name for name, tensor in zip(node.inputs, operands, strict=False) if tensor is not None]
        return View(node, read[0] if read else node.inputs[0], self._analyzed.result(n))

    def _kernel(self, nodes: list[int], results: tuple[str, ...]) -> list[Group]:
        """The kernel, between the views that give its values the shapes that it computes in."""
        kernel = self._kernels.of(nodes, results)
        before: list[Group] = []
        inputs = [self._input(kernel, position, before) for position in range(len(kernel.inputs))]
        after: list[Group] = []
        outputs = [self._output(kernel, position, after) for position in range(len(results))]
        members = tuple(self._analyzed.nodes[n] for n in nodes)
        return [*before, KernelGroup(members, kernel.task, tuple(inputs), tuple(outputs)), *after]

    def _input(self, kernel: Kernel, position: int, before: list[Group]) -> str:
        name, tensor = kernel.inputs[position], kernel.task.inputs[position]
        if tensor.shape == self._analyzed.shape(name):
            return name
        array = self._analyzed.graph.constants.get(name)
        if array is not None:
            return self._editor.constant(array.reshape(tensor.shape), f"{name}.finer")
        finer = self._finer(name, tensor)
        before.append(self._reshape(name, finer))
        return finer

    def _output(self, kernel: Kernel, position: int, after: list[Group]) -> str:
        name, tensor = kernel.outputs[position], kernel.task.outputs[position]
        if tensor.shape == self._analyzed.shape(name):
            return name
        finer = self._finer(name, tensor)
        after.append(self._reshape(finer, name))
        return finer

    def _finer(self, name: str, tensor: Tensor) -> str:
        return self._editor.value(TensorType(tensor.dtype, tensor.shape), f"{name}.finer")

    def _reshape(self, source: str, output: str) -> View:
        node = self._editor.reshape(source, output, like=Node("Reshape", (), (output,)))
        return View(node, source, output)


def _nodes(group: Group) -> tuple[Node, ...]:
    return group.nodes if isinstance(group, KernelGroup) else (group.node,)


def _inputs(group: Group) -> tuple[str, ...]:
    return group.inputs if isinstance(group, KernelGroup) else ()
