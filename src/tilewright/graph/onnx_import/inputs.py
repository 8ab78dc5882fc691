"""The types of a network's inputs: what the model says, with the dimensions it leaves open given by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import TensorProto, TypeProto, ValueInfoProto

from tilewright.errors import ModelError

Shapes = Mapping[str, tuple[int, ...]]


def fixed_input_types(inputs: Sequence[ValueInfoProto], shapes: Shapes) -> dict[str, TypeProto]:
    """The type of each input with every dimension known; an input that is no tensor keeps the type it has.

    A dimension that the model names, such as "batch", is fixed by one input for all of them.
    """
    names = [value.name for value in inputs]
    for given in shapes:
        if given not in names:
            raise ModelError(f"a shape is given for {given}, but the inputs of the model are {', '.join(names)}")
    sizes: dict[str, int] = {}
    for value in inputs:
        if value.name in shapes:
            _check_shape(value, shapes[value.name], sizes)
    return {value.name: _fixed(value, shapes.get(value.name), sizes) for value in inputs}


def _check_shape(value: ValueInfoProto, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """A shape given by the user fits the model; what it says of named dimensions goes into `sizes`."""
    what = f"input {value.name} is given as {_text(shape)}"
    if not value.type.HasField("tensor_type"):
        raise ModelError(f"{what}, but it is no tensor; leave its shape out")
    if any(size < 0 for size in shape):
        raise ModelError(f"{what}, but a dimension cannot be negative")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return
    said = f"{what}, but the model says {_model_shape(tensor)}"
    if len(shape) != len(tensor.shape.dim):
        raise ModelError(f"{said}; give {len(tensor.shape.dim)} dimensions")
    for dim, size in zip(tensor.shape.dim, shape, strict=True):
        if dim.HasField("dim_value") and dim.dim_value != size:
            raise ModelError(f"{said}; give {dim.dim_value} where it says {dim.dim_value}")
        if dim.dim_param and sizes.setdefault(dim.dim_param, size) != size:
            raise ModelError(f"{said}, and {dim.dim_param} is {sizes[dim.dim_param]} elsewhere; give one size for it")


def _fixed(value: ValueInfoProto, shape: tuple[int, ...] | None, sizes: Mapping[str, int]) -> TypeProto:
    if not value.type.HasField("tensor_type"):
        return value.type
    tensor = value.type.tensor_type
    if tensor.elem_type == TensorProto.UNDEFINED or tensor.elem_type not in TensorProto.DataType.values():
        raise ModelError(
            f"input {value.name} has element type {tensor.elem_type} in the model, which ONNX does not know; "
            f"export the model again"
        )
    fixed = TypeProto()
    fixed.tensor_type.elem_type = tensor.elem_type
    for size in _sizes(value, sizes) if shape is None else shape:
        fixed.tensor_type.shape.dim.add().dim_value = size
    if not fixed.tensor_type.HasField("shape"):
        fixed.tensor_type.shape.SetInParent()
    return fixed


def _sizes(value: ValueInfoProto, sizes: Mapping[str, int]) -> list[int]:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        raise ModelError(
            f"input {value.name} has no shape in the model; give it one, such as --shape {value.name}=1x3x224x224"
        )
    found = [dim.dim_value if dim.HasField("dim_value") else sizes.get(dim.dim_param, -1) for dim in tensor.shape.dim]
    if any(size < 0 for size in found):
        example = "x".join(str(size) if size >= 0 else "1" for size in found)
        raise ModelError(
            f"input {value.name} has open dimensions, {_model_shape(tensor)}; "
            f"give its shape, such as --shape {value.name}={example}"
        )
    return found


def _model_shape(tensor: TypeProto.Tensor) -> str:
    return _text([dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim])


def _text(shape: Sequence[int | str]) -> str:
    return "x".join(map(str, shape)) if shape else "a scalar"
