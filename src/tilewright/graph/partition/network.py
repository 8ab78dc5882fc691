"""A graph as the partition looks at it: who computes and who reads each value, and what each node is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.graph.graph import Graph, Node
from tilewright.graph.partition.forms import Form, Kind, Operands, express_node, form_of
from tilewright.graph.partition.reads import has_data_reuse, has_packable_lanes, is_affine_move
from tilewright.graph.partition.stages import merge
from tilewright.te import Read, Tensor, collect_reads, topological_order


class Network:
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
        self.alive = sorted(self.wanted)
        self.forms: dict[int, Form] = {n: form_of(graph.nodes[n], graph, self.wanted[n]) for n in self.alive}
        self.depth = self._depths()

    def _add_if_wanted(self, n: int) -> None:
        node = self.nodes[n]
        wanted = tuple(name for name in node.outputs if name and (name in self.outputs or name in self.readers))
        if not wanted:
            return
        self.wanted[n] = wanted
        for name in dict.fromkeys(filter(None, node.inputs)):
            self.readers.setdefault(name, []).insert(0, n)

    def _depths(self) -> dict[int, int]:
        """The number of nodes that compute something on the longest way to each node, itself included."""
        depth: dict[int, int] = {}
        for n in self.alive:
            sources = [self.producer[name] for name in self.nodes[n].inputs if name in self.producer]
            deepest = max((depth[source] for source in sources), default=0)
            depth[n] = deepest + (self.forms[n].kind is not Kind.VIEW)
        return depth

    def kind(self, n: int) -> Kind:
        return self.forms[n].kind

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
        (stage,) = self.forms[n].outputs
        return stage.body if isinstance(stage.body, Read) and is_affine_move(stage.body) else None

    def reads(self, n: int, names: Iterable[str]) -> list[tuple[Tensor, Read]]:
        """Where the node reads these values, each read with its stage."""
        form = self.forms[n]
        wanted = {form.operands[name] for name in names if name in form.operands}
        found: list[tuple[Tensor, Read]] = []
        for stage in form.stages:
            assert stage.body is not None
            found += [(stage, read) for read in collect_reads(stage.body) if read.tensor in wanted]
        return found

    def reads_lanes(self, nodes: Sequence[int]) -> bool:
        """Whether the products among these nodes, joined, read in vectors as well as each by itself."""
        operands = Operands(self.graph)
        for n in sorted(nodes):
            operands.results.update(express_node(self.nodes[n], operands, self.wanted[n], f"n{n}_"))
        joined = merge([operands.results[name] for name in self.wanted[max(nodes)]])
        alone = [stage for n in nodes for stage in self.forms[n].stages]
        return _has_packable_lanes(topological_order(joined)) or not _has_packable_lanes(alone)


def _has_packable_lanes(tensors: Sequence[Tensor]) -> bool:
    return all(has_packable_lanes(tensor) for tensor in tensors if has_data_reuse(tensor))
