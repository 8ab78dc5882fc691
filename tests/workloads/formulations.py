"""What each family computes, written with NumPy's own means: sliding windows, einsum, loops over the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[Any]


def windows(x: Array, kernel: tuple[int, ...], stride: int, padding: int, dilation: int = 1) -> Array:
    """The windows of x[n, spatial..., rest...] as [n, positions..., rest..., kernel...]."""
    axes = tuple(range(1, 1 + len(kernel)))
    widths = [(padding, padding) if axis in axes else (0, 0) for axis in range(x.ndim)]
    reach = tuple((k - 1) * dilation + 1 for k in kernel)
    view = sliding_window_view(np.pad(x, widths), reach, axes)
    step, skip = slice(None, None, stride), slice(None, None, dilation)
    index: tuple[Any, ...] = (slice(None), *(step for _ in kernel), ..., *(skip for _ in kernel))
    result: Array = view[index]
    return result


def conv(x: Array, w: Array, stride: int, padding: int, dilation: int = 1) -> Array:
    """A convolution in any number of dimensions; w is [kernel..., c, f]."""
    num = w.ndim - 2
    seen = windows(x, w.shape[:num], stride, padding, dilation)
    result: Array = np.tensordot(seen, w, ((-num - 1, *range(-num, 0)), (num, *range(num))))
    return result


def grouped_conv(x: Array, w: Array, stride: int, padding: int, dilation: int = 1) -> Array:
    """x is [n, y, x, g, c], w is [r, s, g, c, f]."""
    parts = [conv(x[:, :, :, g], w[:, :, g], stride, padding, dilation) for g in range(x.shape[3])]
    return np.stack(parts, axis=3)


def depthwise(x: Array, w: Array, stride: int, padding: int) -> Array:
    result: Array = np.einsum("nyxcrs,rsc->nyxc", windows(x, (w.shape[0], w.shape[1]), stride, padding), w)
    return result


def transposed(x: Array, w: Array, stride: int, padding: int) -> Array:
    """By its definition: every input element adds its kernel to the output."""
    batch, height, width, _ = x.shape
    r, s, _, f = w.shape
    whole = np.zeros((batch, (height - 1) * stride + r, (width - 1) * stride + s, f), x.dtype)
    for y in range(height):
        for z in range(width):
            whole[:, y * stride : y * stride + r, z * stride : z * stride + s] += np.einsum(
                "nc,rscf->nrsf", x[:, y, z], w
            )
    return whole[:, padding : whole.shape[1] - padding, padding : whole.shape[2] - padding]


def capsule(x: Array, w: Array, stride: int, padding: int) -> Array:
    """A convolution of 4x4 matrices."""
    seen = windows(x, (w.shape[0], w.shape[1]), stride, padding)
    result: Array = np.einsum("nyxikcrs,rskjcf->nyxijf", seen, w)
    return result


def softmax(a: Array) -> Array:
    powers: Array = np.exp(a - a.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def attention_scores(q: Array, k: Array) -> Array:
    result: Array = np.einsum("bihd,bjhd->bhij", q, k)
    return result
