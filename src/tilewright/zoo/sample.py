"""Random inputs for a model: what a person would try it with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper

from tilewright.errors import UsageError
from tilewright.graph.protos import dimensions, shape_text, static_type, type_proto
from tilewright.operators import TensorType

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def inputs(model: ModelProto, seed: int = 0) -> dict[str, npt.NDArray[np.generic]]:
    """An array for each input, by name; the shapes must be fixed.

    Floats are normally distributed. Whole numbers that a Gather looks up are in the range of its table, a mask is 1
    but for padding in the last eighth of its last axis, and other whole numbers are 0 or 1.
    """
    random = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    return {v.name: _array(model.graph, v, random) for v in model.graph.input if v.name not in constants}


def inputs_for(
    types: Mapping[str, TensorType | None], model: ModelProto | None = None, seed: int = 0
) -> dict[str, npt.NDArray[np.generic]]:
    """Inputs of fixed types, by name. The model, if it is known, says in which range indices are."""
    known = ModelProto()
    if model is not None:
        known.CopyFrom(model)
    else:
        for name in types:
            known.graph.input.add(name=name)
    for entry in known.graph.input:
        fixed = types.get(entry.name)
        if fixed is not None:
            entry.type.CopyFrom(type_proto(fixed))
    return inputs(known, seed)


def _array(graph: GraphProto, value: ValueInfoProto, random: np.random.Generator) -> npt.NDArray[np.generic]:
    dtype, shape = _dtype(value), _shape(value)
    if value.type.tensor_type.elem_type in _FLOATS:
        return random.standard_normal(shape, np.float32).astype(dtype)
    if "mask" in value.name and shape:
        return np.broadcast_to(_mask_row(shape[-1]), shape).astype(dtype)
    return random.integers(0, _num_choices(graph, value.name), shape).astype(dtype)


def _mask_row(length: int) -> npt.NDArray[np.bool_]:
    return np.arange(length) < length - length // 8


def _dtype(value: ValueInfoProto) -> np.dtype[np.generic]:
    elem_type = value.type.tensor_type.elem_type
    dtype: np.dtype[np.generic] | None = helper.tensor_dtype_to_np_dtype(elem_type) if elem_type else None
    if dtype is None or not (dtype.kind in "iub" or elem_type in _FLOATS):
        kind = TensorProto.DataType.Name(elem_type) if elem_type else "no tensor"
        raise UsageError(
            f"random inputs are floats, integers and bools, but input {value.name} is {kind}; give inputs as a file to "
            f"`tilewright run MODEL --input x.npz`, with --profile for the time by kernel"
        )
    return dtype


def _shape(value: ValueInfoProto) -> tuple[int, ...]:
    known = static_type(value.type)
    if known is not None:
        return known.shape
    tensor = value.type.tensor_type
    said = shape_text(dimensions(tensor)) if tensor.HasField("shape") else "of unknown rank"
    raise UsageError(
        f"random inputs need fixed shapes, but input {value.name} is {said}; fix it with "
        f"--shape {value.name}=1x3x224x224, say"
    )


def _num_choices(graph: GraphProto, name: str) -> int:
    """How many rows the tables have that are read at these indices; 2 where there is none."""
    shapes = {tensor.name: tensor.dims for tensor in graph.initializer}
    sizes = []
    for node in graph.node:
        if node.op_type == "Gather" and node.input[1] == name and node.input[0] in shapes:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            sizes.append(shapes[node.input[0]][axis])
    return min(sizes, default=2)
