"""The workloads in torch, at its best: oneDNN in both memory formats and with weights packed ahead of time.

Convolutions are in `torch_convolutions`. torch is imported in the functions, so that the module can be read without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.peers.peer import Array, Peer
from tilewright.peers.shape import Shape
from tilewright.peers.torch_convolutions import CONVOLUTIONS, apply_fused

# torch has no types here.
Tensor = Any


def torch_ways(shape: Shape, arrays: Mapping[str, Array]) -> dict[str, Peer]:
    """Every way of torch that may be the fastest."""
    import torch

    tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    make = _MAKE.get(shape.family) or CONVOLUTIONS[shape.family]
    return make(shape, tensors)


def _matmul(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    import torch

    a, b = given["A"], given["B"]
    out = torch.empty((*a.shape[:-1], b.shape[-1]))
    multiply = torch.bmm if a.ndim == 3 else torch.mm
    return _plain({"torch": lambda: apply_fused(multiply(a, b, out=out), shape, given)})


def _attention_scores(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    import torch

    q, k = given["Q"], given["K"]
    return _plain(
        {
            "torch matmul": lambda: torch.matmul(q.permute(0, 2, 1, 3), k.permute(0, 2, 3, 1)),
            "torch einsum": lambda: torch.einsum("bihd,bjhd->bhij", q, k),
        }
    )


def _norm(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    import torch

    rows = given["A"].reshape(len(given["A"]), -1)
    return _plain(
        {
            "torch vector_norm": lambda: torch.linalg.vector_norm(rows, dim=1),
            "torch dot": lambda: torch.bmm(rows[:, None], rows[:, :, None]).flatten().sqrt_(),
        }
    )


def _softmax(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    import torch

    a = given["A"]
    out = torch.empty_like(a)
    return _plain({"torch": lambda: torch.softmax(a, -1, out=out)})


def _plain(calls: Mapping[str, Callable[[], Tensor]]) -> dict[str, Peer]:
    """Calls whose result is in the layout of the workload already."""
    return {name: Peer(call, _as_numpy(call)) for name, call in calls.items()}


def _as_numpy(call: Callable[[], Tensor]) -> Callable[[], Array]:
    return lambda: np.asarray(call().numpy())


_MAKE: dict[str, Callable[[Shape, Mapping[str, Tensor]], dict[str, Peer]]] = {
    "gmm": _matmul,
    "tbg": _attention_scores,
    "nrm": _norm,
    "sfm": _softmax,
}
