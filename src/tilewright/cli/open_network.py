"""A model that leaves dimensions open, as `tilewright inspect` shows it: what goes in and out, and what to give."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tilewright.cli import network

if TYPE_CHECKING:
    from onnx import TypeProto, ValueInfoProto


def describe_open(source: str, shapes: Mapping[str, int | Sequence[int]]) -> str:
    """Inputs, outputs, and sizes that can be used as they are. `shapes` is what was given, and did not suffice."""
    from tilewright.graph.onnx.hints import as_argument, as_options, suggested_shapes
    from tilewright.graph.onnx.inputs import declared_shapes, input_shapes, inputs_of
    from tilewright.network import name_of

    graph = network.read_onnx(source).graph
    inputs = inputs_of(graph)
    sizes = suggested_shapes(declared_shapes(inputs), input_shapes(inputs, shapes), shapes)
    lines = [f"network {graph.name or name_of(source)}"]
    for what, values in (("input", inputs), ("output", graph.output)):
        lines += [f"{what} {value.name}: {_describe_type(value)}" for value in values]
    lines.append("kernels are compiled for fixed shapes; give the dimensions that are open sizes, such as these:")
    lines.append(f"  tilewright inspect {shlex.quote(source)} {as_options(sizes)}")
    lines.append(f"  tw.InferenceSession({source!r}, {as_argument(sizes)})")
    return "\n".join(lines)


def _describe_type(value: ValueInfoProto) -> str:
    from onnx import TensorProto

    from tilewright.graph.protos import dimensions, dtype_name, shape_text

    kind: TypeProto = value.type
    tensor = kind.tensor_type
    if not kind.HasField("tensor_type"):
        return (kind.WhichOneof("value") or "of unknown type").removesuffix("_type")
    known = tensor.elem_type != TensorProto.UNDEFINED and tensor.elem_type in TensorProto.DataType.values()
    dtype = dtype_name(tensor.elem_type) if known else "?"
    return f"{dtype}{shape_text(dimensions(tensor))}" if tensor.HasField("shape") else f"{dtype} of unknown rank"
