"""A 3x3 convolution with bias and ReLU, scheduled by hand; run it with `python -m examples.conv2d`.

Images are NHWC, weights (3, 3, in, out). The weights are a constant: `bind` packs them once, in the order in which the
schedule reads them, and returns a kernel of the remaining inputs.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from tilewright import te

VECTORS = 2

Array = NDArray[np.float32]


def conv2d_task(h: int, w: int, ci: int, co: int) -> tw.Task:
    """What to compute: padding, convolution, and bias with ReLU are a stage each."""
    X = te.placeholder((1, h, w, ci), name="X")
    W = te.placeholder((3, 3, ci, co), name="W", constant=True)
    bias = te.placeholder((co,), name="bias")

    def zero_outside(n: te.Expr, y: te.Expr, x: te.Expr, c: te.Expr) -> te.Expr:
        is_inside = (y >= 1) & (y < h + 1) & (x >= 1) & (x < w + 1)
        return te.select(is_inside, X[n, y - 1, x - 1, c], 0.0)

    P = te.compute((1, h + 2, w + 2, ci), zero_outside, name="P")
    ry, rx, rc = te.reduce_axis(3, name="ry"), te.reduce_axis(3, name="rx"), te.reduce_axis(ci, name="rc")
    Y = te.compute(
        (1, h, w, co),
        lambda n, y, x, c: te.sum(P[n, y + ry, x + rx, rc] * W[ry, rx, rc, c], axis=[ry, rx, rc]),
        name="Y",
    )
    O = te.compute((1, h, w, co), lambda n, y, x, c: te.maximum(Y[n, y, x, c] + bias[c], 0.0), name="O")  # noqa: E741
    return tw.Task([X, W, bias], [O], name="conv2d")


def conv2d_schedule(task: tw.Task, target: tw.Target) -> tw.Schedule:
    """How to compute it: a tile of pixels by channels at a time, from the reduction to the ReLU."""
    s = tw.Schedule(task)
    out = s["O"]
    _, y, x, c = out.loops

    # A tile is VECTORS registers of channels for as many pixels as leave registers for the weights and an input.
    pixels = (target.num_vector_registers - VECTORS - 1) // VECTORS
    x_tile, x_pixel = out.split(x, pixels)
    c_panel, c_lane = out.split(c, VECTORS * target.lanes("float32"))
    out.reorder(y, c_panel, x_tile, x_pixel, c_lane)
    out.unroll(x_pixel)
    out.vectorize(c_lane)
    out.parallel(y)

    # The convolution runs inside the loop over tiles, for one tile, whose sums are in registers.
    conv = s["Y"]
    conv.compute_at(out, x_tile)
    _, y_tile, x_pixel, c_lane, ry, rx, rc = conv.loops
    conv.reorder(ry, rx, rc, y_tile, x_pixel, c_lane)
    conv.unroll(x_pixel)
    conv.vectorize(c_lane)
    s["W"].pack(conv)

    # The padded image is computed once, before all of this.
    pad = s["P"]
    _, pad_y, _, pad_c = pad.loops
    pad.vectorize(pad_c)
    pad.parallel(pad_y)
    return s


def conv2d_numpy(x: Array, w: Array, bias: Array) -> Array:
    """The same in NumPy: a matrix product for each of the nine weights of a window."""
    _, height, width, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out: Array = np.broadcast_to(bias, (1, height, width, len(bias))).copy()
    for ry in range(3):
        for rx in range(3):
            out += padded[:, ry : ry + height, rx : rx + width] @ w[ry, rx]
    return np.maximum(out, np.float32(0), out=out)


def main() -> int:
    task = conv2d_task(56, 56, 64, 64)
    schedule = conv2d_schedule(task, tw.Target.native())
    print(schedule)

    rng = np.random.default_rng(0)
    x, w, bias = (rng.uniform(-1, 1, t.shape).astype(np.float32) for t in task.inputs)
    conv2d = tw.build(schedule).bind(W=w)
    error = np.abs(conv2d(x, bias) - conv2d_numpy(x, w, bias)).max()
    print(f"largest difference from NumPy: {error:.1e}")
    return 0 if error < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
