"""Arithmetic moved before reshapes and transpositions, to where the elements are computed.

    product -> Reshape -> Add      becomes      product -> Add -> Reshape

A reshape is a view, which ends a kernel; before it, the addition is the product's epilogue. A transposition moves on to
its readers, which can often do it in passing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.operators import ONNX, Node, facts_of
from tilewright.partition.editing import Editor

# Arithmetic goes up over as many reshapes and transpositions in turn at most.
_MOST_MOVEMENTS = 4
# A constant is broadcast to be reshaped; a larger one stays where it is.
_MAX_CONSTANT = 1 << 22


def hoist_arithmetic(graph: Graph) -> Graph:
    """The graph with arithmetic moved before the reshapes and transpositions that it can go before."""
    if not any(_is_movement(node) for node in graph.nodes):
        return graph
    return _Hoisting(graph).run()


class _Hoisting(Editor):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._movements: dict[str, Node] = {}
        self._depth: dict[str, int] = {}
        outputs = set(graph.outputs)
        self._num_readers = {name: len(nodes) + (name in outputs) for name, nodes in graph.consumers().items()}

    def run(self) -> Graph:
        for node in self.old.nodes:
            self._add(node)
        return self.graph()

    def _add(self, node: Node) -> None:
        """Add the node; an elementwise one as far up as it goes, with the movements after it."""
        after: list[Node] = []
        while len(after) < _MOST_MOVEMENTS and (hoisted := self._hoisted(node)) is not None:
            node, movement = hoisted
            after.append(movement)
        for part in (node, *reversed(after)):
            new = self._without_reshape_before(part)
            self.nodes.append(new)
            is_movement = _is_movement(new)
            depth = max([self._depth.get(name, 0) for name in new.inputs], default=0) + (not is_movement)
            for name in new.outputs:
                self._depth[name] = depth
                if is_movement:
                    self._movements[name] = new

    def _without_reshape_before(self, node: Node) -> Node:
        """A reshape of what a reshape gives, as one of what that reads: else arithmetic would go up one by one."""
        before = self._movements.get(node.inputs[0]) if _is_reshape(node) and node.inputs else None
        if before is None or not _is_reshape(before) or not self._is_typed(node) or 0 in self.shape(node.outputs[0]):
            return node
        (output,) = node.outputs
        return self.reshape(before.inputs[0], output)

    def _hoisted(self, node: Node) -> tuple[Node, Node] | None:
        """The node before the movement of its deepest operand, if that was computed, and that movement after it."""
        if not facts_of(node).elementwise or len(node.outputs) != 1 or not self._is_typed(node):
            return None
        computed = [name for name in node.inputs if name and name not in self.constants]
        deepest = max(computed, key=lambda name: self._depth.get(name, 0), default="")
        movement = self._movements.get(deepest)
        (output,) = node.outputs
        if movement is None or not self._depth.get(deepest) or self.shape(deepest) != self.shape(output):
            return None
        if self.types[movement.inputs[0]] is None:  # a reshape of what is known only when the network runs
            return None
        source = self.shape(movement.inputs[0])
        if movement.op == "Transpose" and self._num_readers.get(deepest, 0) > 1:
            return None
        inputs = [self._before(name, movement, deepest) if name else "" for name in node.inputs]
        if None in inputs:
            return None
        known = self.types[output]
        assert known is not None
        inner = self.value(f"{output}.hoisted", known.dtype, source)
        moved = node.rewired([name or "" for name in inputs], (inner,))
        if movement.op == "Transpose":
            return moved, movement.rewired((inner,), (output,))
        return moved, self.reshape(inner, output)

    def _is_typed(self, node: Node) -> bool:
        types = self.types
        return None not in [types.get(name) for name in (*node.inputs, *node.outputs) if name]

    def _before(self, name: str, movement: Node, deepest: str) -> str | None:
        """The operand as it is before the movement of the deepest one; None where there is no such thing."""
        source = movement.inputs[0]
        if name == deepest:
            return source
        array = self.constants.get(name)
        if array is not None:
            return self._constant_before(name, movement, self.shape(deepest))
        if movement.op == "Transpose":
            other = self._movements.get(name)
            is_same = other is not None and other.op == "Transpose" and other.attributes == movement.attributes
            return other.inputs[0] if other is not None and is_same else None
        return self._view(name, deepest, self.shape(source))

    def _view(self, name: str, deepest: str, shape: tuple[int, ...]) -> str | None:
        """A computed operand under the shape that the deepest one has before its reshape."""
        if self.shape(name) != self.shape(deepest):
            return None
        other = self._movements.get(name)
        if other is not None and _is_reshape(other) and self.shape(other.inputs[0]) == shape:
            return other.inputs[0]
        known = self.types[name]
        assert known is not None
        view = self.value(f"{name}.view", known.dtype, shape)
        self.nodes.append(self.reshape(name, view))
        self._movements[view] = self.nodes[-1]
        self._depth[view] = self._depth.get(name, 0)
        return view

    def _constant_before(self, name: str, movement: Node, shape: tuple[int, ...]) -> str | None:
        array = self.constants[name]
        known = self.types[name]
        assert known is not None
        if array.size == 1:
            return name if array.ndim == 0 else self.constant(f"{name}.number", array.reshape(()), known.dtype)
        source = self.shape(movement.inputs[0])
        if array.ndim == 1 and shape[-1:] == source[-1:] == array.shape and _is_reshape(movement):
            return name
        if int(np.prod(shape)) > _MAX_CONSTANT or array.ndim > len(shape):
            return None
        whole = np.broadcast_to(array, shape)
        if movement.op == "Transpose":
            order = _order(movement, len(shape))
            moved = np.transpose(whole, np.argsort(order))
        else:
            moved = whole.reshape(source)
        return self.constant(f"{name}.moved", _without_repetition(moved), known.dtype)


def _is_reshape(node: Node) -> bool:
    return facts_of(node).reshapes


def _is_movement(node: Node) -> bool:
    return _is_reshape(node) or (node.op == "Transpose" and node.domain == ONNX)


def _order(transpose: Node, ndim: int) -> list[int]:
    perm: Any = transpose.attributes.get("perm")
    return list(reversed(range(ndim))) if perm is None else [int(axis) for axis in perm]


def _without_repetition(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The smallest array that broadcasts to this one."""
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if array.shape[axis] > 1 and bool((array == first).all()):
            array = first
    return array
