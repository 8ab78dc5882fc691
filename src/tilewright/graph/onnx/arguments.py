"""Checks nodes against what ONNX says of their operators: the inputs, outputs and attributes that they take.

ONNX's own checker refuses what every runtime takes, such as an input left out that became optional in a later version
of its operator; and it knows nothing of the values around a subgraph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from onnx import AttributeProto, NodeProto
from onnx.defs import OpSchema, get_schema

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.contrib import is_contrib
from tilewright.graph.onnx.quantized_product import quantized_schema
from tilewright.graph.protos import find_schema, normal_domain, subgraphs

_VARIADIC = OpSchema.FormalParameterOption.Variadic
_SINGLE = OpSchema.FormalParameterOption.Single

# Where the value of an attribute is that is a message; one that is not there reads as an empty one.
_FIELDS = {
    AttributeProto.GRAPH: "g",
    AttributeProto.TENSOR: "t",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
}


def label(node: NodeProto) -> str:
    """A node as messages call it."""
    return f"node {node.name or ', '.join(node.output) or '(unnamed)'} ({node.op_type})"


def check_operators(nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> None:
    """Each operator is known, and has the inputs, outputs and attributes that ONNX says it takes, in subgraphs too."""
    for node in nodes:
        schema = quantized_schema(node.op_type, node.domain) or _schema(node, opsets)
        if schema is None:
            continue
        _check_inputs(node, schema)
        _check_outputs(node, schema)
        if node.attribute or _attributes_of(schema).required:
            _check_attributes(node, _attributes_of(schema))
        for graph in subgraphs(node):
            if node.op_type == "If" and len(graph.output) != len(node.output):
                given, wanted = len(graph.output), len(node.output)
                raise _invalid(node, f"a branch of it gives {given} values for its {wanted} outputs")
            check_operators(graph.node, opsets)


def _schema(node: NodeProto, opsets: Mapping[str, int]) -> OpSchema | None:
    """What ONNX says of the operator in the version that the model asks for; None for one of onnxruntime's."""
    domain = normal_domain(node.domain)
    opset = opsets.get(domain, 1)
    schema = find_schema(node.op_type, opset, domain)
    if schema is None and is_contrib(domain, node.op_type) and any(node.output):
        return None
    if schema is None:
        where = f"of domain {domain}" if domain else f"of ONNX's opset {opset}"
        raise UnsupportedOperatorError(
            f"{label(node)}: there is no operator {node.op_type} {where}; export the model with operators of ONNX "
            f"only, or with the operator as a function of the model"
        )
    # GroupNormalization came back in another form; what was exported with the first one is still run.
    if schema.deprecated and get_schema(node.op_type, domain=domain).deprecated:
        raise UnsupportedOperatorError(
            f"{label(node)}: ONNX has withdrawn the operator {node.op_type} by opset {opset}; "
            f"export the model again with the operator that took its place"
        )
    return schema


def _check_inputs(node: NodeProto, schema: OpSchema) -> None:
    given = list(node.input)
    while given and not given[-1] and len(given) > schema.max_input:
        given.pop()
    if not schema.min_input <= len(given) <= schema.max_input:
        raise _invalid(node, f"it has {len(given)} inputs, but takes {_range(schema.min_input, schema.max_input)}")
    for position, name in enumerate(given):
        if not name and _is_required(schema, position) and not _became_optional(schema, position):
            raise _invalid(node, f"its input {position} ({_formal(schema.inputs, position).name}) is left out")


def _is_required(schema: OpSchema, position: int) -> bool:
    formal = _formal(schema.inputs, position)
    return bool(formal.option == _SINGLE or (formal.option == _VARIADIC and formal.is_homogeneous))


def _became_optional(schema: OpSchema, position: int) -> bool:
    """Whether a later version of the operator lets the input out: exporters write that for earlier ones, too."""
    newest = quantized_schema(schema.name, schema.domain) or get_schema(schema.name, schema.domain)
    return position < len(newest.inputs) and not _is_required(newest, position)


def _formal(formals: Sequence[OpSchema.FormalParameter], position: int) -> OpSchema.FormalParameter:
    """The parameter at a position; the last one stands for all after it."""
    return formals[min(position, len(formals) - 1)]


def _check_outputs(node: NodeProto, schema: OpSchema) -> None:
    if not schema.min_output <= len(node.output) <= schema.max_output:
        wanted = _range(schema.min_output, schema.max_output)
        raise _invalid(node, f"it has {len(node.output)} outputs, but gives {wanted}")


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"at least {least}" if most >= 2**31 - 1 else f"{least} to {most}"


class _Attributes(NamedTuple):
    """What an operator says of its attributes; onnx makes new objects of it whenever asked."""

    types: Mapping[str, OpSchema.AttrType]
    required: Sequence[str]


@cache
def _attributes_of(schema: OpSchema) -> _Attributes:
    formals = schema.attributes
    types = {name: formal.type for name, formal in formals.items()}
    return _Attributes(types, [name for name, formal in formals.items() if formal.required])


def _check_attributes(node: NodeProto, known: _Attributes) -> None:
    given: dict[str, int] = {}
    for attribute in node.attribute:
        if attribute.name in given:
            raise _invalid(node, f"its attribute {attribute.name} is there twice")
        if attribute.ref_attr_name:
            raise _invalid(node, f"its attribute {attribute.name} stands for one of a function, but it is in none")
        given[attribute.name] = attribute.type
        wanted = known.types.get(attribute.name)
        if wanted is None:
            raise _invalid(node, f"it has an attribute {attribute.name}, which the operator does not know")
        if attribute.type != wanted.value:
            kind = AttributeProto.AttributeType.Name(attribute.type).lower()
            raise _invalid(node, f"its attribute {attribute.name} is a {kind}, but must be a {wanted.name.lower()}")
        if attribute.type in _FIELDS and not attribute.HasField(_FIELDS[attribute.type]):
            raise _invalid(node, f"its attribute {attribute.name} has no value")
    for name in known.required:
        if name not in given:
            raise _invalid(node, f"its attribute {name} is missing")


def _invalid(node: NodeProto, reason: str) -> ModelError:
    return ModelError(f"{label(node)} is not a valid node: {reason}; correct it, or export the model again")
