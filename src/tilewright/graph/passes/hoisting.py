"""Arithmetic moved before reshapes and transpositions, to where the elements are computed.

    product -> Reshape -> Add      becomes      product -> Add -> Reshape

A reshape is a view, which ends a kernel; before it, the addition is the product's epilogue. A transposition moves on to
its readers, which can often do it in passing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.graph.passes.layout import inverse
from tilewright.operators import ONNX, Node, TensorType, facts_of, transpose_order

# Arithmetic goes up over as many reshapes and transpositions in turn at most.
_MOST_MOVEMENTS = 4
# A constant is broadcast to be reshaped; a larger one stays where it is.
_MAX_CONSTANT = 1 << 22


def hoist_arithmetic(graph: Graph) -> Graph:
    """Arithmetic goes before the reshapes and transpositions that it can go before."""
    if not any(_is_movement(node) for node in graph.nodes):
        return graph
    hoisting = _Hoisting(graph)
    for node in graph.nodes:
        hoisting.add(node)
    return hoisting.editor.finish()


class _Hoisting:
    """The new graph, and the movements in it."""

    def __init__(self, graph: Graph) -> None:
        self.editor = Editor(graph)
        self._movements: dict[str, Node] = {}
        """The node that gives a value, where that is a reshape or a transposition."""
        self._depth: dict[str, int] = {}
        """How many other nodes lie on the longest way to a value."""
        outputs = frozenset(graph.outputs)
        self._num_readers = {name: len(nodes) + (name in outputs) for name, nodes in graph.consumers().items()}

    def add(self, node: Node) -> None:
        """Add a node; arithmetic as far up as it goes, with the movements after it."""
        after: list[Node] = []
        while len(after) < _MOST_MOVEMENTS and (hoisted := self._hoisted(node)) is not None:
            node, movement = hoisted
            after.append(movement)
        for part in (node, *reversed(after)):
            self._keep(self._without_reshape_before(part))

    def _keep(self, node: Node) -> None:
        self.editor.keep(node)
        is_movement = _is_movement(node)
        depth = max([self._depth.get(name, 0) for name in node.inputs], default=0) + (not is_movement)
        for name in node.outputs:
            self._depth[name] = depth
            if is_movement:
                self._movements[name] = node

    def _without_reshape_before(self, node: Node) -> Node:
        """A reshape of what a reshape gives, as one of what that reads: else arithmetic would go up one by one."""
        before = self._movements.get(node.inputs[0]) if _is_reshape(node) and node.inputs else None
        if before is None or not _is_reshape(before) or not self._is_typed(node):
            return node
        (output,) = node.outputs
        return node if 0 in self._shape(output) else self.editor.reshape(before.inputs[0], output, like=node)

    def _hoisted(self, node: Node) -> tuple[Node, Node] | None:
        """The node before the movement of its deepest operand, if that was computed, and that movement after it."""
        if not facts_of(node).elementwise or len(node.outputs) != 1 or not self._is_typed(node):
            return None
        computed = [name for name in node.inputs if name and name not in self.editor.constants]
        deepest = max(computed, key=lambda name: self._depth.get(name, 0), default="")
        movement = self._movements.get(deepest)
        (output,) = node.outputs
        if movement is None or not self._depth.get(deepest) or self._shape(deepest) != self._shape(output):
            return None
        if self.editor.types[movement.inputs[0]] is None:  # a reshape of what is known only when the network runs
            return None
        if movement.op == "Transpose" and self._num_readers.get(deepest, 0) > 1:
            return None
        inputs = [self._before(name, movement, deepest) if name else "" for name in node.inputs]
        if None in inputs:
            return None
        type_ = TensorType(self.editor.type(output).dtype, self._shape(movement.inputs[0]))
        inner = self.editor.value(type_, f"{output}.hoisted")
        moved = node.rewired([name or "" for name in inputs], (inner,))
        if movement.op == "Transpose":
            return moved, movement.rewired((inner,), (output,))
        return moved, self.editor.reshape(inner, output, like=node)

    def _is_typed(self, node: Node) -> bool:
        types = self.editor.types
        return None not in [types.get(name) for name in (*node.inputs, *node.outputs) if name]

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.editor.type(name).shape

    def _before(self, name: str, movement: Node, deepest: str) -> str | None:
        """The operand as it is before the movement of the deepest one; None where there is no such thing."""
        source = movement.inputs[0]
        if name == deepest:
            return source
        if name in self.editor.constants:
            return self._constant_before(name, movement, self._shape(deepest))
        if movement.op == "Transpose":
            other = self._movements.get(name)
            is_same = other is not None and other.op == "Transpose" and other.attributes == movement.attributes
            return other.inputs[0] if other is not None and is_same else None
        return self._view(name, deepest, self._shape(source), like=movement)

    def _view(self, name: str, deepest: str, shape: tuple[int, ...], *, like: Node) -> str | None:
        """A computed operand under the shape that the deepest one has before its reshape."""
        if self._shape(name) != self._shape(deepest):
            return None
        other = self._movements.get(name)
        if other is not None and _is_reshape(other) and self._shape(other.inputs[0]) == shape:
            return other.inputs[0]
        view = self.editor.value(TensorType(self.editor.type(name).dtype, shape), f"{name}.view")
        self._keep(self.editor.reshape(name, view, like=like))
        return view

    def _constant_before(self, name: str, movement: Node, shape: tuple[int, ...]) -> str | None:
        array = self.editor.constants[name]
        if array.size == 1:
            return name if array.ndim == 0 else self.editor.constant(array.reshape(()), f"{name}.number")
        source = self._shape(movement.inputs[0])
        if array.ndim == 1 and shape[-1:] == source[-1:] == array.shape and _is_reshape(movement):
            return name
        if int(np.prod(shape)) > _MAX_CONSTANT or array.ndim > len(shape):
            return None
        whole = np.broadcast_to(array, shape)
        if movement.op == "Transpose":
            moved = np.transpose(whole, inverse(transpose_order(movement, len(shape))))
        else:
            moved = whole.reshape(source)
        return self.editor.constant(_without_repetition(moved), f"{name}.moved")


def _is_reshape(node: Node) -> bool:
    return facts_of(node).reshapes


def _is_movement(node: Node) -> bool:
    return _is_reshape(node) or (node.op == "Transpose" and node.domain == ONNX)


def _without_repetition(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The smallest array that broadcasts to this one."""
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if array.shape[axis] > 1 and bool((array == first).all()):
            array = first
    return array
