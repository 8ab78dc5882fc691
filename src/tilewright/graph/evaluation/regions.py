"""RoiAlign and MaxRoiPool for the reference evaluator of ONNX.

Its own RoiAlign goes through samples and channels one by one; it has no MaxRoiPool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from onnx.reference.op_run import OpRun


class _Samples(NamedTuple):
    """Places along one axis between two elements each: the indices of both, and the weight of the second."""

    low: np.ndarray
    high: np.ndarray
    part: np.ndarray
    is_inside: np.ndarray


def _samples(start: float, size: float, num_bins: int, per_bin: int, extent: int) -> _Samples:
    """The places of `per_bin` samples in each of the bins from `start` on; those beyond a border are moved to it."""
    step = size / num_bins
    places = start + step * (np.arange(num_bins)[:, np.newaxis] + (np.arange(per_bin) + 0.5) / per_bin)
    is_inside = (places >= -1) & (places <= extent)
    places = np.clip(places, 0, extent - 1)
    low = places.astype(np.int64)
    return _Samples(low, np.minimum(low + 1, extent - 1), places - low, is_inside)


class RoiAlign(OpRun):  # type: ignore[misc]
    """The means, or the largest, of samples in the bins of regions, each between four elements of an image."""

    def _run(
        self,
        x: np.ndarray,
        rois: np.ndarray,
        batch_indices: np.ndarray,
        coordinate_transformation_mode: str | None = None,
        mode: str = "avg",
        output_height: int = 1,
        output_width: int = 1,
        sampling_ratio: int = 0,
        spatial_scale: float = 1.0,
    ) -> tuple[np.ndarray]:
        # Before opset 16 there was no other mode than this.
        is_half = coordinate_transformation_mode == "half_pixel" and self.run_params["opsets"][""] >= 16
        bins = (output_height, output_width)
        result = np.zeros((len(rois), x.shape[1], *bins), x.dtype)
        for number, (roi, batch) in enumerate(zip(rois.astype(np.float64), batch_indices, strict=True)):
            starts = roi[1::-1] * spatial_scale - 0.5 * is_half
            sizes = (roi[:1:-1] - roi[1::-1]) * spatial_scale
            sizes = sizes if is_half else np.maximum(sizes, 1)
            counts = [sampling_ratio or math.ceil(size / bin_) for size, bin_ in zip(sizes, bins, strict=True)]
            if min(counts) > 0:
                ys, xs = map(_samples, starts, sizes, bins, counts, x.shape[2:])
                result[number] = _sampled(x[batch], ys, xs, mode)
        return (result,)


def _sampled(image: np.ndarray, ys: _Samples, xs: _Samples, mode: str) -> np.ndarray:
    """The samples of each bin, together: [channels, rows of bins, columns of bins]."""
    rows = [(ys.low, 1 - ys.part), (ys.high, ys.part)]
    columns = [(xs.low, 1 - xs.part), (xs.high, xs.part)]
    is_inside = ys.is_inside[:, :, np.newaxis, np.newaxis] & xs.is_inside
    terms = [
        image[:, y[:, :, np.newaxis, np.newaxis], x] * np.where(is_inside, of_y[:, :, np.newaxis, np.newaxis] * of_x, 0)
        for y, of_y in rows
        for x, of_x in columns
    ]
    over = (2, 4)
    found: np.ndarray = np.max(terms, axis=0).max(axis=over) if mode == "max" else np.sum(terms, axis=0).mean(axis=over)
    return found


class MaxRoiPool(OpRun):  # type: ignore[misc]
    """The largest element in each bin of regions; bins overlap where their borders are within an element."""

    def _run(
        self, x: np.ndarray, rois: np.ndarray, pooled_shape: Sequence[int] = (), spatial_scale: float = 1.0
    ) -> tuple[np.ndarray]:
        result = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
        for number, (batch, *corners) in enumerate(rois.tolist()):
            first_x, first_y, last_x, last_y = (_rounded(place * spatial_scale) for place in corners)
            rows = _bins(first_y, last_y, pooled_shape[0], x.shape[2])
            columns = _bins(first_x, last_x, pooled_shape[1], x.shape[3])
            for i, row in enumerate(rows):
                for j, column in enumerate(columns):
                    part = x[int(batch), :, row, column]
                    result[number, :, i, j] = part.max(axis=(1, 2)) if part.size else 0
        return (result,)


def _rounded(place: float) -> int:
    """The nearest element; of two the one farther from the first."""
    return int(math.copysign(math.floor(abs(place) + 0.5), place))


def _bins(first: int, last: int, number: int, extent: int) -> list[slice]:
    size = max(last - first + 1, 1) / number
    ends = [(first + math.floor(n * size), first + math.ceil((n + 1) * size)) for n in range(number)]
    return [slice(*np.clip(bounds, 0, extent).tolist()) for bounds in ends]
