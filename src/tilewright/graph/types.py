"""The types of what a node computes: from its tensor expression, or else from ONNX's own inference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import GraphProto, TensorProto, TypeProto
from onnx.checker import ValidationError
from onnx.defs import OpSchema
from onnx.shape_inference import InferenceError, infer_node_outputs

from tilewright import te
from tilewright.errors import ExpressionError, ModelError
from tilewright.graph.inference_guards import reason_against
from tilewright.graph.protos import (
    captures_of,
    latest_opsets,
    node_to_proto,
    schema_of,
    static_type,
    subgraphs,
    type_proto,
)
from tilewright.operators import (
    OWN,
    Call,
    KnownValues,
    MisfitError,
    Node,
    NotCompilableError,
    TensorType,
    express,
    facts_of,
)

Types: TypeAlias = Mapping[str, TensorType | None]
Constants: TypeAlias = Mapping[str, npt.NDArray[np.generic]]

_SHAPE_RULE = "[ShapeInferenceError]"
_TENSORS = {f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items() if number}

# Values that decide a shape are short; larger ones, such as weights, do not.
_LARGEST_SHAPE_VALUE = 4096


class ShapeRuleError(ModelError):
    """ONNX's checker, or its rule for shapes, refuses the inputs of a node; what runs it may still take them."""


def expressed_types(node: Node, types: Types, constants: Constants) -> tuple[TensorType | None, ...]:
    """The types of the tensors that a kernel would compute. NotCompilableError says why none can."""
    try:
        tensors = [
            _operand(position, name, types.get(name), is_constant=name in constants)
            for position, name in enumerate(node.inputs)
        ]
        outputs = express(Call(node, tensors, KnownValues(node, constants), is_computed=False))
    except MisfitError as error:
        protos = {name: type_proto(known) for name in node.inputs if (known := types.get(name)) is not None}
        raise _misfit(node, protos, error) from error
    except ExpressionError as error:
        raise NotCompilableError(str(error)) from error
    found = [TensorType(output.dtype, tuple(output.shape)) for output in outputs[: len(node.outputs)]]
    for name in node.outputs[len(found) :]:
        if name:
            raise NotCompilableError(f"its output {name} has no tensor expression")
    return (*found, *[None] * (len(node.outputs) - len(found)))


def _operand(position: int, name: str, known: TensorType | None, *, is_constant: bool) -> te.Tensor | None:
    """A placeholder; a constant that no kernel can hold, such as the shape of a scalar, is given by its value alone."""
    if not name:
        return None
    if known is None:
        raise NotCompilableError(f"the type of its input {name} is known only when the network runs")
    if known.is_compilable:
        return te.placeholder(known.shape, known.dtype, f"operand{position}", constant=is_constant)
    if is_constant:
        return None
    raise NotCompilableError(f"its input {name} is {known.dtype}{list(known.shape)}, which no kernel can hold")


def onnx_types(node: Node, protos: Mapping[str, TypeProto], constants: Constants) -> tuple[TypeProto | None, ...]:
    """What ONNX infers of the outputs; None where it has no rule. Inputs that do not fit the operator raise."""
    reason = reason_against(node, [protos.get(name) for name in node.inputs])
    if reason is not None:
        raise _misfit(node, protos, reason)
    try:
        found = _inferred(node, protos, constants)
    except (InferenceError, ValidationError) as error:
        # What the checker would refuse has been judged by rules of our own already.
        is_about_shapes = isinstance(error, ValidationError) or _SHAPE_RULE in str(error)
        kind = ShapeRuleError if is_about_shapes else ModelError
        raise _misfit(node, protos, error, kind) from error
    for name in node.outputs:
        shape = tuple(dim.dim_value for dim in found[name].tensor_type.shape.dim) if name in found else ()
        if any(extent < 0 for extent in shape):
            raise _misfit(node, protos, f"its output {name} would have the shape {shape}", ShapeRuleError)
    return tuple(found.get(name) for name in node.outputs)


def _misfit(
    node: Node, protos: Mapping[str, TypeProto], reason: object, kind: type[ModelError] = ModelError
) -> ModelError:
    inputs = ", ".join(_described(name, protos) for name in node.inputs if name)
    return kind(
        f"node {node} ({node.op}) does not fit its inputs {inputs}: {reason}; "
        f"correct the model, or the shapes given for its inputs"
    )


def _inferred(node: Node, protos: Mapping[str, TypeProto], constants: Constants) -> dict[str, TypeProto]:
    schema = schema_of(node)
    if node.domain == OWN or schema is None:
        return {}
    return _with_only_types(node, schema, _by_rule(node, schema, protos, constants))


def _with_only_types(node: Node, schema: OpSchema, found: Mapping[str, TypeProto]) -> dict[str, TypeProto]:
    """What ONNX infers, with element types that its schema alone says, as of ai.onnx.ml, and no tensor without one."""
    typed: dict[str, TypeProto] = {}
    for position, name in enumerate(node.outputs):
        if not name:
            continue
        proto = found.get(name, TypeProto())
        if proto.WhichOneof("value") not in (None, "tensor_type") or proto.tensor_type.elem_type:
            typed[name] = proto
            continue
        kinds = schema.outputs[min(position, len(schema.outputs) - 1)].types
        only = _TENSORS.get(next(iter(kinds))) if len(kinds) == 1 else None
        if only is not None:
            typed[name] = TypeProto()
            typed[name].CopyFrom(proto)
            typed[name].tensor_type.elem_type = only
    return typed


def _by_rule(
    node: Node, schema: OpSchema, protos: Mapping[str, TypeProto], constants: Constants
) -> dict[str, TypeProto]:
    if not schema.has_type_and_shape_inference_function:
        return {}
    proto = node_to_proto(node)
    for graph in subgraphs(proto):
        _open_sizes_without_meaning(graph)
    known = {name: protos.get(name, TypeProto()) for name in proto.input if name}
    for inner, name in zip(captures_of(node), node.inputs[len(proto.input) :], strict=True):
        known[inner] = protos.get(name, TypeProto())
    values = {
        name: onnx.numpy_helper.from_array(np.asarray(constants[name]), name)
        for name in known
        if name in constants and _may_decide_a_shape(node, protos.get(name))
    }
    opsets = [onnx.helper.make_opsetid(*entry) for entry in {**latest_opsets(), node.domain: node.opset}.items()]
    try:
        found: dict[str, TypeProto] = infer_node_outputs(schema, proto, known, values, opset_imports=opsets)
    except ValueError:  # its rule needs a type that is not known
        return {}
    return found


def _open_sizes_without_meaning(graph: GraphProto) -> None:
    """Exporters write 0 and -1 for a size that is not known; ONNX's inference would take their word for it."""
    for value in (*graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value <= 0:
                dim.ClearField("dim_value")
    for node in graph.node:
        for inner in subgraphs(node):
            _open_sizes_without_meaning(inner)


def _may_decide_a_shape(node: Node, proto: TypeProto | None) -> bool:
    """Whether ONNX's inference may look at the value of a constant operand of this type."""
    known, facts = static_type(proto), facts_of(node)
    if known is None or math.prod(known.shape) > _LARGEST_SHAPE_VALUE or facts.elementwise:
        return False
    return facts.shaped_by_floats or known.dtype.startswith(("int", "uint", "bool"))


def _described(name: str, protos: Mapping[str, TypeProto]) -> str:
    known = static_type(protos.get(name))
    return name if known is None else f"{name}: {known.dtype}{list(known.shape)}"
