"""Convolutions as tests write them, and what they are in double precision."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright import te
from tilewright.te import Task


def layer(size: int, inputs: int, outputs: int, *, padding: int = 1, batch: int = 1) -> Task:
    """A 3x3 convolution with bias, a residual sum and ReLU, as networks have them."""
    X = te.placeholder((batch, size, size, inputs), name="X")
    W = te.placeholder((3, 3, inputs, outputs), name="W", constant=True)
    bias = te.placeholder((outputs,), name="bias", constant=True)
    rows = size + 2 * padding - 2
    R = te.placeholder((batch, rows, rows, outputs), name="R")
    r, s, c = te.reduce_axis(3, "r"), te.reduce_axis(3, "s"), te.reduce_axis(inputs, "c")
    P = X
    if padding:
        P = te.compute(
            (batch, size + 2 * padding, size + 2 * padding, inputs),
            lambda n, y, x, c: te.select(
                (y >= padding) & (y < size + padding) & (x >= padding) & (x < size + padding),
                X[n, y - padding, x - padding, c],
                0.0,
            ),
            "padded",
        )
    Y = te.compute(
        (batch, rows, rows, outputs),
        lambda n, y, x, f: te.sum(P[n, y + r, x + s, c] * W[r, s, c, f], axis=[r, s, c]),
        "conv",
    )
    Z = te.compute(Y.shape, lambda n, y, x, f: te.maximum(Y[n, y, x, f] + bias[f] + R[n, y, x, f], 0.0), "relu")
    return Task([X, W, bias, R], Z, "layer")


def in_double(arrays: Sequence[NDArray[Any]], padding: int = 1) -> NDArray[Any]:
    """What `layer` computes."""
    X, W, bias, R = arrays
    padded = np.pad(X.astype(np.float64), ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows = R.shape[1]
    total = R.astype(np.float64) + bias
    for r in range(3):
        for s in range(3):
            total += padded[:, r : r + rows, s : s + rows] @ W[r, s].astype(np.float64)
    result: NDArray[Any] = np.maximum(total, 0)
    return result


def windows(
    sizes: tuple[int, ...],
    taps: tuple[int, ...],
    inputs: int,
    outputs: int,
    *,
    first: int = 0,
    batch: int = 1,
    stride: int = 1,
    dilations: Sequence[int] = (),
) -> Task:
    """A convolution of any number of windows, which begin at `first`."""
    steps = dilations or [1] * len(taps)
    reach = [(num - 1) * step for num, step in zip(taps, steps, strict=True)]
    shape = [(size - 1) * stride + far + first + 2 for size, far in zip(sizes, reach, strict=True)]  # one is not read
    X = te.placeholder((batch, *shape, inputs), name="X")
    W = te.placeholder((*taps, inputs, outputs), name="W", constant=True)
    over, c = [te.reduce_axis(num, f"r{n}") for n, num in enumerate(taps)], te.reduce_axis(inputs, "c")

    def element(*i: te.Expr) -> te.Expr:
        places = [a * stride + r * step + first for a, r, step in zip(i[1:-1], over, steps, strict=True)]
        return te.sum(X[(i[0], *places, c)] * W[(*over, c, i[-1])], axis=[*over, c])

    return Task([X, W], te.compute((batch, *sizes, outputs), element, "conv"))


def windows_in_double(
    X: NDArray[Any],
    W: NDArray[Any],
    sizes: tuple[int, ...],
    first: int,
    stride: int = 1,
    dilations: Sequence[int] = (),
) -> NDArray[Any]:
    """What `windows` computes."""
    total = np.zeros((X.shape[0], *sizes, W.shape[-1]))
    steps = dilations or [1] * len(sizes)
    for taps in itertools.product(*map(range, W.shape[:-2])):
        begin = [tap * step + first for tap, step in zip(taps, steps, strict=True)]
        places = tuple(slice(b, b + (size - 1) * stride + 1, stride) for b, size in zip(begin, sizes, strict=True))
        total += X[(slice(None), *places)].astype(np.float64) @ W[taps].astype(np.float64)
    return total
