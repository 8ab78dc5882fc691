"""`partition`: a network as kernels, views and fallbacks, in an order in which they can run."""

from __future__ import annotations

from tilewright.graph.collecting import rare_collections
from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.operators import Node, TensorType
from tilewright.partition.analyzed_graph import AnalyzedGraph
from tilewright.partition.clusters import Clusters
from tilewright.partition.kernels import Kernel, Kernels
from tilewright.partition.movements import one_reader_each
from tilewright.partition.node_expressions import Kind
from tilewright.partition.parts import Fallback, KernelPart, Part, Partition, View
from tilewright.te import Tensor


@rare_collections()
def partition(graph: Graph) -> Partition:
    """Cut a network into tasks. The graph of the result has the same inputs and outputs, and nodes as they are run."""
    return _Cutting(one_reader_each(AnalyzedGraph(graph))).run()


class _Cutting:
    """The parts, each at the position of its last node: what it reads is computed by nodes before that."""

    def __init__(self, analyzed: AnalyzedGraph) -> None:
        self._analyzed = analyzed
        self._editor = Editor(analyzed.graph)
        self._kernels = Kernels(analyzed)
        self._parts: list[tuple[int, list[Part]]] = []

    def run(self) -> Partition:
        analyzed = self._analyzed
        for cluster in Clusters(analyzed).all():
            nodes = sorted(cluster.nodes)
            self._parts.append((nodes[-1], self._kernel(nodes, (cluster.result,))))
        for n in analyzed.alive:
            kind = analyzed.kind(n)
            if kind is Kind.OTHER:
                self._parts.append((n, self._kernel([n], analyzed.wanted[n])))
            elif kind is Kind.VIEW:
                self._parts.append((n, [self._view(n)]))
            elif kind is Kind.FALLBACK:
                self._parts.append((n, [Fallback(analyzed.nodes[n], analyzed.expressions[n].reason)]))
        ordered = sorted(self._parts, key=lambda item: item[0])
        parts = tuple(part for _, parts in ordered for part in parts)
        return Partition(self._graph(parts), parts)

    def _graph(self, parts: tuple[Part, ...]) -> Graph:
        """The graph of what the parts hold."""
        old, editor = self._analyzed.graph, self._editor
        nodes = list({id(node): node for part in parts for node in _nodes(part)}.values())
        read = {name for part in parts for name in _inputs(part)} | {name for n in nodes for name in n.inputs}
        read |= set(old.outputs)
        constants = {name: array for name, array in editor.constants.items() if name in read}
        return Graph(old.name, old.inputs, old.outputs, nodes, constants, editor.types)

    def _view(self, n: int) -> View:
        node, operands = self._analyzed.nodes[n], self._analyzed.expressions[n].operands
        read = [name for name, tensor in zip(node.inputs, operands, strict=False) if tensor is not None]
        return View(node, read[0] if read else node.inputs[0], self._analyzed.result(n))

    def _kernel(self, nodes: list[int], results: tuple[str, ...]) -> list[Part]:
        """The kernel, between the views that give its values the shapes that it computes in."""
        kernel = self._kernels.of(nodes, results)
        before: list[Part] = []
        inputs = [self._input(kernel, position, before) for position in range(len(kernel.inputs))]
        after: list[Part] = []
        outputs = [self._output(kernel, position, after) for position in range(len(results))]
        members = tuple(self._analyzed.nodes[n] for n in nodes)
        return [*before, KernelPart(members, kernel.task, tuple(inputs), tuple(outputs)), *after]

    def _input(self, kernel: Kernel, position: int, before: list[Part]) -> str:
        name, tensor = kernel.inputs[position], kernel.task.inputs[position]
        if tensor.shape == self._analyzed.shape(name):
            return name
        array = self._analyzed.graph.constants.get(name)
        if array is not None:
            return self._editor.constant(array.reshape(tensor.shape), f"{name}.finer")
        finer = self._finer(name, tensor)
        before.append(self._reshape(name, finer))
        return finer

    def _output(self, kernel: Kernel, position: int, after: list[Part]) -> str:
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


def _nodes(part: Part) -> tuple[Node, ...]:
    return part.nodes if isinstance(part, KernelPart) else (part.node,)


def _inputs(part: Part) -> tuple[str, ...]:
    return part.inputs if isinstance(part, KernelPart) else ()
