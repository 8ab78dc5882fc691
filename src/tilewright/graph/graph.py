"""The graph of a network: values, the nodes that compute them, and the constants among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.operators import Node, TensorType


@dataclass(slots=True)
class Graph:
    """A network. `nodes` are in an order in which they can run.

    `types` holds the type of every value, inputs and constants included; None where it is known only when the network
    runs (a NonZero, say, or a sequence), and for "", which stands for an operand that is left out.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: list[Node]
    constants: dict[str, npt.NDArray[np.generic]]
    types: dict[str, TensorType | None]

    def __post_init__(self) -> None:
        self.types.setdefault("", None)

    def producers(self) -> dict[str, Node]:
        """The node that computes each value."""
        return {output: node for node in self.nodes for output in node.outputs if output}

    def consumers(self) -> dict[str, list[Node]]:
        """The nodes that read each value, each node once; outputs of the network are not counted."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    found.setdefault(name, []).append(node)
        return found
