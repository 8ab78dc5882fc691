"""A graph as the partition looks at it: who computes and who reads each value, and what each node is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet

from tilewright.graph.graph import Graph
from tilewright.operators import Node
from tilewright.partition.node_expressions import Kind, NodeExpression, NodeExpressions, Operands, express_node
from tilewright.partition.stage_analysis import has_data_reuse, has_packable_lanes
from tilewright.partition.stages import merge
from tilewright.te import Read, Tensor, topological_order


class AnalyzedGraph:
    """Nodes by their position in the graph. Nodes whose results nobody wants are left out."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = graph.nodes
        self.outputs = frozenset(graph.outputs)
        self.producer = {name: n for n, node in enumerate(graph.nodes) for name in node.outputs if name}
        self.readers: dict[str, list[int]] = {}
        self.wanted: dict[int, tuple[str, ...]] = {}
        for n in reversed(range(len(graph.nodes))):
            self._add_if_wanted(n)
        for readers in self.readers.values():
            readers.reverse()
        self.alive = sorted(self.wanted)
        known = NodeExpressions(graph)
        self.expressions: dict[int, NodeExpression] = {n: known.of(self.nodes[n], self.wanted[n]) for n in self.alive}
        self.depth = self._depths()
        self._reads_lanes: dict[Hashable, bool] = {}

    def _add_if_wanted(self, n: int) -> None:
        node = self.nodes[n]
        wanted = tuple(name for name in node.outputs if name and (name in self.outputs or name in self.readers))
        if not wanted:
            return
        self.wanted[n] = wanted
        for name in dict.fromkeys(filter(None, node.inputs)):
            self.readers.setdefault(name, []).append(n)

    def _depths(self) -> dict[int, int]:
        """The number of nodes that compute something on the longest way to each node, itself included."""
        depth: dict[int, int] = {}
        for n in self.alive:
            sources = [self.producer[name] for name in self.nodes[n].inputs if name in self.producer]
            deepest = max((depth[source] for source in sources), default=0)
            depth[n] = deepest + (self.expressions[n].kind is not Kind.VIEW)
        return depth

    def kind(self, n: int) -> Kind:
        return self.expressions[n].kind

    def result(self, n: int) -> str:
        """The only value of a node that somebody wants."""
        (name,) = self.wanted[n]
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        known = self.graph.types[name]
        assert known is not None
        return known.shape

    def movement(self, n: int) -> Read | None:
        """What each element of the node's result is read from, if the node moves elements and does nothing else."""
        return self.expressions[n].movement

    def reads(self, n: int, names: AbstractSet[str]) -> list[tuple[Tensor, Read]]:
        """Where the node reads these values, each read with its stage."""
        expression = self.expressions[n]
        wanted = {
            tensor for tensor, name in zip(expression.operands, self.nodes[n].inputs, strict=True) if name in names
        }
        return [found for found in expression.reads if found[1].tensor in wanted]

    def wiring(self, nodes: Sequence[int]) -> tuple[Hashable, dict[str, int]]:
        """How these nodes are put together, whatever their values are called; and the number of each value in that.

        Nodes with the same wiring compute the same, from and to values with the same numbers, which count from 0.
        """
        places: dict[str, int] = {}
        parts: list[Hashable] = []
        for n in nodes:
            node = self.nodes[n]
            read = tuple([places.setdefault(name, len(places)) for name in node.inputs])
            written = tuple([places.setdefault(name, len(places)) for name in node.outputs])
            parts.append((id(self.expressions[n]), read, written))
        return tuple(parts), places

    def reads_lanes(self, nodes: Sequence[int]) -> bool:
        """Whether the products among these nodes, joined, read in vectors as well as each by itself."""
        ordered = sorted(nodes)
        wiring, _ = self.wiring(ordered)
        if wiring not in self._reads_lanes:
            self._reads_lanes[wiring] = self._joined_read_lanes(ordered)
        return self._reads_lanes[wiring]

    def _joined_read_lanes(self, nodes: Sequence[int]) -> bool:
        operands = self.operands()
        for n in nodes:
            operands.results.update(express_node(self.nodes[n], operands, self.wanted[n], f"n{n}_"))
        joined = merge([operands.results[name] for name in self.wanted[nodes[-1]]])
        alone = [stage for n in nodes for stage in self.expressions[n].stages]
        return _has_packable_lanes(topological_order(joined)) or not _has_packable_lanes(alone)

    def operands(self) -> Operands:
        """Tensors for the values of the network, none made yet."""
        return Operands(self.graph.types, self.graph.constants)


def _has_packable_lanes(tensors: Sequence[Tensor]) -> bool:
    return all(has_packable_lanes(tensor) for tensor in tensors if has_data_reuse(tensor))
