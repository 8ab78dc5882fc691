"""A copy of a graph that preparations for the partition edit: nodes are replaced by others as they are walked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.naming import FreshNames
from tilewright.graph.protos import array_type
from tilewright.operators import Node, TensorType

# The version of the nodes that are made here: shapes and axes are operands since 13.
OPSET = 17


class Editor:
    """The nodes kept so far, and the values and constants of the new graph."""

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.nodes: list[Node] = []
        self.constants = dict(graph.constants)
        self.types = dict(graph.types)
        self._fresh = FreshNames(self.types)
        self._shapes: dict[tuple[int, ...], str] = {}
        """The constants that reshapes read."""

    def graph(self) -> Graph:
        """The graph as edited; constants that nobody reads any more are left out."""
        read = {name for node in self.nodes for name in node.inputs} | set(self.old.outputs)
        constants = {name: array for name, array in self.constants.items() if name in read}
        return Graph(self.old.name, self.old.inputs, self.old.outputs, self.nodes, constants, self.types)

    def shape(self, name: str) -> tuple[int, ...]:
        known = self.types[name]
        assert known is not None
        return known.shape

    def value(self, base: str, dtype: str, shape: Sequence[int]) -> str:
        """A new name for a value of this type."""
        name = self._fresh(base)
        self.types[name] = TensorType(dtype, tuple(shape))
        return name

    def constant(self, base: str, array: npt.NDArray[np.generic], dtype: str | None = None) -> str:
        """A new constant; `dtype` is its element type where NumPy has another name for it."""
        name = self.value(base, dtype or array_type(array).dtype, array.shape)
        self.constants[name] = np.asarray(array, order="C")
        return name

    def reshape(self, source: str, target: str) -> Node:
        """The node that gives `source` the shape of `target`."""
        shape = self.shape(target)
        if shape not in self._shapes:
            self._shapes[shape] = self.constant(f"{target}.shape", np.asarray(shape, np.int64))
        return Node("Reshape", (source, self._shapes[shape]), (target,), opset=OPSET)
