"""Moves transposes down through the network until they cancel, or an operator needs its axes in order.

A Transpose is not put into the new graph where it stands in the old one. What it gives is known as a view: another
value, and how its axes are permuted. Nodes that do not care for the order of axes then work on that other value, and
give a view again; `transpose_rules` has one rule for each kind. For any other node, and for the outputs of the
network, a view is made into a value, by a Transpose right there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, has_any
from tilewright.graph.passes.layout import Perm, compose, extended, identity, inverse, is_view, permuted, transposed
from tilewright.operators import ONNX, Attribute, Node, TensorType, transpose_order


def move_transposes(graph: Graph) -> Graph:
    from tilewright.graph.passes.transpose_rules import rule_of

    if not has_any(graph, {"Transpose"}):
        return graph
    mover = Mover(graph)
    for node in graph.nodes:
        if mover.takes_transpose(node):
            continue
        rule = rule_of(node)
        if rule is None or not mover.can_move(node) or not rule(mover, node):
            mover.keep(node)
    return mover.finish()


@dataclass(frozen=True, slots=True)
class View:
    """A value as another one with its axes permuted: Transpose(source, perm)."""

    source: str
    perm: Perm


class Mover:
    """The new graph, and the views that stand for values of the old one."""

    def __init__(self, graph: Graph) -> None:
        self.editor = Editor(graph)
        self.views: dict[str, View] = {}
        self._made: set[str] = set()
        """Views that have been made into values too."""
        self._arranged: dict[tuple[str, Perm], str] = {}

    def can_move(self, node: Node) -> bool:
        """Whether a node reads a view, and all types are known."""
        values = [name for name in (*node.inputs, *node.outputs) if name]
        return any(name in self.views for name in values) and None not in map(self.editor.types.get, values)

    def view(self, name: str) -> View:
        """What a value is a permutation of; of itself, if nothing else."""
        return self.views.get(name) or View(self.editor.resolve(name), identity(self.rank(name)))

    def rank(self, name: str) -> int:
        return len(self.type(name).shape)

    def type(self, name: str) -> TensorType:
        return self.editor.type(name)

    def takes_transpose(self, node: Node) -> bool:
        """Remember what a Transpose of a value with a known type gives, and leave it out."""
        if node.op != "Transpose" or node.domain != ONNX:
            return False
        source = self.editor.types[node.inputs[0]]
        if source is None or 0 in source.shape:
            return False
        known = self.view(node.inputs[0])
        perm = compose(known.perm, transpose_order(node, len(source.shape)))
        self.set_view(node.outputs[0], View(known.source, perm))
        return True

    def set_view(self, name: str, view: View) -> None:
        if view.perm == identity(len(view.perm)):
            self.editor.replace(name, view.source)
        else:
            self.views[name] = view

    def keep(self, node: Node) -> None:
        """Put a node into the new graph as it is, with its inputs as values."""
        for name in node.inputs:
            self.make(name, node)
        self.editor.keep(self.editor.current(node))

    def make(self, name: str, reader: Node | None = None) -> None:
        """Have the value itself in the new graph, and not only a view of another."""
        view = self.views.get(name)
        if view is None or name in self._made:
            return
        self._made.add(name)
        like = reader or Node("Transpose", (), (name,), opset=13)
        self._permute(view.source, view.perm, like, output=name)

    def _permute(self, source: str, perm: Perm, like: Node, output: str = "") -> str:
        shape = self.type(source).shape
        if is_view(shape, perm):
            return self.editor.add_reshape(source, permuted(shape, perm), like=like, output=output)
        return self.editor.add_transpose(source, perm, like=like, output=output)

    def add(
        self, node: Node, inputs: Sequence[str], perm: Perm, attributes: dict[str, Attribute], domain: str = ONNX
    ) -> None:
        """Add a node that gives the outputs of `node` with their axes permuted, so that they are views with `perm`.

        Those of another rank, as a scale that it gives as well, stay as they are.
        """
        outputs = []
        for name in node.outputs:
            if name and self.rank(name) != len(perm):
                outputs.append(name)
                continue
            outputs.append(self.editor.fresh_name(f"{name}.moved") if name else "")
            if name:
                known = self.type(name)
                self.editor.types[outputs[-1]] = transposed(known, inverse(perm))
                self.set_view(name, View(outputs[-1], perm))
        self.editor.keep(Node(node.op, tuple(inputs), tuple(outputs), attributes, node.name, domain, node.opset))

    def best_perm(self, names: Sequence[str], rank: int) -> Perm:
        """The order of axes for operands of one node that moves the fewest bytes; of two, the one that is a view."""
        costs: dict[Perm, float] = {}
        for candidate in dict.fromkeys(extended(self.view(name).perm, rank) for name in names):
            costs[candidate] = sum(self._cost(name, candidate) for name in names)
        lowest = min(costs.values())
        return max((perm for perm, cost in costs.items() if cost == lowest), key=lambda perm: perm != identity(rank))

    def _cost(self, name: str, perm: Perm) -> float:
        shape = self.type(name).shape
        available = {extended(self.view(name).perm, len(perm))}
        if name not in self.views or name in self._made:
            available.add(identity(len(perm)))
        is_free = perm in available or name in self.editor.constants or math.prod(shape) == 1
        return 0 if is_free else math.prod(shape)

    def arranged(self, name: str, perm: Perm, node: Node) -> str:
        """The value of which `name`, broadcast to the rank of `perm`, is a view with `perm`."""
        if math.prod(self.type(name).shape) == 1 and self.rank(name) <= 1:
            self.make(name, node)
            return self.editor.resolve(name)
        known = self.view(name)
        if extended(known.perm, len(perm)) == perm:
            return known.source
        if (name, perm) not in self._arranged:
            self._arranged[name, perm] = self._arrange(name, perm, node)
        return self._arranged[name, perm]

    def _arrange(self, name: str, perm: Perm, node: Node) -> str:
        back = inverse(perm)
        known = self.view(name)
        full = (1,) * (len(perm) - len(known.perm)) + self.type(known.source).shape
        if name in self.editor.constants:
            value = self.editor.constants[name].reshape(full)
            return self.editor.constant(np.transpose(value, back), f"{name}.moved")
        source = known.source
        if len(full) > len(known.perm):
            source = self.editor.add_reshape(source, full, like=node)
        return self._permute(source, compose(extended(known.perm, len(perm)), back), node)

    def finish(self) -> Graph:
        for name in self.editor.graph.outputs:
            self.make(name)
        return self.editor.finish()
