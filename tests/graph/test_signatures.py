"""What is found for a node is found once for all that differ in names, and in constants that were not looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tilewright.graph.naming import FreshNames
from tilewright.graph.signatures import BySignature, attributes_key
from tilewright.operators import Node, TensorType

Constants = Mapping[str, np.ndarray[Any, Any]]

TYPES: dict[str, TensorType | None] = {
    "x": TensorType("float32", (2, 3)),
    "y": TensorType("float32", (2, 3)),
    "z": TensorType("float32", (3,)),
    "shape": TensorType("int64", (2,)),
    "same": TensorType("int64", (2,)),
    "other": TensorType("int64", (2,)),
    "": None,
}
CONSTANTS = {"shape": np.array([3, 2]), "same": np.array([3, 2]), "other": np.array([6, 1])}


class Finder:
    """Looks at the operands whose positions are given, and tells how often it was asked."""

    def __init__(self, *looked_at: int) -> None:
        self._looked_at = looked_at
        self._known: BySignature[object] = BySignature()
        self.num_asked = 0

    def __call__(self, node: Node, more: object = None) -> object:
        return self._known.get(node, TYPES, CONSTANTS, lambda constants: self._find(node, constants), repr(more))

    def _find(self, node: Node, constants: Constants) -> object:
        self.num_asked += 1
        return [constants[node.inputs[p]].tolist() for p in self._looked_at]


def reshape(*inputs: str, **attributes: object) -> Node:
    return Node("Reshape", inputs, (f"of {inputs[0]}",), attributes, opset=14)


@pytest.mark.parametrize(
    ("looked_at", "nodes", "num_asked"),
    [
        ((), [reshape("x", "shape"), reshape("y", "same")], 1),
        ((), [reshape("x", "shape"), reshape("x", "other")], 1),
        ((1,), [reshape("x", "shape"), reshape("y", "same")], 1),
        ((1,), [reshape("x", "shape"), reshape("x", "other"), reshape("y", "same")], 2),
        ((), [reshape("x", "shape"), reshape("z", "shape")], 2),
        ((), [reshape("x", "shape"), reshape("x", "shape", allowzero=1)], 2),
        ((), [reshape("x", "shape"), reshape("x", "")], 2),
        ((), [reshape("x", "shape", f=0.0), reshape("x", "shape", f=-0.0), reshape("x", "shape", f=0)], 3),
        ((), [reshape("x", "shape", f=object()), reshape("x", "shape", f=object())], 2),
    ],
)
def test_nodes_are_alike_in_what_was_looked_at(looked_at: tuple[int, ...], nodes: list[Node], num_asked: int) -> None:
    finder = Finder(*looked_at)
    for node in nodes:
        assert finder(node) == [CONSTANTS[node.inputs[p]].tolist() for p in looked_at]
    assert finder.num_asked == num_asked


def test_what_else_is_asked_for_is_compared() -> None:
    finder = Finder()
    finder(reshape("x", "shape"), "one")
    finder(reshape("x", "shape"), "two")
    assert finder.num_asked == 2


@pytest.mark.parametrize("values", [(1, 1.0), (1, True), ("1", b"1"), ([1], [1.0]), ([1, 2], [2, 1]), (1, [1])])
def test_attributes_that_python_takes_for_equal_are_not(values: tuple[object, object]) -> None:
    first, second = (attributes_key(Node("Op", (), (), {"a": value})) for value in values)
    assert first != second


def test_new_names_count_on_and_do_not_grow() -> None:
    taken = {"x", "x.2", "y"}
    fresh = FreshNames(taken)
    made = []
    for hint in ("x", "x.2", "x.3", "z", "y", ""):
        made.append(fresh(hint))
        taken.add(made[-1])
    assert made == ["x.3", "x.4", "x.5", "z", "y.2", ".2"]
