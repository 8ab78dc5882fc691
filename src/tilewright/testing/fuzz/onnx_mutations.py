"""Changes of ONNX models, drawn at random: of the message's fields whatever they are, of the graph, and of its bytes.

Most fields hold one of a few numbers that programs trip over, or what another field of the same model holds: a model
that is wrong everywhere is refused at its first field, so one file has few changes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

INTEGERS = (0, 1, 2, 3, 4, 7, 8, 16, -1, -2, 127, 2**20, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, math.nan, math.inf, -math.inf, 1e-45, 3e38, 1e9)
TEXTS = ("", "x", "NOTSET", "SAME_UPPER", "VALID", "linear", "cubic", "reflect", "wrap", "sum", "none", "N", "ai.onnx")
# Few are older than what is imported as it is: those take a process each, which converts them.
OPSETS = (*range(11, 28), *range(11, 28), 1, 6, 8, 9, 10, 0, -1, 2**40)
NUM_CHANGES = (1, 1, 1, 2, 2, 3)

Site: TypeAlias = "tuple[Message, FieldDescriptor, int | None]"
"""A field of a message, or one element of a repeated one."""


def mutated(model: ModelProto, rng: random.Random) -> bytes:
    """The bytes of the model after one to three changes; the model itself stays as it is."""
    changed = ModelProto()
    changed.CopyFrom(model)
    is_changed_as_bytes = rng.random() < 0.1
    if not is_changed_as_bytes:
        for _ in range(rng.choice(NUM_CHANGES)):
            rng.choice(_CHANGES)(changed, rng)
    try:
        data = changed.SerializeToString()
    except EncodeError:  # nested too deep
        data = model.SerializeToString()
    return _changed_bytes(data, rng) if is_changed_as_bytes else data


def _changed_bytes(data: bytes, rng: random.Random) -> bytes:
    mutable = bytearray(data)
    match rng.randrange(4):
        case 0:
            return data[: rng.randrange(len(data) + 1)]
        case 1:
            begin, length = rng.randrange(len(data) + 1), rng.randrange(16)
            return data[:begin] + data[begin + length :]
        case 2:
            begin, source, length = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1), rng.randrange(64)
            return data[:begin] + data[source : source + length] + data[begin:]
        case _:
            for _ in range(rng.randint(1, 8)):
                mutable[rng.randrange(len(data))] = rng.randrange(256)
            return bytes(mutable)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node or inner.output:
                    yield from _graphs(inner)


def _sites(message: Message) -> Iterator[Site]:
    for field, value in message.ListFields():
        if not field.is_repeated:
            yield message, field, None
            if field.message_type is not None:
                yield from _sites(value)
            continue
        for index, item in enumerate(value[:64]):
            yield message, field, index
            if field.message_type is not None:
                yield from _sites(item)


def _change_any_field(model: ModelProto, rng: random.Random) -> None:
    """One field of the whole message: another value, or none."""
    _change_site(model, rng.choice(list(_sites(model))), rng)


def _change_node_field(model: ModelProto, rng: random.Random) -> None:
    """One field of a node: its operator, a name, an attribute."""
    nodes = _nodes(model)
    if nodes:
        _change_site(model, rng.choice(list(_sites(rng.choice(nodes)))), rng)


def _change_declared(model: ModelProto, rng: random.Random) -> None:
    """One field of a declared input, output or initializer: an element type, a dimension, its data."""
    graph = rng.choice(list(_graphs(model.graph)))
    values = [*graph.input, *graph.output, *graph.value_info, *graph.initializer, *graph.sparse_initializer]
    sites = list(_sites(rng.choice(values))) if values else []
    if sites:
        _change_site(model, rng.choice(sites), rng)


def _change_site(model: ModelProto, site: Site, rng: random.Random) -> None:
    message, field, index = site
    if field.message_type is not None or rng.random() < 0.1:
        _change_structure(message, field, index, rng)
        return
    old = getattr(message, field.name) if index is None else getattr(message, field.name)[index]
    new = _other_value(model, field, old, rng)
    try:
        if index is None:
            setattr(message, field.name, new)
        else:
            getattr(message, field.name)[index] = new
    except (ValueError, TypeError):  # a number out of the field's range
        message.ClearField(field.name)


def _other_value(model: ModelProto, field: FieldDescriptor, old: Any, rng: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return _other_bytes(old, rng)
        case FieldDescriptor.CPPTYPE_STRING:
            return rng.choice([*_names(model), *TEXTS, rng.choice(_operators())])
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return rng.choice(FLOATS)
        case FieldDescriptor.CPPTYPE_ENUM:
            return rng.randrange(30)
        case _:
            return rng.choice([*INTEGERS, old + 1, old - 1, -old])


def _other_bytes(old: bytes, rng: random.Random) -> bytes:
    match rng.randrange(4):
        case 0:
            return old[: rng.randrange(len(old) + 1)]
        case 1:
            return old + bytes(rng.randrange(16))
        case 2:
            return rng.choice(TEXTS).encode()
        case _:
            return bytes(byte ^ (rng.randrange(256) if rng.random() < 0.2 else 0) for byte in old[:4096])


def _change_structure(message: Message, field: FieldDescriptor, index: int | None, rng: random.Random) -> None:
    """Leave out what is there, put it twice, or put it in another place."""
    if index is None:
        message.ClearField(field.name)
        return
    items = getattr(message, field.name)
    match rng.randrange(4):
        case 0:
            del items[index]
        case 1:
            items.append(items[index])
        case 2:
            other = rng.randrange(len(items))
            copies = list(items)
            copies[index], copies[other] = copies[other], copies[index]
            _assign(items, field, copies)
        case _:
            message.ClearField(field.name)


def _assign(items: Any, field: FieldDescriptor, values: Sequence[Any]) -> None:
    kept = values
    if field.message_type is not None:
        kept = [type(value).FromString(value.SerializePartialToString()) for value in values]
    del items[:]
    items.extend(kept)


def _rename_read(model: ModelProto, rng: random.Random) -> None:
    """A node reads another value: a cycle, a name that a subgraph hides, a tensor of another type, or nothing."""
    nodes = [node for node in _nodes(model) if node.input]
    if nodes:
        node = rng.choice(nodes)
        node.input[rng.randrange(len(node.input))] = rng.choice([*_names(model), ""])


def _rename_written(model: ModelProto, rng: random.Random) -> None:
    """A node gives another value, which may have been given already."""
    nodes = [node for node in _nodes(model) if node.output]
    if nodes:
        node = rng.choice(nodes)
        node.output[rng.randrange(len(node.output))] = rng.choice([*_names(model), "", "new"])


def _change_outputs(model: ModelProto, rng: random.Random) -> None:
    """Another value is an output of a graph, perhaps twice."""
    graph = rng.choice(list(_graphs(model.graph)))
    graph.output.add().name = rng.choice(_names(model))


def _change_operator(model: ModelProto, rng: random.Random) -> None:
    """Another operator on the same inputs."""
    nodes = _nodes(model)
    if nodes:
        rng.choice(nodes).op_type = rng.choice(_operators())


def _change_attribute(model: ModelProto, rng: random.Random) -> None:
    """An attribute of the operator gets a value it may not like, of its type or of another."""
    nodes = _nodes(model)
    if not nodes:
        return
    node = rng.choice(nodes)
    try:
        formal = list(onnx.defs.get_schema(node.op_type, domain=node.domain).attributes.values())
    except onnx.defs.SchemaError:
        return
    if not formal:
        return
    chosen = rng.choice(formal)
    kind = int(chosen.type.value) if rng.random() < 0.8 else rng.choice((1, 2, 3, 6, 7, 8))
    kept = [attribute for attribute in node.attribute if attribute.name != chosen.name]
    kept.append(_random_attribute(chosen.name, kind, rng))
    _assign(node.attribute, NodeProto.DESCRIPTOR.fields_by_name["attribute"], kept)


def _random_attribute(name: str, kind: int, rng: random.Random) -> AttributeProto:
    attribute = AttributeProto(name=name, type=kind)
    num_items = rng.choice((0, 1, 2, 2, 3, 4, 5))
    match kind:
        case AttributeProto.FLOAT:
            attribute.f = rng.choice(FLOATS)
        case AttributeProto.INT:
            attribute.i = rng.choice(INTEGERS)
        case AttributeProto.STRING:
            attribute.s = rng.choice(TEXTS).encode()
        case AttributeProto.FLOATS:
            attribute.floats.extend(rng.choice(FLOATS) for _ in range(num_items))
        case AttributeProto.INTS:
            attribute.ints.extend(rng.choice(INTEGERS) for _ in range(num_items))
        case AttributeProto.STRINGS:
            attribute.strings.extend(rng.choice(TEXTS).encode() for _ in range(num_items))
        case _:
            pass  # a tensor or a graph that is not there
    return attribute


def _change_opset(model: ModelProto, rng: random.Random) -> None:
    """The same nodes in another version of the operators."""
    for entry in model.opset_import:
        entry.version = rng.choice(OPSETS)


def _nodes(model: ModelProto) -> list[NodeProto]:
    inside = [node for graph in _graphs(model.graph) for node in graph.node]
    return [*inside, *(node for function in model.functions for node in function.node)]


def _names(model: ModelProto) -> list[str]:
    found: dict[str, None] = {}
    for node in _nodes(model):
        found.update(dict.fromkeys((*node.input, *node.output)))
    for graph in _graphs(model.graph):
        found.update(dict.fromkeys(value.name for value in (*graph.input, *graph.output, *graph.initializer)))
    return list(found) or ["x"]


_OPERATORS: list[str] = []


def _operators() -> list[str]:
    if not _OPERATORS:
        _OPERATORS.extend(sorted({schema.name for schema in onnx.defs.get_all_schemas()}))
    return _OPERATORS


_CHANGES: tuple[Callable[[ModelProto, random.Random], None], ...] = (
    _change_any_field,
    _change_node_field,
    _change_node_field,
    _change_declared,
    _change_declared,
    _rename_read,
    _rename_written,
    _change_outputs,
    _change_operator,
    _change_attribute,
    _change_attribute,
    _change_attribute,
    _change_opset,
)
