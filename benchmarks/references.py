"""What the measured kernels must compute, in NumPy. Layouts are NHWC, weights are HWIO."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
LAYER_NORM_EPSILON = 1e-5


def conv2d_bias_relu(x: Array, w: Array, bias: Array) -> Array:
    """3x3, stride 1, padding 1: (1, H, W, CI) and (3, 3, CI, CO) give (1, H, W, CO)."""
    out: Array = np.sum([window @ w[r, s] for r, s, window in _windows(x)], axis=0) + bias
    return np.maximum(out, np.float32(0), out=out)


def depthwise(x: Array, w: Array) -> Array:
    """3x3, stride 1, padding 1: (1, H, W, C) and (3, 3, C) give (1, H, W, C)."""
    out: Array = np.sum([window * w[r, s] for r, s, window in _windows(x)], axis=0)
    return out


def softmax(x: Array) -> Array:
    """Of each row."""
    e: Array = np.exp(x - x.max(axis=1, keepdims=True))
    out: Array = e / e.sum(axis=1, keepdims=True)
    return out


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    """Of each row, scaled by `gamma` and shifted by `beta`."""
    centered = x - x.mean(axis=1, keepdims=True)
    variance = np.mean(centered * centered, axis=1, keepdims=True)
    out: Array = centered / np.sqrt(variance + np.float32(LAYER_NORM_EPSILON)) * gamma + beta
    return out


def _windows(x: Array) -> list[tuple[int, int, Array]]:
    _, height, width, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return [(r, s, padded[:, r : r + height, s : s + width]) for r in range(3) for s in range(3)]
