"""The types of a network's inputs: what the model says, with the dimensions it leaves open given by the user.

A user gives the shape of an input, `{"image": (1, 3, 224, 224)}`, or the size of a dimension by the name that the model
has for it, `{"batch": 4}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto, TensorProto, TypeProto, ValueInfoProto

from tilewright.errors import ModelError, OpenDimensionsError
from tilewright.graph.onnx.hints import InputShapes, hint, open_inputs
from tilewright.graph.onnx.sizes import Shapes, checked_shapes, derived_size
from tilewright.graph.protos import Dimension, dimensions, shape_text


def inputs_of(graph: GraphProto) -> list[ValueInfoProto]:
    """What the user has to give: an input that has an initializer is a constant."""
    constants = {tensor.name for tensor in graph.initializer}
    constants.update(sparse.values.name for sparse in graph.sparse_initializer)
    return [value for value in graph.input if value.name not in constants]


def fixed_input_types(inputs: Sequence[ValueInfoProto], shapes: Shapes) -> dict[str, TypeProto]:
    """The type of each input with every dimension known; an input that is no tensor keeps the type it has.

    A dimension that the model names, such as "batch", has one size in all inputs.
    """
    known = input_shapes(inputs, shapes)
    still_open = open_inputs(known)
    if still_open:
        described = ", ".join(f"input {name} is {_described(shape)}" for name, shape in still_open.items())
        raise OpenDimensionsError(
            f"the model leaves dimensions open, and kernels are compiled for fixed shapes: {described}; "
            f"give their sizes, such as {hint(declared_shapes(inputs), known, shapes)}"
        )
    return {value.name: _fixed(value, known.get(value.name)) for value in inputs}


def declared_shapes(inputs: Sequence[ValueInfoProto]) -> InputShapes:
    """What the model says of the dimensions of each tensor among its inputs; None where it says nothing."""
    return {
        value.name: dimensions(value.type.tensor_type) if value.type.tensor_type.HasField("shape") else None
        for value in inputs
        if value.type.HasField("tensor_type")
    }


def input_shapes(inputs: Sequence[ValueInfoProto], shapes: Shapes) -> InputShapes:
    """The dimensions of each tensor among the inputs; those that the user gives have their sizes."""
    declared = declared_shapes(inputs)
    of_inputs, sizes = _by_kind([value.name for value in inputs], declared, shapes)
    for name, shape in of_inputs.items():
        _check_shape(name, declared, shape, sizes)
    return {name: of_inputs.get(name, _filled(dims, sizes)) for name, dims in declared.items()}


def _by_kind(
    inputs: Sequence[str], declared: InputShapes, given: Shapes
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """The shapes of inputs, and the sizes of named dimensions. One number may mean either."""
    named = list(dict.fromkeys(dim for dims in declared.values() for dim in dims or () if isinstance(dim, str)))
    shapes: dict[str, tuple[int, ...]] = {}
    sizes: dict[str, int] = {}
    for name, size in checked_shapes(given).items():
        if name not in inputs and name not in named:
            raise _unknown(name, inputs, named, declared)
        if name in inputs and name not in declared:
            raise ModelError(f"{name} is given as {size}, but this input is no tensor; leave its shape out")
        if not isinstance(size, int):
            if name not in inputs:
                raise ModelError(
                    f"{name} is given as {shape_text(size)}, but it is a dimension of the model, no input; "
                    f"give one number for it"
                )
            shapes[name] = size
        elif _is_input(name, size, named, declared):
            shapes[name] = (size,)
        else:
            sizes[name] = size
    return shapes, sizes


def _is_input(name: str, size: int, named: Sequence[str], declared: InputShapes) -> bool:
    """Whether one number is the shape of an input, and not the size of a dimension."""
    if name not in named or name not in declared:
        return name in declared
    dims = declared[name]
    if dims is not None and (len(dims) != 1 or dims == (name,)):
        return False
    raise ModelError(
        f"{name} is given as {size}, but the model has both an input and a dimension of that name; give the shape of "
        f"the input as shapes={{{name!r}: ({size},)}}, and the dimension by the shape of an input that has it"
    )


def _unknown(name: str, inputs: Sequence[str], named: Sequence[str], declared: InputShapes) -> ModelError:
    has = f"the inputs {', '.join(inputs)}" if inputs else "no inputs"
    if named:
        has += f" and the open dimensions {', '.join(named)}"
    advice = f"give sizes as {hint(declared, declared, {})}" if open_inputs(declared) else "leave it out"
    return ModelError(f"a shape is given for {name}, but the model has {has}; {advice}")


def _check_shape(name: str, declared: InputShapes, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """A shape given by the user fits the model; what it says of named dimensions goes into `sizes`.

    A size of 0 fits any: tools write it for an open dimension, too.
    """
    dims = declared[name]
    if dims is None:
        return
    said = f"input {name} is given as {shape_text(shape)}, but the model says {shape_text(dims)}"
    if len(shape) != len(dims):
        raise ModelError(f"{said}; give {len(dims)} dimensions")
    for dim, size in zip(dims, shape, strict=True):
        if isinstance(dim, int) and dim not in (0, size):
            raise ModelError(f"{said}; give {dim} where it says {dim}")
        if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
            raise ModelError(f"{said}, and {dim} is {sizes[dim]} elsewhere; give one size for it")


def _filled(dims: tuple[Dimension, ...] | None, sizes: Mapping[str, int]) -> tuple[Dimension, ...] | None:
    if dims is None:
        return None
    return tuple(_size(dim, sizes) if isinstance(dim, str) else dim for dim in dims)


def _size(name: str, sizes: Mapping[str, int]) -> int | str:
    if name in sizes:
        return sizes[name]
    derived = derived_size(name, sizes)
    return name if derived is None else derived


def _described(dims: tuple[Dimension, ...] | None) -> str:
    return "of unknown rank" if dims is None else shape_text(dims)


def _fixed(value: ValueInfoProto, shape: tuple[Dimension, ...] | None) -> TypeProto:
    if value.type.WhichOneof("value") is None:
        raise ModelError(f"input {value.name} has no type in the model; export the model again")
    if shape is None:
        return value.type
    tensor = value.type.tensor_type
    if tensor.elem_type == TensorProto.UNDEFINED or tensor.elem_type not in TensorProto.DataType.values():
        raise ModelError(
            f"input {value.name} has element type {tensor.elem_type} in the model, which ONNX does not know; "
            f"export the model again"
        )
    fixed = TypeProto()
    fixed.tensor_type.elem_type = tensor.elem_type
    fixed.tensor_type.shape.SetInParent()
    for size in shape:
        assert isinstance(size, int)
        fixed.tensor_type.shape.dim.add().dim_value = size
    return fixed
