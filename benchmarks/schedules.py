"""The measured kernels: tensor expressions with schedules written by hand from the public primitives.

Tile sizes follow the target: a register tile of `rows` by `vectors` needs rows * vectors accumulators, the vectors of
one operand and a broadcast of the other, all in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

import tilewright as tw
from tilewright import te
from tilewright.runtime import Kernel
from tilewright.te import Expr, Tensor

EPSILON = 1e-5


_chosen = "native"


def choose_target(name: str) -> None:
    """Build for this target from now on."""
    global _chosen
    _chosen = name


def target() -> tw.Target:
    return tw.Target.parse(_chosen)


# --- matrix product -----------------------------------------------------------------------------------------


def gemm(m: int, n: int, k: int, threads: int) -> Kernel:
    """C = A B, both operands as they come: B is packed at run time."""
    return tw.build(gemm_schedule(m, n, k, threads, target()), target(), threads)


def gemm_task(m: int, n: int, k: int) -> tw.Task:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return tw.Task([a, b], [c], name="gemm")


def gemm_schedule(m: int, n: int, k: int, threads: int, target: tw.Target) -> tw.Schedule:
    """For each panel of columns: pack the panel of B, then run the register tiles down the rows."""
    s = tw.Schedule(gemm_task(m, n, k))
    rows, columns = register_tile(m, n, target)
    c = s["C"]
    i, j, r = c.loops
    i_tile, i_row = c.split(i, rows)
    j_panel, j_lane = c.split(j, columns)
    c.reorder(j_panel, i_tile, r, i_row, j_lane)
    c.unroll(i_row)
    c.vectorize(j_lane)
    panel = s["B"].pack(c)
    panel.compute_at(c, j_panel)
    panel.vectorize(panel.loops[-1])
    if threads > 1:
        c.parallel(j_panel)
    return s


def register_tile(m: int, n: int, target: tw.Target) -> tuple[int, int]:
    """The register tile that wastes least: rows and columns."""
    lanes = target.lanes("float32")
    fits = [(rows, vectors) for vectors in (4, 3, 2) for rows in range(4, 15) if fits_registers(rows, vectors, target)]
    return min(
        ((rows, vectors * lanes) for rows, vectors in fits if vectors * lanes <= n and rows <= m),
        key=lambda tile: tile_cost(m, n, tile, lanes),
        default=(min(m, 4), min(n, lanes)),
    )


def fits_registers(rows: int, vectors: int, target: tw.Target) -> bool:
    return rows * vectors + vectors + 1 <= target.num_vector_registers


def tile_cost(m: int, n: int, tile: tuple[int, int], lanes: int) -> float:
    """Work with the waste of the last tiles, loads for each multiply-add, and a little for the size of the code."""
    rows, columns = tile
    work = -(-m // rows) * rows * (-(-n // columns)) * columns
    vectors = columns // lanes
    loads = (rows + vectors) / (rows * vectors)
    too_few = max(0, 10 - rows * vectors)  # accumulators to hide the latency of a multiply-add
    return work * (1 + 0.2 * loads + 0.002 * rows * vectors + 0.02 * too_few)


# --- convolution --------------------------------------------------------------------------------------------


def conv2d(h: int, w: int, ci: int, co: int, threads: int) -> Kernel:
    """3x3 convolution, stride 1, padding 1, NHWC, with bias and ReLU; the weights are packed ahead."""
    return tw.build(conv2d_schedule(h, w, ci, co, threads, target()), target(), threads)


def padded(x: Tensor, by: int = 1) -> Tensor:
    """Zeros around the image of an NHWC tensor."""
    n, h, w, c = x.shape

    def element(b: Expr, i: Expr, j: Expr, d: Expr) -> Expr:
        inside = (i >= by) & (i < h + by) & (j >= by) & (j < w + by)
        return te.select(inside, x[b, i - by, j - by, d], 0.0)

    return te.compute((n, h + 2 * by, w + 2 * by, c), element, name="P")


def conv2d_task(h: int, w: int, ci: int, co: int) -> tw.Task:
    x = te.placeholder((1, h, w, ci), name="X")
    weights = te.placeholder((3, 3, ci, co), name="W", constant=True)
    bias = te.placeholder((co,), name="bias")
    p = padded(x)
    ry, rx, rc = te.reduce_axis(3, name="ry"), te.reduce_axis(3, name="rx"), te.reduce_axis(ci, name="rc")
    y = te.compute(
        (1, h, w, co),
        lambda n, i, j, c: te.sum(p[n, i + ry, j + rx, rc] * weights[ry, rx, rc, c], axis=[ry, rx, rc]),
        name="Y",
    )
    out = te.compute((1, h, w, co), lambda n, i, j, c: te.maximum(y[n, i, j, c] + bias[c], 0.0), name="O")
    return tw.Task([x, weights, bias], [out], name="conv2d")


def conv2d_schedule(h: int, w: int, ci: int, co: int, threads: int, target: tw.Target) -> tw.Schedule:
    s = tw.Schedule(conv2d_task(h, w, ci, co))
    columns, lanes = register_tile(w, co, target)
    out = s["O"]
    _, i, j, c = out.loops
    j_tile, j_column = out.split(j, columns)
    c_panel, c_lane = out.split(c, lanes)
    out.reorder(c_panel, i, j_tile, j_column, c_lane)
    out.unroll(j_column)
    out.vectorize(c_lane)
    y = s["Y"]
    y.compute_at(out, j_tile)
    _, i, j, c, ry, rx, rc = y.loops
    y.reorder(ry, rx, rc, i, j, c)
    y.unroll(j)
    y.vectorize(c)
    s["W"].pack(y)
    pad = s["P"]
    pad.vectorize(pad.loops[-1])
    if threads > 1:
        out.parallel(c_panel)
        pad.parallel(pad.loops[1])
    return s


def depthwise(h: int, w: int, c: int, threads: int) -> Kernel:
    """Depthwise 3x3 convolution, stride 1, padding 1, NHWC."""
    return tw.build(depthwise_schedule(h, w, c, threads, target()), target(), threads)


def depthwise_schedule(h: int, w: int, c: int, threads: int, target: tw.Target) -> tw.Schedule:
    x = te.placeholder((1, h, w, c), name="X")
    weights = te.placeholder((3, 3, c), name="W", constant=True)
    p = padded(x)
    ry, rx = te.reduce_axis(3, name="ry"), te.reduce_axis(3, name="rx")
    out = te.compute(
        (1, h, w, c),
        lambda n, i, j, d: te.sum(p[n, i + ry, j + rx, d] * weights[ry, rx, d], axis=[ry, rx]),
        name="O",
    )
    s = tw.Schedule(tw.Task([x, weights], [out], name="depthwise"))
    s["P"].compute_inline()
    stage = s["O"]
    _, i, j, d, ry_loop, rx_loop = stage.loops
    j_tile, j_column = stage.split(j, 4)
    d_panel, d_lane = stage.split(d, 2 * target.lanes("float32"))
    stage.reorder(i, d_panel, j_tile, ry_loop, rx_loop, j_column, d_lane)
    for loop in (ry_loop, rx_loop, j_column):
        stage.unroll(loop)
    stage.vectorize(d_lane)
    if threads > 1:
        stage.parallel(i)
    return s


# --- rows ---------------------------------------------------------------------------------------------------


def softmax(rows: int, cols: int, threads: int) -> Kernel:
    """Softmax of each row."""
    x = te.placeholder((rows, cols), name="X")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="k")
    top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="T")
    e = te.compute((rows, cols), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((rows,), lambda i: te.sum(e[i, q], axis=q), name="S")
    scale = te.compute((rows,), lambda i: 1.0 / total[i], name="R")
    out = te.compute((rows, cols), lambda i, j: e[i, j] * scale[i], name="O")
    s = tw.Schedule(tw.Task([x], [out], name="softmax"))
    return tw.build(row_schedule(s, ["T", "E", "S", "R"], threads), target(), threads)


def layer_norm(rows: int, cols: int, threads: int) -> Kernel:
    """Layer normalisation of each row."""
    x = te.placeholder((rows, cols), name="X")
    gamma, beta = te.placeholder((cols,), name="gamma"), te.placeholder((cols,), name="beta")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="k")
    total = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="T")
    mean = te.compute((rows,), lambda i: total[i] * (1.0 / cols), name="M")
    squares = te.compute((rows,), lambda i: te.sum((x[i, q] - mean[i]) * (x[i, q] - mean[i]), axis=q), name="V")
    scale = te.compute((rows,), lambda i: te.rsqrt(squares[i] * (1.0 / cols) + EPSILON), name="R")
    out = te.compute((rows, cols), lambda i, j: (x[i, j] - mean[i]) * scale[i] * gamma[j] + beta[j], name="O")
    s = tw.Schedule(tw.Task([x, gamma, beta], [out], name="layer_norm"))
    return tw.build(row_schedule(s, ["T", "M", "V", "R"], threads), target(), threads)


def row_schedule(s: tw.Schedule, stages: Sequence[str], threads: int) -> tw.Schedule:
    """All stages of a row at once, while the row is in the first cache; reductions in several vectors."""
    out = s["O"]
    row, column = out.loops
    out.vectorize(column)
    if threads > 1:
        block, row = out.split(row, 8)
        out.parallel(block)
    for name in reversed(stages):  # consumers first: a stage goes inside a loop that has its readers
        stage = s[name]
        stage.compute_at(out, row)
        last = stage.loops[-1]
        if last.is_reduce:
            _, last = stage.split(last, 64)
        if last is not stage.loops[0]:
            stage.vectorize(last)
    return s


# --- elementwise --------------------------------------------------------------------------------------------


def elementwise(n: int, threads: int) -> Kernel:
    """a * b + c."""
    a, b, c = (te.placeholder((n,), name=name) for name in "ABC")
    out = te.compute((n,), lambda i: a[i] * b[i] + c[i], name="O")
    s = tw.Schedule(tw.Task([a, b, c], [out], name="elementwise"))
    stage = s["O"]
    block, inner = stage.split(stage.loops[0], 1 << 14)
    stage.vectorize(inner)
    if threads > 1:
        stage.parallel(block)
    return tw.build(s, target(), threads)
