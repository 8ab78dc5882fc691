"""A graph while a pass rewrites it: the pass walks the nodes in order and keeps each, or puts others in its place."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.naming import FreshNames
from tilewright.graph.passes.dead_code import remove_dead_code
from tilewright.graph.passes.layout import transposed
from tilewright.graph.protos import array_type
from tilewright.graph.signatures import BySignature
from tilewright.operators import ONNX, Attribute, Node, TensorType


def has_any(graph: Graph, ops: AbstractSet[str]) -> bool:
    """Whether a graph has a node of one of these operators: a pass that looks for them need not begin without."""
    return not ops.isdisjoint(node.op for node in graph.nodes)


class Editor:
    """The graph that a pass makes out of another, which stays as it is.

    Nodes that nothing reads any more may stay behind: `finish` removes them.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.constants = dict(graph.constants)
        self.types = dict(graph.types)
        self.compilable: BySignature[bool] = BySignature()
        """Whether kernels can compute nodes that the pass thinks of."""
        self._instead: dict[str, str] = {}
        self._transposed: dict[tuple[str, tuple[int, ...]], str] = {}
        self._shapes: dict[tuple[int, ...], str] = {}
        self._fresh = FreshNames(self.types)

    def __iter__(self) -> Iterator[Node]:
        """The nodes of the old graph, reading the values that stand in the place of their old inputs by now."""
        replaced = self._instead.keys()
        for node in self.graph.nodes:
            yield node if replaced.isdisjoint(node.inputs) else self.current(node)

    def current(self, node: Node) -> Node:
        """A node of the old graph, reading the values that stand in the place of its old inputs."""
        if self._instead.keys().isdisjoint(node.inputs):
            return node
        return node.rewired([self.resolve(name) for name in node.inputs])

    def resolve(self, name: str) -> str:
        """The value that stands in the place of another by now."""
        while name in self._instead:
            name = self._instead[name]
        return name

    def keep(self, node: Node) -> None:
        """Add a node whose outputs have their types already."""
        self.nodes.append(node)

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        type_: TensorType | None,
        attributes: Mapping[str, Attribute] | None = None,
        *,
        like: Node,
        output: str = "",
        domain: str = ONNX,
        opset: int = 0,
    ) -> str:
        """Add a node in the place of `like`, whose name and operator set it takes; the name of its one output."""
        name = output or self.fresh_name(like.outputs[0])
        self.types[name] = type_
        self.keep(Node(op, tuple(inputs), (name,), attributes or {}, like.name, domain, opset or like.opset))
        return name

    def add_reshape(self, source: str, shape: Sequence[int], *, like: Node, output: str = "") -> str:
        """Add a Reshape to a fixed shape in the place of `like`; the name of what it gives."""
        name = output or self.fresh_name(like.outputs[0])
        self.types[name] = TensorType(self.type(source).dtype, tuple(shape))
        self.keep(self.reshape(source, name, like=like))
        return name

    def reshape(self, source: str, output: str, *, like: Node) -> Node:
        """A Reshape to the shape of another value, in the place of `like`; it is still to be added."""
        target = self.shape_constant(self.type(output).shape, f"{like.outputs[0]}.shape")
        return Node("Reshape", (source, target), (output,), {}, like.name, ONNX, max(like.opset, 13))

    def add_transpose(self, source: str, perm: Sequence[int], *, like: Node, output: str = "") -> str:
        """Add a Transpose in the place of `like`; the name of what it gives."""
        perm = tuple(perm)
        type_ = transposed(self.type(source), perm)
        return self.add("Transpose", [source], type_, {"perm": perm}, like=like, output=output)

    def value(self, type_: TensorType | None, hint: str) -> str:
        """Give a new value its type; its name."""
        name = self.fresh_name(hint)
        self.types[name] = type_
        return name

    def constant(self, value: npt.NDArray[np.generic], hint: str) -> str:
        """Add a constant; its name."""
        name = self.fresh_name(hint)
        self.constants[name] = np.asarray(value, order="C")
        self.types[name] = array_type(self.constants[name])
        return name

    def shape_constant(self, shape: tuple[int, ...], hint: str) -> str:
        """Add a shape as a constant, once for all who ask for it; its name."""
        if shape not in self._shapes:
            self._shapes[shape] = self.constant(np.array(shape, np.int64), hint)
        return self._shapes[shape]

    def transposed_constant(self, name: str, perm: tuple[int, ...]) -> str:
        """Add a constant with its axes permuted, once for all who ask for it; its name."""
        if (name, perm) not in self._transposed:
            value = np.transpose(self.constants[name], perm)
            self._transposed[name, perm] = self.constant(value, f"{name}.transposed")
        return self._transposed[name, perm]

    def replace(self, old: str, new: str) -> None:
        """From here on, `new` is read where the old graph reads `old`."""
        self._instead[old] = new

    def fresh_name(self, hint: str) -> str:
        """A name that no value has yet."""
        return self._fresh(hint)

    def type(self, name: str) -> TensorType:
        """The type of a value for which it is known."""
        known = self.types[name]
        assert known is not None
        return known

    def finish(self) -> Graph:
        """The new graph, with the outputs of the old one under their names."""
        if self._is_unchanged():
            return self.graph
        renamed: dict[str, str] = {}
        computed = {name for node in self.nodes for name in node.outputs} if self._instead else set()
        for output in dict.fromkeys(self.graph.outputs):  # one name may be given as several outputs
            value = self.resolve(output)
            if value == output:
                continue
            if value in self.constants:
                self.constants[output] = self.constants[value]
                self.types[output] = self.types[value]
            elif value in computed and value not in renamed and value not in self.outputs:
                renamed[value] = output
            else:
                like = Node("Identity", (), (output,), opset=self._newest_opset)
                self.add("Identity", [value], self.types[value], like=like, output=output)
        return remove_dead_code(self._renamed_graph(renamed))

    def _is_unchanged(self) -> bool:
        is_same = len(self.nodes) == len(self.graph.nodes) and all(map(operator.is_, self.nodes, self.graph.nodes))
        return is_same and not self._instead

    @cached_property
    def outputs(self) -> frozenset[str]:
        """The outputs of the graph, to look one up."""
        return frozenset(self.graph.outputs)

    @cached_property
    def _newest_opset(self) -> int:
        return max((node.opset for node in self.nodes), default=14)

    def _renamed_graph(self, renamed: Mapping[str, str]) -> Graph:
        if not renamed:
            return replace(self.graph, nodes=self.nodes, constants=self.constants, types=self.types)
        nodes = [_renamed(node, renamed) for node in self.nodes]
        types = dict(self.types)
        types.update((new, self.types[old]) for old, new in renamed.items())
        return replace(self.graph, nodes=nodes, constants=self.constants, types=types)


class TracingEditor(Editor):
    """An editor that knows which node computes a value, and how many read it."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._producers: dict[str, Node] = {}
        self._uses = Counter(chain(graph.outputs, *(node.inputs for node in graph.nodes)))

    def __iter__(self) -> Iterator[Node]:
        for node in super().__iter__():
            yield node
            # What the pass has put in its place has been counted for itself.
            for name in node.inputs:
                self._uses[name] -= 1

    def keep(self, node: Node) -> None:
        super().keep(node)
        for name in node.inputs:
            self._uses[name] += 1
        for name in node.outputs:
            self._producers[name] = node

    def replace(self, old: str, new: str) -> None:
        super().replace(old, new)
        self._uses[new] += self._uses[old]

    def producer(self, name: str) -> Node | None:
        """The node among those added so far that computes a value."""
        return self._producers.get(name)

    def sole_producer(self, name: str) -> Node | None:
        """The node that computes a value which only the node at hand reads: it may be changed for that reader."""
        return self._producers.get(name) if self._uses[name] == 1 else None


def _renamed(node: Node, renamed: Mapping[str, str]) -> Node:
    if renamed.keys().isdisjoint(node.inputs) and renamed.keys().isdisjoint(node.outputs):
        return node
    return replace(
        node,
        inputs=tuple(renamed.get(name, name) for name in node.inputs),
        outputs=tuple(renamed.get(name, name) for name in node.outputs),
    )
