"""Movements of elements, made ready to be done in passing by the kernels that read them.

A movement with several readers that can all do it in passing becomes one for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.graph.verify import Verifier
from tilewright.operators import Node
from tilewright.partition.forms import Kind
from tilewright.partition.network import Network

# Longer ones are no movement of a network: passes have made one of those that follow each other.
_LONGEST_CHAIN = 8


def one_reader_each(network: Network) -> Network:
    """The network with a movement for each of its readers, where all of them can do it in passing."""
    shared = [n for n in network.alive if len(network.readers.get(network.wanted[n][0], ())) > 1]
    if not any(_is_movement(network, n) for n in shared):
        return network
    return Network(Verifier().after("one_reader_each", _Spreading(network).run()))


def _is_movement(network: Network, n: int) -> bool:
    return network.kind(n) is Kind.MAP and network.movement(n) is not None


class _Spreading:
    """Walks from the last node to the first, so that the readers of a movement are known as they will be."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._editor = Editor(network.graph)
        # Each node as it is now, and for each value the positions of its readers.
        self._copies: dict[int, list[Node]] = {n: [network.nodes[n]] for n in network.alive}

    def run(self) -> Graph:
        for n in reversed(self._network.alive):
            if _is_movement(self._network, n) and self._is_done_in_passing([n]):
                self._spread(n)
        for n in self._network.alive:
            for node in self._copies[n]:
                self._editor.keep(node)
        return self._editor.finish()

    def _is_done_in_passing(self, chain: Sequence[int]) -> bool:
        """Whether all that read the last movement of a chain can do the whole chain in passing."""
        network = self._network
        result = network.result(chain[-1])
        if result in network.outputs or len(chain) > _LONGEST_CHAIN:
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
        for m, at in readers[1:]:
            name = self._editor.value(self._editor.type(result), f"{result}.again")
            self._copies[n].append(replace(node, outputs=tuple(name if o == result else o for o in node.outputs)))
            reader = self._copies[m][at]
            self._copies[m][at] = replace(reader, inputs=tuple(name if i == result else i for i in reader.inputs))
