"""Checks of an ONNX network that comes from a file, before anything of it runs.

A network of ours is a graph of a few kinds of operators without branches, whose inputs are the programs and the weights
that the file holds, and whose values have sizes that follow from theirs. Anything else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as shown
from typing import TYPE_CHECKING

from tilewright.cost_model.neural.inference import MASK, SCORES, VALUES
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

# No branches, loops, random numbers or strings. What can make a value large is let in: its size is checked.
OPERATORS = frozenset({
    "Abs", "Add", "And", "Cast", "Clip", "Concat", "Constant", "ConstantOfShape", "CumSum", "Div", "Equal", "Erf",
    "Exp", "Expand", "Flatten", "Gather", "GatherElements", "Gemm", "Greater", "GreaterOrEqual", "Identity",
    "LayerNormalization", "Less", "LessOrEqual", "Log", "MatMul", "Max", "Min", "Mul", "Neg", "Not", "Or", "Pow",
    "ReduceMax", "ReduceMean", "ReduceSum", "Relu", "Reshape", "ScatterElements", "Shape", "Sigmoid", "Slice",
    "Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "Tile", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
MAX_NODES = 32_768
"""A recurrent network has some 27 for each of its rows."""
MAX_ELEMENTS = 2**26
"""Of a value: 256 MB of float32."""


class _RefusedError(Exception):
    """What a network breaks, as a sentence without an end."""


def check_network(network: bytes, shapes: Mapping[str, tuple[int, ...]], remedy: str) -> None:
    """That the ONNX model takes inputs of the shapes, those alone, and gives one score or more for each program."""
    try:
        _check(network, shapes)
    except _RefusedError as error:
        raise UsageError(f"the network of a cost model {error}; {remedy}") from error


def _check(network: bytes, shapes: Mapping[str, tuple[int, ...]]) -> None:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(network)
    except DecodeError as error:
        raise _RefusedError(f"is an ONNX model, got {len(network)} bytes that are none") from error
    _check_parts(model)
    _check_inputs(model.graph, shapes)
    _check_nodes(model.graph)
    _check_sizes(model, shapes)


def _check_parts(model: ModelProto) -> None:
    domains = [entry.domain for entry in model.opset_import]
    if domains not in ([""], ["ai.onnx"]):
        raise _RefusedError(f"has operators of ONNX alone, got those of {shown(domains)}")
    graph = model.graph
    for what, found in (
        ("functions", model.functions),
        ("training steps", model.training_info),
        ("initializers", [*graph.initializer, *graph.sparse_initializer]),
    ):
        if found:
            raise _RefusedError(f"has no {what}, got {len(found)}")
    if [value.name for value in graph.output] != [SCORES]:
        raise _RefusedError(f"gives {SCORES} alone, got {shown([value.name for value in graph.output])}")


def _check_inputs(graph: GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
    from onnx import TensorProto

    names = [value.name for value in graph.input]
    if sorted(names) != sorted(shapes):
        wrong = sorted({*names} ^ {*shapes}) or sorted(names)
        raise _RefusedError(f"takes {VALUES}, {MASK} and each of the file's weights, got another set in {shown(wrong)}")
    for value in graph.input:
        sizes = _sizes(value)
        wanted = shapes[value.name]
        fits = len(sizes) == len(wanted) and all(a in (None, b) for a, b in zip(sizes, wanted, strict=True))
        if value.type.tensor_type.elem_type != TensorProto.FLOAT or not fits:
            raise _RefusedError(f"takes {shown(value.name)} as float32 of shape {wanted}, got the sizes {shown(sizes)}")


def _check_nodes(graph: GraphProto) -> None:
    from onnx import AttributeProto

    if len(graph.node) > MAX_NODES:
        raise _RefusedError(f"has at most {MAX_NODES} nodes, got {len(graph.node)}")
    plain = {AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.FLOATS}
    for node in graph.node:
        if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx"):
            raise _RefusedError(f"has operators of {len(OPERATORS)} kinds, got {shown(node.op_type)}")
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR and node.op_type in ("Constant", "ConstantOfShape"):
                _check_constant(attribute.t)
            elif attribute.type not in plain:
                raise _RefusedError(f"has numbers as attributes, got {shown(attribute.name)} of {node.op_type}")
            elif node.op_type == "Cast":
                _check_type(attribute.i)


def _check_constant(tensor: TensorProto) -> None:
    from onnx import TensorProto, numpy_helper

    if tensor.data_location != TensorProto.DEFAULT:
        raise _RefusedError("has its constants in the file, got one elsewhere")
    _check_type(tensor.data_type)
    _check_size("a constant", list(tensor.dims))
    try:
        numpy_helper.to_array(tensor)
    except ValueError as error:
        raise _RefusedError(f"has constants of the size that they say, got one of {list(tensor.dims)}") from error


def _check_type(data_type: int) -> None:
    from onnx import TensorProto

    known = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
    if data_type not in known:
        raise _RefusedError(f"has values of float, int and bool, got the type {data_type}")


def _check_size(what: str, sizes: Sequence[int | None]) -> None:
    num_elements = math.prod(-1 if size is None else size for size in sizes)
    if num_elements > MAX_ELEMENTS or any(size is None or size < 0 for size in sizes):
        raise _RefusedError(f"has values of up to {MAX_ELEMENTS} elements, got {what} of {shown(sizes)}")


def _check_sizes(model: ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """All values have sizes that are known ahead, none of them too large."""
    from onnx import shape_inference

    graph = model.graph
    del graph.value_info[:]
    for value in graph.input:
        _set_sizes(value, shapes[value.name])
    graph.output[0].type.tensor_type.ClearField("shape")
    try:
        inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[-1][:200]
        raise _RefusedError(f"is a graph whose sizes follow from its inputs', but {reason}") from error
    known = {value.name: _sizes(value) for value in [*inferred.graph.value_info, *inferred.graph.output]}
    for name in _computed(graph.node):
        _check_size(shown(name), known.get(name, [None]))
    num_programs = shapes[VALUES][0]
    if known[SCORES][:1] != [num_programs] or len(known[SCORES]) > 2:
        raise _RefusedError(f"gives scores for each of {num_programs} programs, got {shown(known[SCORES])}")


def _computed(nodes: Iterable[NodeProto]) -> list[str]:
    return [name for node in nodes for name in node.output if name]


def _sizes(value: ValueInfoProto) -> list[int | None]:
    """None for what is open."""
    if not value.type.tensor_type.HasField("shape"):
        return [None]
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim]


def _set_sizes(value: ValueInfoProto, sizes: tuple[int, ...]) -> None:
    for dim, size in zip(value.type.tensor_type.shape.dim, sizes, strict=True):
        dim.Clear()
        dim.dim_value = size
