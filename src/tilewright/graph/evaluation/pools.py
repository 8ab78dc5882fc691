"""Pools for the reference evaluator of ONNX, where shapes are known only when they run.

Its own MaxPool takes no integers and numbers places within a channel; its own AveragePool counts what lies beyond a
window that was rounded up; it has no GlobalLpPool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.operators.window import Window


def _padded(window: Window) -> tuple[int, int]:
    """What lies before and after the elements, for the last window too."""
    return window.before, window.padded_size - window.size - window.before


def _places(window: Window, tap: int) -> slice:
    """What all windows read for a tap."""
    start = tap * window.dilation
    return slice(start, start + (window.output - 1) * window.stride + 1, window.stride)


def _windows(sizes: Sequence[int], attributes: dict[str, Any]) -> list[Window]:
    kernel, num = attributes["kernel_shape"], len(sizes)
    strides = attributes.get("strides") or [1] * num
    dilations = attributes.get("dilations") or [1] * num
    pads = attributes.get("pads") or [0] * (2 * num)
    auto = attributes.get("auto_pad") or "NOTSET"
    found = []
    for d, size in enumerate(sizes):
        reach = (kernel[d] - 1) * dilations[d] + 1
        before, after = (pads[d], pads[num + d]) if auto == "NOTSET" else (0, 0)
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            output = math.ceil(size / strides[d])
            total = max((output - 1) * strides[d] + reach - size, 0)
            before, after = (total // 2, total - total // 2)[:: 1 if auto == "SAME_UPPER" else -1]
        else:
            last = size + before + after - reach
            output = (math.ceil(last / strides[d]) if attributes.get("ceil_mode") else int(last / strides[d])) + 1
            if attributes.get("ceil_mode") and (output - 1) * strides[d] >= size + before:
                output -= 1
        found.append(Window(size, kernel[d], strides[d], dilations[d], before, after, output))
    return found


def _taps(x: np.ndarray, windows: Sequence[Window], filling: Any) -> np.ndarray:
    """What the windows read for each tap: [taps, batch, channels, *outputs]."""
    padded = np.pad(x, [(0, 0), (0, 0), *(_padded(w) for w in windows)], constant_values=filling)
    taps = product(*(range(w.kernel) for w in windows))
    parts = [tuple(_places(w, tap) for w, tap in zip(windows, each, strict=True)) for each in taps]
    return np.stack([padded[(slice(None), slice(None), *part)] for part in parts])


class MaxPool(OpRun):  # type: ignore[misc]
    """The largest element of each window, and its place among all elements."""

    def _run(self, x: np.ndarray, **attributes: Any) -> tuple[np.ndarray, ...]:
        windows = _windows(x.shape[2:], attributes)
        lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
        taps = _taps(x, windows, lowest)
        if len(self.onnx_node.output) < 2:
            return (taps.max(axis=0),)
        order = (0, 1, *range(2, x.ndim)) if not attributes.get("storage_order") else (0, 1, *range(x.ndim - 1, 1, -1))
        shape = [x.shape[axis] for axis in order]
        numbers = np.arange(x.size).reshape(shape).transpose(np.argsort(order))
        places = _taps(numbers, windows, -1)
        # Of equal ones the first counts, and no padding.
        best = np.where(places >= 0, taps, lowest).argmax(axis=0)[np.newaxis]
        return taps.max(axis=0), np.take_along_axis(places, best, axis=0)[0].astype(np.int64)


class AveragePool(OpRun):  # type: ignore[misc]
    """The mean of each window: of its elements, or of the padding, too, but of nothing beyond that."""

    def _run(self, x: np.ndarray, count_include_pad: int = 0, **attributes: Any) -> tuple[np.ndarray]:
        windows = _windows(x.shape[2:], attributes)
        counted = np.ones((1, 1, *x.shape[2:]))
        if count_include_pad:
            counted = np.pad(counted, [(0, 0), (0, 0), *((w.before, w.after) for w in windows)], constant_values=1)
            grown = [
                Window(w.size + w.before + w.after, w.kernel, w.stride, w.dilation, 0, 0, w.output) for w in windows
            ]
            counts = _taps(counted, grown, 0).sum(axis=0)
        else:
            counts = _taps(counted, windows, 0).sum(axis=0)
        wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
        return ((_taps(wide, windows, 0).sum(axis=0) / counts).astype(x.dtype),)


class GlobalLpPool(OpRun):  # type: ignore[misc]
    """The norm of each channel."""

    def _run(self, x: np.ndarray, p: int = 2) -> tuple[np.ndarray]:
        over = tuple(range(2, x.ndim))
        norm = (np.abs(x.astype(np.float64)) ** p).sum(axis=over, keepdims=True) ** (1 / p)
        return (norm.astype(x.dtype),)
