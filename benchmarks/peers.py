"""The libraries that the kernels are measured against, each called the way it is fastest.

torch is imported where it is used: the cases that do not need it run without it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.references import LAYER_NORM_EPSILON, Array

Call = Callable[[], object]


def numpy_gemm(a: Array, b: Array) -> dict[str, Call]:
    """OpenBLAS through NumPy, into an array that exists already."""
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    return {"OpenBLAS": lambda: np.matmul(a, b, out=out)}


def torch_depthwise(x: Array, w: Array) -> dict[str, Call]:
    """oneDNN through torch: both memory formats, and channels last with weights packed ahead of time."""
    import torch
    from torch.nn.functional import conv2d

    channels = x.shape[3]
    image = torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    weight = torch.from_numpy(np.ascontiguousarray(w.transpose(2, 0, 1)[:, None]))
    image_last = image.to(memory_format=torch.channels_last)
    weight_last = weight.to(memory_format=torch.channels_last)
    one = [1, 1]
    packed = torch._C._nn.mkldnn_reorder_conv2d_weight(weight.to_mkldnn(), one, one, one, channels, list(image.shape))
    pointwise = torch.ops.mkldnn._convolution_pointwise
    return {
        "torch": lambda: conv2d(image, weight, None, 1, 1, 1, channels),
        "torch channels last": lambda: conv2d(image_last, weight_last, None, 1, 1, 1, channels),
        "torch packed weights": lambda: pointwise(image_last, packed, None, one, one, one, channels, "none", [], ""),
    }


def torch_softmax(x: Array) -> dict[str, Call]:
    """torch's softmax, into a tensor that exists already."""
    import torch

    rows = torch.from_numpy(x)
    out = torch.empty_like(rows)
    return {"torch": lambda: torch.softmax(rows, 1, out=out)}


def torch_layer_norm(x: Array, gamma: Array, beta: Array) -> dict[str, Call]:
    """torch's fused layer norm."""
    import torch
    from torch.nn.functional import layer_norm

    rows, scale, shift = (torch.from_numpy(array) for array in (x, gamma, beta))
    shape = (x.shape[1],)
    return {"torch": lambda: layer_norm(rows, shape, scale, shift, LAYER_NORM_EPSILON)}


def parallel_copy(source: Array, threads: int) -> dict[str, Call]:
    """memcpy of equal parts by as many threads (NumPy lets go of the interpreter lock while it copies)."""
    out = np.empty_like(source)
    parts = list(zip(np.array_split(out, threads), np.array_split(source, threads), strict=True))
    pool = ThreadPoolExecutor(threads)

    def copy() -> Array:
        others = [pool.submit(np.copyto, target, part) for target, part in parts[1:]]
        np.copyto(*parts[0])
        for other in others:
            other.result()
        return out

    return {"parallel copy": copy}
