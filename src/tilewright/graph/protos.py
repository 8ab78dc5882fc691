"""Between the messages of ONNX and the nodes and types of a graph, in both directions.

A node with subgraphs (If, Loop, Scan) reads values of the graph around it without naming them as inputs. Here it does:
they follow its own inputs, and the attribute CAPTURES holds the names by which its subgraphs know them. So whoever
orders, renames or removes values sees every one that a node reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto
from onnx.defs import OpSchema, SchemaError, get_schema

from tilewright.errors import ModelError
from tilewright.graph.signatures import Attributes
from tilewright.graph.tensor_protos import tensor_array
from tilewright.operators import ONNX, Attribute, Node, TensorType

CAPTURES = "tilewright.captures"
CONTRIB = "com.microsoft"
CONTRIB_BLOCKED = "com.microsoft.nchwc"
"""The domains of the operators that onnxruntime has beside those of ONNX."""

_GRAPH, _GRAPHS = AttributeProto.GRAPH, AttributeProto.GRAPHS

Dimension: TypeAlias = int | str | None

_LONG_NAME = "ai.onnx"
# What tools write where a dimension has no name: two of them need not be equal.
_NO_NAMES = frozenset(("", "?", "-1", "None"))


def normal_domain(domain: str) -> str:
    """The domain of ONNX's operators has two names."""
    return ONNX if domain == _LONG_NAME else domain


def schema_of(node: Node) -> OpSchema | None:
    """What ONNX says of this operator in the version that the node asks for."""
    return find_schema(node.op, node.opset, node.domain)


@lru_cache(maxsize=1 << 12)
def find_schema(op: str, opset: int, domain: str) -> OpSchema | None:
    """What ONNX says of an operator in a version of its domain, if it has it."""
    try:
        return get_schema(op, opset, domain)
    except (SchemaError, TypeError):  # a version that is no 32-bit number has no operators either
        return None


@cache
def latest_opsets() -> dict[str, int]:
    """The newest version of each domain; subgraphs may hold operators of others than their node's."""
    found = {CONTRIB: 1, CONTRIB_BLOCKED: 1}
    for schema in onnx.defs.get_all_schemas():
        found[schema.domain] = max(schema.since_version, found.get(schema.domain, 1))
    return found


def dtype_name(elem_type: int) -> str:
    """The name of an element type of ONNX, such as "float32", "bfloat16" or "string"."""
    if elem_type == TensorProto.STRING:
        return "string"
    return str(onnx.helper.tensor_dtype_to_np_dtype(elem_type).name)


_ELEM_TYPES: dict[str, int] = {
    dtype_name(number): number for number in TensorProto.DataType.values() if number != TensorProto.UNDEFINED
}


def elem_type(dtype: str) -> int:
    """The number of an element type in ONNX: the inverse of `dtype_name`."""
    return _ELEM_TYPES[dtype]


def is_element_type(dtype: str) -> bool:
    """Whether this is the name of an element type of ONNX."""
    return dtype in _ELEM_TYPES


def array_type(array: np.ndarray) -> TensorType:
    """The type of an array; NumPy holds strings as objects, or as strings of a fixed length."""
    return TensorType(_array_dtype_name(array.dtype), array.shape)


@lru_cache(maxsize=1 << 8)
def _array_dtype_name(dtype: np.dtype[Any]) -> str:
    return "string" if dtype.kind in "OUS" else dtype.name


def static_type(proto: TypeProto | None) -> TensorType | None:
    """A tensor's type with every dimension known; None for anything less."""
    if proto is None or not proto.HasField("tensor_type"):
        return None
    tensor = proto.tensor_type
    if tensor.elem_type == TensorProto.UNDEFINED or not tensor.HasField("shape"):
        return None
    shape = tuple(dim for dim in dimensions(tensor) if isinstance(dim, int))
    return TensorType(dtype_name(tensor.elem_type), shape) if len(shape) == len(tensor.shape.dim) else None


def dimensions(tensor: TypeProto.Tensor) -> tuple[Dimension, ...]:
    """The dimensions of a tensor that has a shape: a size, or the name of an open one, or None where it has no name.

    Exporters write open dimensions as a name, as nothing, and as a size or a name of -1.
    """
    return tuple(_dimension(dim) for dim in tensor.shape.dim)


def shape_text(shape: Sequence[Dimension]) -> str:
    """A shape as messages write it.

    >>> shape_text(("batch", 3, None))
    '[batch, 3, ?]'
    """
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _dimension(dim: TensorShapeProto.Dimension) -> Dimension:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return None if dim.dim_param in _NO_NAMES else str(dim.dim_param)


def type_proto(tensor_type: TensorType) -> TypeProto:
    """The message that says a tensor's type."""
    return onnx.helper.make_tensor_type_proto(elem_type(tensor_type.dtype), tensor_type.shape)


def node_from_proto(proto: NodeProto, opset: int) -> Node:
    """A node with the values that its subgraphs capture counted among its inputs."""
    attributes = Attributes({a.name: _attribute_value(a) for a in proto.attribute if a.name != CAPTURES})
    inputs = tuple(proto.input)
    captures = captured_names(proto)
    if captures:
        inputs = (*inputs, *captures)
        attributes[CAPTURES] = captures
    domain = normal_domain(proto.domain)
    return Node(proto.op_type, inputs, tuple(proto.output), attributes, proto.name, domain, opset)


def node_to_proto(node: Node) -> NodeProto:
    """The message of a node; what its subgraphs capture is no longer among its inputs."""
    schema = schema_of(node)
    own_inputs = node.inputs[: len(node.inputs) - len(captures_of(node))]
    proto = NodeProto(op_type=node.op, input=own_inputs, output=node.outputs, name=node.name, domain=node.domain)
    for name, value in node.attributes.items():
        if name != CAPTURES:
            proto.attribute.append(_attribute_proto(name, value, schema))
    return proto


def captures_of(node: Node) -> tuple[str, ...]:
    """The names by which the node's subgraphs know the last of its inputs."""
    return cast("tuple[str, ...]", node.attributes.get(CAPTURES, ()))


def has_subgraphs(node: Node) -> bool:
    """Whether a node decides by a condition or a count what it runs: an If, say, or a Loop."""
    return any(isinstance(value, GraphProto) for value in node.attributes.values())


def subgraphs(proto: NodeProto) -> Sequence[GraphProto]:
    """The graphs among a node's attributes."""
    found: list[GraphProto] = []
    for attribute in proto.attribute:
        kind = attribute.type
        if kind == _GRAPH:
            found.append(attribute.g)
        elif kind == _GRAPHS:
            found.extend(attribute.graphs)
    return found


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """These nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from all_nodes(graph.node)


def has_only_texts(graph: GraphProto) -> bool:
    """Whether all names in a graph and its subgraphs are text; a message gives those that are not as bytes."""
    names: list[object] = [graph.name]
    names += [value.name for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info)]
    names += [sparse.values.name for sparse in graph.sparse_initializer]
    names += [dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim]
    for node in graph.node:
        names += (node.op_type, node.domain, node.name, *node.input, *node.output)
        if node.attribute:
            names += [attribute.name for attribute in node.attribute]
            if not all(map(has_only_texts, subgraphs(node))):
                return False
    return set(map(type, names)) == {str}


def tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """The constants in a graph, its nodes and its subgraphs."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from tensors_of_nodes(graph.node)


def tensors_of_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    """The constants in nodes and their subgraphs."""
    for node in nodes:
        for attribute in node.attribute:
            yield from (
                attribute.t,
                *attribute.tensors,
                attribute.sparse_tensor.values,
                attribute.sparse_tensor.indices,
            )
        for inner in subgraphs(node):
            yield from tensors(inner)


def captured_names(proto: NodeProto) -> tuple[str, ...]:
    """What the subgraphs of a node read from the graphs around them, each once."""
    if not proto.attribute:
        return ()
    found: dict[str, None] = {}
    for graph in subgraphs(proto):
        found.update(dict.fromkeys(_free_names(graph)))
    return tuple(found)


def defined_names(graph: GraphProto) -> set[str]:
    """The values that a graph itself defines, those of its own subgraphs not counted."""
    known = {value.name for value in graph.input}
    known.update(tensor.name for tensor in graph.initializer)
    known.update(sparse.values.name for sparse in graph.sparse_initializer)
    known.update(name for node in graph.node for name in node.output if name)
    return known


def _free_names(graph: GraphProto) -> Iterator[str]:
    known = defined_names(graph)
    for node in graph.node:
        for name in (*node.input, *captured_names(node)):
            if name and name not in known:
                yield name
    for output in graph.output:
        if output.name not in known:
            yield output.name


def _attribute_value(proto: AttributeProto) -> Attribute:
    try:
        value = _converted_value(proto)
    except (ValueError, TypeError) as error:
        raise ModelError(f"attribute {proto.name} cannot be read: {error}; export the model again") from error
    if value is None:
        raise ModelError(f"attribute {proto.name} has no value; export the model again")
    return value


def _converted_value(proto: AttributeProto) -> Attribute:
    value: Any = onnx.helper.get_attribute_value(proto)
    match proto.type:
        case AttributeProto.STRING:
            return _text(value)
        case AttributeProto.STRINGS:
            return tuple(_text(item) for item in value)
        case AttributeProto.TENSOR:
            return tensor_array(value)
        case AttributeProto.TENSORS:
            return tuple(tensor_array(item) for item in value)
        case AttributeProto.INTS | AttributeProto.FLOATS | AttributeProto.GRAPHS:
            return tuple(value)
        case _:
            return cast(Attribute, value)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _attribute_proto(name: str, value: Attribute, schema: OpSchema | None) -> AttributeProto:
    if isinstance(value, np.ndarray):
        value = onnx.numpy_helper.from_array(value)
    elif isinstance(value, Sequence) and value and isinstance(value[0], np.ndarray):
        value = [onnx.numpy_helper.from_array(item) for item in value]
    kind = None
    if isinstance(value, Sequence) and not value and schema is not None and name in schema.attributes:
        # An empty list or string does not say of what.
        kind = int(schema.attributes[name].type.value)
    return onnx.helper.make_attribute(name, value, attr_type=kind)
