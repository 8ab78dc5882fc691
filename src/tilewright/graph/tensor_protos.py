"""The arrays that the messages of ONNX hold, checked before memory is taken for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import SparseTensorProto, TensorProto
from onnx.external_data_helper import uses_external_data

from tilewright.errors import ModelError

LARGEST_NUM_ELEMENTS = 2**40
"""More than any machine holds: a value that has more is a mistake of the model. Sizes also fit into 64 bits by this."""

_AGAIN = "export the model again"


def check_shape(what: str, shape: Sequence[int]) -> None:
    """A shape that a tensor can have; zeros are left out, so that no dimension beside one is too large either."""
    if any(size < 0 for size in shape):
        raise ModelError(f"{what} has the shape {_text(shape)}, but a dimension cannot be negative; {_AGAIN}")
    if math.prod(size for size in shape if size) > LARGEST_NUM_ELEMENTS:
        raise ModelError(
            f"{what} has the shape {_text(shape)}, more elements than the {LARGEST_NUM_ELEMENTS:,} that any machine "
            f"holds; correct the model, or the shapes given for its inputs"
        )


def tensor_array(tensor: TensorProto) -> npt.NDArray[np.generic]:
    """The elements of a tensor that is in the model itself."""
    what = f"the constant {tensor.name} of the model"
    if uses_external_data(tensor):
        raise ModelError(
            f"{what} is in a file beside it, which is not known here; "
            f"give the path of the model, or load it with onnx.load"
        )
    check_shape(what, tensor.dims)
    try:
        array: npt.NDArray[np.generic] = onnx.numpy_helper.to_array(tensor)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise ModelError(f"{what} does not hold the data it should: {error}; {_AGAIN}") from error
    # Any byte but 0 is true, and kernels know 1 alone.
    return np.asarray(array.view(np.uint8) != 0) if array.dtype == np.bool_ else array


def dense_array(sparse: SparseTensorProto) -> npt.NDArray[np.generic]:
    """The elements of a sparse tensor, with its zeros."""
    what = f"the sparse constant {sparse.values.name} of the model"
    shape = tuple(sparse.dims)
    check_shape(what, shape)
    values, indices = tensor_array(sparse.values), tensor_array(sparse.indices)
    num_indices = 1 if indices.ndim == 1 else len(shape)
    if values.ndim != 1 or indices.shape not in ((len(values),), (len(values), num_indices)):
        raise ModelError(f"{what} has values {values.shape} at places {indices.shape}, one for each; {_AGAIN}")
    bounds = (math.prod(shape),) if indices.ndim == 1 else shape
    places = indices.astype(np.int64) if indices.dtype.kind in "iu" else np.array([-1])
    if ((places < 0) | (places >= np.array(bounds))).any():
        raise ModelError(f"{what} has a place outside of its shape {_text(shape)}; {_AGAIN}")
    dense = _zeros(what, shape, values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    return dense


def _zeros(what: str, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    try:
        return np.zeros(shape, dtype)
    except MemoryError as error:
        raise ModelError(f"{what} has the shape {_text(shape)}, which does not fit into memory; {_AGAIN}") from error


def _text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) if shape else "of a scalar"
