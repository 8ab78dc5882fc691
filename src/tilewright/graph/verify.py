"""The verifier: what holds for every graph, after the import and between all passes. It also defines what a graph is.

It costs more than most passes, and so runs where `verifying` asks for it: in tests and fuzzers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

import numpy as np
from onnx import GraphProto, SparseTensorProto, TypeProto

from tilewright.errors import ModelError
from tilewright.graph.contrib import is_contrib
from tilewright.graph.graph import Graph
from tilewright.graph.protos import array_type, is_element_type, schema_of
from tilewright.graph.signatures import BySignature
from tilewright.graph.types import Constants, expressed_types
from tilewright.operators import OWN, Attribute, Node, NotCompilableError, TensorType, has_expression

# Plain Python values, so that equal nodes have equal attributes; tuples of them, so that nobody changes one in place.
_PLAIN = (int, float, str, bytes)

_Expressed: TypeAlias = "tuple[TensorType | None, ...] | str | None"

_is_verifying = ContextVar("is_verifying", default=False)


class GraphError(AssertionError):
    """A graph that breaks a rule: a fault of what made it, not of the model."""


@contextmanager
def verifying() -> Iterator[None]:
    """Have the import, the passes and the partition verify the graphs that they make."""
    token = _is_verifying.set(True)
    try:
        yield
    finally:
        _is_verifying.reset(token)


def verify(graph: Graph) -> None:
    """Raise GraphError unless every rule holds."""
    Verifier()(graph)


class Verifier:
    """Verifies the graphs of one network, in which most nodes are the same: what these express is looked at once."""

    def __init__(self) -> None:
        self._expressed: BySignature[_Expressed] = BySignature()

    def after(self, step: str, graph: Graph) -> Graph:
        """The graph that a step gives, verified if that is asked for."""
        if _is_verifying.get():
            try:
                self(graph)
            except GraphError as error:
                raise GraphError(f"after {step}: {error}") from error
        return graph

    def __call__(self, graph: Graph) -> None:
        """Raise GraphError unless every rule holds."""
        _check_names(graph)
        _check_types(graph)
        for node in graph.nodes:
            _check_node(node)
            self._check_expression(graph, node)

    def _check_expression(self, graph: Graph, node: Node) -> None:
        """The tensor expression of a node gives values of the types that the graph says."""
        if not has_expression(node):
            return
        found = self._expressed.get(
            node, graph.types, graph.constants, lambda constants: _expressed(graph, node, constants)
        )
        if isinstance(found, str):
            raise GraphError(found)
        for name, type_ in zip(node.outputs, found or (), strict=False):
            known = graph.types.get(name)
            if known is not None and type_ is not None and known != type_:
                raise GraphError(f"{node} gives {type_} by its expression, but the graph says that {name} is {known}")


def _expressed(graph: Graph, node: Node, constants: Constants) -> _Expressed:
    """What a kernel would compute; None where none can, and an error where the operands cannot fit."""
    try:
        return expressed_types(node, graph.types, constants)
    except NotCompilableError:
        return None
    except ModelError as error:
        return str(error)


def _check_names(graph: Graph) -> None:
    """Every value is defined once, and before it is read."""
    defined = {*graph.inputs, *graph.constants}
    if len(defined) < len(graph.inputs) + len(graph.constants):
        twice = [name for name in graph.inputs if name in graph.constants or graph.inputs.count(name) > 1]
        raise GraphError(f"inputs are defined twice, or constants as well: {', '.join(twice)}")
    if "" in defined:
        raise GraphError("an input or a constant has no name, but values that are left out are called so")
    for node in graph.nodes:
        for name in node.inputs:
            if name and name not in defined:
                raise GraphError(f"{node} reads {name}, which nothing before it gives")
        for name in filter(None, node.outputs):
            if name in defined:
                raise GraphError(f"{node} gives {name}, which is defined already")
            defined.add(name)
    for name in graph.outputs:
        if name not in defined:
            raise GraphError(f"the output {name} is not defined")
    _check_same("values without a type", defined - graph.types.keys())
    _check_same("types of values that are not there", graph.types.keys() - defined - {""})


def _check_same(what: str, names: set[str]) -> None:
    if names:
        raise GraphError(f"there are {what}: {', '.join(sorted(names)[:10])}")


def _check_types(graph: Graph) -> None:
    """Types are those of tensors, and constants have theirs."""
    if graph.types.get("", 0) is not None:
        raise GraphError("an operand that is left out has the type None")
    for name, type_ in graph.types.items():
        if type_ is None:
            continue
        if not is_element_type(type_.dtype):
            raise GraphError(f"{name} is a tensor of {type_.dtype!r}, which is no element type of ONNX")
        if any(type(size) is not int or size < 0 for size in type_.shape):
            raise GraphError(f"{name} has the shape {type_.shape!r}, but sizes are whole numbers from 0 on")
    for name, value in graph.constants.items():
        if graph.types[name] != array_type(value):
            raise GraphError(f"the constant {name} is {array_type(value)}, but the graph says {graph.types[name]}")


def _is_defined(node: Node) -> bool:
    """By ONNX, or by onnxruntime: a node of its stays where too little is known to write it in others."""
    return schema_of(node) is not None or is_contrib(node.domain, node.op)


def _check_node(node: Node) -> None:
    if not any(node.outputs):
        raise GraphError(f"{node} gives nothing")
    is_known = has_expression(node) if node.domain == OWN else _is_defined(node)
    if not is_known:
        raise GraphError(f"{node} is of an operator that nobody knows: domain {node.domain!r}, opset {node.opset}")
    for name, value in node.attributes.items():
        if not _is_attribute(value):
            raise GraphError(
                f"{node} has {value!r} as its attribute {name}, but attributes are numbers, texts, arrays, messages of "
                f"ONNX, or tuples of these"
            )


def _is_attribute(value: Attribute) -> bool:
    if isinstance(value, tuple):
        return all(_is_attribute(item) and not isinstance(item, tuple) for item in value)
    return type(value) in _PLAIN or isinstance(value, np.ndarray | GraphProto | SparseTensorProto | TypeProto)
