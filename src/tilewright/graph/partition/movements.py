"""Movements of elements, made ready to be done in passing by the kernels that read them.

A movement with several readers that can all do it in passing becomes one for each. A Concat of
many tensors becomes several of few, for which loops are cut where a tensor ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.graph.graph import ONNX, Graph, Node
from tilewright.graph.partition.editing import Editor
from tilewright.graph.partition.forms import Kind
from tilewright.graph.partition.network import Network
from tilewright.graph.partition.slices import axis_of

_MAX_JOINED = 4


def join_in_steps(graph: Graph) -> Graph:
    """The graph with every Concat joining few tensors at a time."""
    if not any(_is_wide(node) for node in graph.nodes):
        return graph
    editor = Editor(graph)
    for node in graph.nodes:
        editor.nodes += _steps(editor, node) if _is_wide(node) else [node]
    return editor.graph()


def _is_wide(node: Node) -> bool:
    return node.op == "Concat" and node.domain == ONNX and len(node.inputs) > _MAX_JOINED


def _steps(editor: Editor, node: Node) -> list[Node]:
    known = editor.types.get(node.outputs[0])
    if known is None or any(editor.types.get(name) is None for name in node.inputs):
        return [node]
    axis = axis_of(node, len(known.shape))
    steps: list[Node] = []
    parts = list(node.inputs)
    while len(parts) > _MAX_JOINED:
        # The smallest neighbours first, so that little is moved twice.
        sizes = [editor.shape(name)[axis] for name in parts]
        windows = range(len(parts) - _MAX_JOINED + 1)
        at = min(windows, key=lambda first: sum(sizes[first : first + _MAX_JOINED]))
        joined = parts[at : at + _MAX_JOINED]
        shape = (*known.shape[:axis], sum(sizes[at : at + _MAX_JOINED]), *known.shape[axis + 1 :])
        part = editor.value(f"{node.outputs[0]}.part", known.dtype, shape)
        steps.append(replace(node, inputs=tuple(joined), outputs=(part,)))
        parts[at : at + _MAX_JOINED] = [part]
    return [*steps, replace(node, inputs=tuple(parts))]


def one_reader_each(network: Network) -> Network:
    """The network with a movement for each of its readers, where all of them can do it in passing."""
    shared = [n for n in network.alive if len(network.readers.get(network.wanted[n][0], ())) > 1]
    if not any(_is_movement(network, n) for n in shared):
        return network
    return Network(_Spreading(network).run())


def _is_movement(network: Network, n: int) -> bool:
    return network.kind(n) is Kind.MAP and network.movement(n) is not None


class _Spreading(Editor):
    """Walks from the last node to the first, so that the readers of a movement are known as they will be."""

    def __init__(self, network: Network) -> None:
        super().__init__(network.graph)
        self._network = network
        # Each node as it is now, and for each value the positions of its readers.
        self._copies: dict[int, list[Node]] = {n: [network.nodes[n]] for n in network.alive}

    def run(self) -> Graph:
        for n in reversed(self._network.alive):
            if _is_movement(self._network, n) and self._is_done_in_passing([n]):
                self._spread(n)
        self.nodes = [node for n in self._network.alive for node in self._copies[n]]
        return self.graph()

    def _is_done_in_passing(self, chain: Sequence[int]) -> bool:
        """Whether all that read the last movement of a chain can do the whole chain in passing."""
        network = self._network
        result = network.result(chain[-1])
        if result in network.outputs:
            return False
        return all(self._passes(chain, reader) for reader in network.readers[result])

    def _passes(self, chain: Sequence[int], reader: int) -> bool:
        network = self._network
        if _is_movement(network, reader):
            return self._is_done_in_passing([*chain, reader])
        if network.kind(reader) is Kind.PRODUCT:
            return network.reads_lanes([*chain, reader])
        return network.kind(reader) is Kind.MAP

    def _spread(self, n: int) -> None:
        """Give each reader but the first a copy of the node."""
        result = self._network.result(n)
        readers = [(m, at) for m in self._network.readers[result] for at in range(len(self._copies[m]))]
        node = self._network.nodes[n]
        known = self.types[result]
        assert known is not None
        for m, at in readers[1:]:
            name = self.value(f"{result}.again", known.dtype, known.shape)
            self._copies[n].append(replace(node, outputs=tuple(name if o == result else o for o in node.outputs)))
            reader = self._copies[m][at]
            self._copies[m][at] = replace(reader, inputs=tuple(name if i == result else i for i in reader.inputs))
