"""The workloads for which NumPy has an operator: matrix products by its BLAS, and reductions of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tilewright.peers.peer import Array, Peer
from tilewright.peers.shape import Shape


def numpy_ways(shape: Shape, arrays: Mapping[str, Array]) -> dict[str, Peer]:
    """NumPy's one way of the workload; none for convolutions and fused stages."""
    make = _MAKE.get(shape.family)
    if make is None or shape.fused:
        return {}
    call = make(arrays)
    return {"numpy": Peer(call, call)}


def _matmul(arrays: Mapping[str, Array]) -> Callable[[], Array]:
    a, b = arrays["A"], arrays["B"]
    out = np.empty((*a.shape[:-1], b.shape[-1]), np.float32)
    return lambda: np.matmul(a, b, out=out)


def _attention_scores(arrays: Mapping[str, Array]) -> Callable[[], Array]:
    q, k = arrays["Q"].transpose(0, 2, 1, 3), arrays["K"].transpose(0, 2, 3, 1)
    out = np.empty((*q.shape[:-1], k.shape[-1]), np.float32)
    return lambda: np.matmul(q, k, out=out)


def _norm(arrays: Mapping[str, Array]) -> Callable[[], Array]:
    rows = arrays["A"].reshape(len(arrays["A"]), 1, -1)
    return lambda: np.sqrt(np.matmul(rows, rows.transpose(0, 2, 1)).reshape(-1))


def _softmax(arrays: Mapping[str, Array]) -> Callable[[], Array]:
    a = arrays["A"]
    out = np.empty_like(a)

    def call() -> Array:
        np.subtract(a, a.max(-1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(-1, keepdims=True), out=out)
        return out

    return call


_MAKE: dict[str, Callable[[Mapping[str, Array]], Callable[[], Array]]] = {
    "gmm": _matmul,
    "tbg": _attention_scores,
    "nrm": _norm,
    "sfm": _softmax,
}
