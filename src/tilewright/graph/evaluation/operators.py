"""Operators for the reference evaluator of ONNX in the place of its own, which do not follow the specification.

Its own Optional wraps a value that nothing unwraps; BatchNormalization before opset 14 always trains; ConvTranspose
mixes up groups; GlobalMaxPool is for images of two dimensions; GridSample moves cubics from outside of an image to its
border, where PyTorch and onnxruntime move what they sum up; LpNormalization adds up elements with their signs; LRN
stops at as many channels as there are images; Pad refuses to crop; Softmax and its kin take the axis of opsets before
13 for one axis; Unique without order takes rows for elements; GatherElements and OneHot take less than they may be
given, and so does CumSum of its axis; LayerNormalization of halves overflows; Flatten does not know how long rows
without elements are; Mean adds to its first operand, however small that is; Erf rounds float64 to float32; ReduceLogSum
and ReduceLogSumExp know no logarithm of integers, and Det no determinant of halves.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_batch_normalization import BatchNormalization_14
from onnx.reference.ops.op_conv_transpose import ConvTranspose as UngroupedConvTranspose
from onnx.reference.ops.op_grid_sample import GridSample as MovingGridSample

from tilewright.graph.evaluation.contrib_operators import CONTRIB_OPERATORS
from tilewright.graph.evaluation.control_flow import Loop, Scan
from tilewright.graph.evaluation.features import FeatureVectorizer, LabelEncoder, Normalizer, Scaler
from tilewright.graph.evaluation.labels import CategoryMapper, ZipMap
from tilewright.graph.evaluation.linear_models import LinearClassifier, LinearRegressor
from tilewright.graph.evaluation.pools import AveragePool, GlobalLpPool, MaxPool
from tilewright.graph.evaluation.recurrent import GRU, LSTM, RNN
from tilewright.graph.evaluation.regions import MaxRoiPool, RoiAlign
from tilewright.graph.evaluation.sequences import SequenceInsert, SequenceMap
from tilewright.graph.evaluation.spectral import STFT
from tilewright.graph.evaluation.strings import Cast, StringNormalizer, Tokenizer
from tilewright.graph.evaluation.support_vectors import SVMClassifier, SVMRegressor
from tilewright.graph.evaluation.suppression import NonMaxSuppression
from tilewright.graph.evaluation.trees import TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor
from tilewright.graph.protos import CONTRIB


class Optional(OpRun):  # type: ignore[misc]
    """The value itself, or None."""

    def _run(self, value: Any = None, **_: Any) -> tuple[Any]:
        return (value,)

    def _check_and_fix_outputs(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return outputs


class BatchNormalization(BatchNormalization_14):  # type: ignore[misc]
    """By the given mean and variance, unless the node says that it trains, which opsets before 14 cannot."""

    def _run(self, *inputs: np.ndarray, training_mode: int = 0, **attributes: Any) -> tuple[np.ndarray, ...]:
        outputs: tuple[np.ndarray, ...] = super()._run(*inputs, training_mode=training_mode, **attributes)
        return outputs


class ConvTranspose(UngroupedConvTranspose):  # type: ignore[misc]
    """Each group by itself; a shape that is asked for says how much is padded."""

    def _run(
        self, X: np.ndarray, W: np.ndarray, B: np.ndarray | None = None, group: int = 1, **attributes: Any
    ) -> tuple[np.ndarray]:
        if attributes.get("output_shape") and attributes.get("auto_pad") not in ("SAME_UPPER", "SAME_LOWER"):
            attributes |= {"pads": None, "auto_pad": "SAME_LOWER"}
        biases: Sequence[np.ndarray | None] = [None] * group if B is None else np.split(B, group)
        outputs = []
        for x, w, b in zip(np.split(X, group, axis=1), np.split(W, group), biases, strict=True):
            outputs.append(super()._run(x, w, b, group=1, **attributes)[0])
        return (np.concatenate(outputs, axis=1),)


class GlobalMaxPool(OpRun):  # type: ignore[misc]
    """The largest element of each channel."""

    def _run(self, X: np.ndarray) -> tuple[np.ndarray]:
        return (X.max(axis=tuple(range(2, X.ndim)), keepdims=True),)


class LpNormalization(OpRun):  # type: ignore[misc]
    """Elements divided by the norm of their row; those of a row of zeros stay zeros."""

    def _run(self, x: np.ndarray, axis: int = -1, p: int = 2) -> tuple[np.ndarray]:
        norm = np.power(np.power(np.abs(x), p).sum(axis=axis, keepdims=True), 1 / p)
        return (np.divide(x, norm, out=np.zeros_like(x), where=norm != 0).astype(x.dtype),)


class LRN(OpRun):  # type: ignore[misc]
    """Each element divided by a power of the squares of its neighbours in other channels."""

    def _run(self, x: np.ndarray, alpha: float, beta: float, bias: float, size: int) -> tuple[np.ndarray]:
        squares = np.zeros_like(x)
        for channel in range(x.shape[1]):
            first, end = max(0, channel - (size - 1) // 2), channel + size // 2 + 1
            squares[:, channel] = (x[:, first:end] ** 2).sum(axis=1)
        return ((x / (bias + alpha / size * squares) ** beta).astype(x.dtype),)


class GridSample(MovingGridSample):  # type: ignore[misc]
    """Cubics with a border stay where they are outside of the image: each of their taps is moved to the border.

    Before opset 20, modes have other names.
    """

    def _run(self, X: np.ndarray, grid: np.ndarray, mode: str = "linear", **attributes: Any) -> tuple[np.ndarray]:
        self.mode = mode.removeprefix("bi")
        outputs: tuple[np.ndarray] = super()._run(X, grid, mode=self.mode, **attributes)
        return outputs

    def _prepare_border(self, dims: Sequence[int], align_corners: bool) -> np.ndarray:
        borders: np.ndarray = super()._prepare_border(dims, align_corners)
        if self.mode == "cubic" and self.padding_mode == "border":
            borders = np.repeat([-np.inf, np.inf], len(dims))
        return borders


class Unique(OpRun):  # type: ignore[misc]
    """The elements, or slices along an axis, that differ, where each first is, which one each is, and how many."""

    def _run(self, x: np.ndarray, axis: int | None = None, sorted: int = 1) -> tuple[np.ndarray, ...]:
        along = x.reshape(-1) if axis is None else x
        place = 0 if axis is None else axis
        _, first, which, counts = np.unique(along, True, True, True, axis)
        order = np.arange(len(first)) if sorted else np.argsort(first)
        places = np.argsort(order)[which.reshape(-1)]
        values = along.take(first[order], axis=place)
        outputs = (values, *(numbers.astype(np.int64) for numbers in (first[order], places, counts[order])))
        return outputs[: len(self.onnx_node.output)]


class LayerNormalization(OpRun):  # type: ignore[misc]
    """Elements less their mean, by their spread, along the last axes: in float32 at least, whatever their type."""

    def _run(
        self,
        x: np.ndarray,
        scale: np.ndarray,
        bias: np.ndarray | None = None,
        axis: int = -1,
        epsilon: float = 1e-5,
        stash_type: int = 1,
    ) -> tuple[np.ndarray, ...]:
        wide = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
        over = tuple(range(axis % x.ndim, x.ndim))
        mean = wide.mean(axis=over, keepdims=True)
        inverse = 1 / np.sqrt(np.square(wide - mean).mean(axis=over, keepdims=True) + epsilon)
        normal = ((wide - mean) * inverse).astype(x.dtype) * scale
        result = normal if bias is None else normal + bias
        outputs = (result.astype(x.dtype), mean.astype(np.float32), inverse.astype(np.float32))
        return outputs[: len(self.onnx_node.output)]


class GatherElements(OpRun):  # type: ignore[misc]
    """Elements along an axis by indices, of which there may be fewer along the other axes."""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int = 0) -> tuple[np.ndarray]:
        axis %= data.ndim
        part = tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(indices.shape))
        return (np.take_along_axis(data[part], indices.astype(np.int64), axis=axis),)


class OneHot(OpRun):  # type: ignore[misc]
    """One of two values: the second at an index, the first elsewhere."""

    def _run(self, indices: np.ndarray, depth: np.ndarray, values: np.ndarray, axis: int = -1) -> tuple[np.ndarray]:
        number = int(np.asarray(depth).item())
        places = indices.astype(np.int64)
        hot = np.where(places < 0, places + number, places)[..., np.newaxis] == np.arange(number)
        return (np.where(np.moveaxis(hot, -1, axis), values[1], values[0]).astype(values.dtype),)


class Flatten(OpRun):  # type: ignore[misc]
    """A matrix: the dimensions before an axis as its rows, the others as its columns."""

    def _run(self, x: np.ndarray, axis: int = 1) -> tuple[np.ndarray]:
        return (x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])),)


class CumSum(OpRun):  # type: ignore[misc]
    """Running sums along an axis, from its end if asked for, and without the element itself."""

    def _run(self, x: np.ndarray, axis: np.ndarray, exclusive: int = 0, reverse: int = 0) -> tuple[np.ndarray]:
        place = int(np.asarray(axis).item())
        rows = np.moveaxis(x, place, 0)
        rows = rows[::-1] if reverse else rows
        totals = np.cumsum(rows, axis=0, dtype=x.dtype)
        if exclusive and len(rows):
            totals = np.concatenate([np.zeros_like(totals[:1]), totals[:-1]])
        return (np.moveaxis(totals[::-1] if reverse else totals, 0, place),)


class Mean(OpRun):  # type: ignore[misc]
    """The mean of operands that are broadcast together."""

    def _run(self, *operands: np.ndarray) -> tuple[np.ndarray]:
        return ((reduce(np.add, operands) / len(operands)).astype(operands[0].dtype),)


class Erf(OpRun):  # type: ignore[misc]
    """The error function."""

    def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
        return (np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype),)


class Pad(OpRun):  # type: ignore[misc]
    """More elements before and after each axis, or fewer."""

    def _run(
        self,
        data: np.ndarray,
        pads: np.ndarray,
        constant_value: np.ndarray | None = None,
        axes: np.ndarray | None = None,
        mode: str = "constant",
    ) -> tuple[np.ndarray]:
        places = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
        widths = [(0, 0)] * data.ndim
        for axis, before, after in zip(places, pads[: len(places)], pads[len(places) :], strict=True):
            widths[axis] = (int(before), int(after))
        cropped = data[tuple(slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, data.shape, strict=True))]
        added = [(max(0, before), max(0, after)) for before, after in widths]
        if mode != "constant":
            return (np.pad(cropped, added, mode=mode),)  # type: ignore[call-overload]
        value = 0 if constant_value is None else np.asarray(constant_value).item()
        return (np.pad(cropped, added, constant_values=value),)


class _AlongAxis(OpRun):  # type: ignore[misc]
    """An operator on rows of elements. Before opset 13, a row is an axis and all after it."""

    def _run(self, x: np.ndarray, axis: int = -1, **_: Any) -> tuple[np.ndarray]:
        if self.run_params["opsets"][""] >= 13:
            return (self._of_rows(x, axis),)
        given = [attribute.i for attribute in self.onnx_node.attribute if attribute.name == "axis"]
        start = given[0] if given else 1
        start = start + x.ndim if start < 0 else start
        rows = x.reshape(int(np.prod(x.shape[:start])), -1)
        return (self._of_rows(rows, 1).reshape(x.shape),)

    @abstractmethod
    def _of_rows(self, x: np.ndarray, axis: int) -> np.ndarray:
        """The results for the rows along the axis."""


class Softmax(_AlongAxis):
    def _of_rows(self, x: np.ndarray, axis: int) -> np.ndarray:
        powers = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
        result: np.ndarray = powers / powers.sum(axis=axis, keepdims=True)
        return result.astype(x.dtype)


class LogSoftmax(_AlongAxis):
    def _of_rows(self, x: np.ndarray, axis: int) -> np.ndarray:
        low = x - x.max(axis=axis, keepdims=True, initial=-np.inf)
        result: np.ndarray = low - np.log(np.exp(low).sum(axis=axis, keepdims=True))
        return result.astype(x.dtype)


class Hardmax(_AlongAxis):
    def _of_rows(self, x: np.ndarray, axis: int) -> np.ndarray:
        result = np.zeros_like(x)
        np.put_along_axis(result, np.expand_dims(x.argmax(axis=axis), axis), 1, axis=axis)
        return result


class ReduceLogSum(OpRun):  # type: ignore[misc]
    """The logarithm, of integers rounded towards zero."""

    def _run(
        self, x: np.ndarray, axes: Sequence[int] | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> tuple[np.ndarray]:
        chosen = tuple(int(axis) for axis in axes) if axes is not None else ()
        if not chosen and not noop_with_empty_axes:
            chosen = tuple(range(x.ndim))
        wide = x if x.dtype.kind == "f" and x.itemsize > 2 else x.astype(np.float64)
        return (self._reduced(wide, chosen, bool(keepdims)).astype(x.dtype),)

    def _reduced(self, x: np.ndarray, axes: tuple[int, ...], keeps: bool) -> np.ndarray:
        result: np.ndarray = np.log(x.sum(axis=axes, keepdims=keeps))
        return result


class ReduceLogSumExp(ReduceLogSum):
    def _reduced(self, x: np.ndarray, axes: tuple[int, ...], keeps: bool) -> np.ndarray:
        result: np.ndarray = np.logaddexp.reduce(x, axis=axes, keepdims=keeps)  # type: ignore[call-overload]
        return result


class Det(OpRun):  # type: ignore[misc]
    def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
        wide = x if x.itemsize > 2 else x.astype(np.float32)
        return (np.asarray(np.linalg.det(wide), x.dtype),)


class Inverse(OpRun):  # type: ignore[misc]
    """Of each matrix; onnxruntime makes PyTorch's exporter write it. What has no inverse is all NaN here."""

    op_domain = CONTRIB

    def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
        result = np.full(x.shape, np.nan, x.dtype)
        wide = x if x.itemsize > 2 else x.astype(np.float32)
        for place in np.ndindex(x.shape[:-2]):
            with suppress(np.linalg.LinAlgError):
                result[place] = np.linalg.inv(wide[place])
        return (result,)


OPERATORS = [
    Loop,
    Scan,
    RNN,
    GRU,
    LSTM,
    STFT,
    ZipMap,
    CategoryMapper,
    FeatureVectorizer,
    LabelEncoder,
    LinearClassifier,
    LinearRegressor,
    Normalizer,
    Scaler,
    SVMClassifier,
    SVMRegressor,
    TreeEnsemble,
    TreeEnsembleClassifier,
    TreeEnsembleRegressor,
    NonMaxSuppression,
    AveragePool,
    MaxPool,
    GlobalLpPool,
    LayerNormalization,
    GatherElements,
    OneHot,
    Flatten,
    CumSum,
    Mean,
    Erf,
    ReduceLogSum,
    ReduceLogSumExp,
    Det,
    Inverse,
    MaxRoiPool,
    RoiAlign,
    SequenceInsert,
    SequenceMap,
    Cast,
    StringNormalizer,
    Tokenizer,
    Unique,
    Optional,
    BatchNormalization,
    ConvTranspose,
    GlobalMaxPool,
    GridSample,
    LpNormalization,
    LRN,
    Pad,
    Softmax,
    LogSoftmax,
    Hardmax,
    *CONTRIB_OPERATORS,
]
