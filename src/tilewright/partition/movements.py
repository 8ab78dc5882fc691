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
from tilewright.partition.analyzed_graph import AnalyzedGraph
from tilewright.partition.node_expressions import Kind

# Longer ones are no movement of a network: passes have made one of those that follow each other.
_LONGEST_CHAIN = 8


def one_reader_each(analyzed: AnalyzedGraph) -> AnalyzedGraph:
    """The graph with a movement for each of its readers, where all of them can do it in passing."""
    shared = [n for n in analyzed.alive if len(analyzed.readers.get(analyzed.wanted[n][0], ())) > 1]
    if not any(_is_movement(analyzed, n) for n in shared):
        return analyzed
    return AnalyzedGraph(Verifier().after("one_reader_each", _Spreading(analyzed).run()))


def _is_movement(analyzed: AnalyzedGraph, n: int) -> bool:
    return analyzed.kind(n) is Kind.MAP and analyzed.movement(n) is not None


class _Spreading:
    """Walks from the last node to the first, so that the readers of a movement are known as they will be."""

    def __init__(self, analyzed: AnalyzedGraph) -> None:
        self._analyzed = analyzed
        self._editor = Editor(analyzed.graph)
        # Each node as it is now, with its copies.
        self._copies: dict[int, list[Node]] = {n: [analyzed.nodes[n]] for n in analyzed.alive}

    def run(self) -> Graph:
        for n in reversed(self._analyzed.alive):
            if _is_movement(self._analyzed, n) and self._is_done_in_passing([n]):
                self._spread(n)
        for n in self._analyzed.alive:
            for node in self._copies[n]:
                self._editor.keep(node)
        return self._editor.finish()

    def _is_done_in_passing(self, chain: Sequence[int]) -> bool:
        """Whether all that read the last movement of a chain can do the whole chain in passing."""
        analyzed = self._analyzed
        result = analyzed.result(chain[-1])
        if result in analyzed.outputs or len(chain) > _LONGEST_CHAIN:
            return False
        return all(self._passes(chain, reader) for reader in analyzed.readers[result])

    def _passes(self, chain: Sequence[int], reader: int) -> bool:
        analyzed = self._analyzed
        if _is_movement(analyzed, reader):
            return self._is_done_in_passing([*chain, reader])
        if analyzed.kind(reader) is Kind.PRODUCT:
            return analyzed.reads_lanes([*chain, reader])
        return analyzed.kind(reader) is Kind.MAP

    def _spread(self, n: int) -> None:
        """Give each reader but the first a copy of the node."""
        result = self._analyzed.result(n)
        readers = [(m, at) for m in self._analyzed.readers[result] for at in range(len(self._copies[m]))]
        node = self._analyzed.nodes[n]
        for m, at in readers[1:]:
            name = self._editor.value(self._editor.type(result), f"{result}.again")
            self._copies[n].append(replace(node, outputs=tuple(name if o == result else o for o in node.outputs)))
            reader = self._copies[m][at]
            self._copies[m][at] = replace(reader, inputs=tuple(name if i == result else i for i in reader.inputs))
