"""Templates of ours for processors with vector registers, x86 first of all: examples, and a baseline.

tw.register_template("conv2d", x86.conv2d)  # next to what is derived
tw.tune(task, template=x86.matmul)  # alone
"""

from __future__ import annotations

from tilewright.schedule import Schedule
from tilewright.space.templates.definition import template
from tilewright.space.templates.knobs import Knobs
from tilewright.space.templates.stages import (
    PADDINGS,
    inline_cheap,
    main_stage,
    pack_constants,
    pack_operand,
    pad,
    padding_of,
    tile_loops,
    vector_width,
    with_result,
)

# Rows and vectors of a register tile; what does not fit the registers of a target is no legal candidate.
_MAX_ROWS, _MAX_VECTORS = 14, 4


@template
def matmul(s: Schedule, knobs: Knobs) -> None:
    """A blocked product: blocks of rows and columns on threads, of depth in the cache, tiles of them in registers."""
    inline_cheap(s)
    sums, out = with_result(s, main_stage(s))
    lanes = vector_width(sums, knobs.target)
    others, i, j = tile_loops(sums, out)
    j, lane = out.split(j, lanes)
    rows = knobs.split("rows", i, 3, max_inner=_MAX_ROWS, policy="any")
    vectors = knobs.split("vectors", j, 3, max_inner=_MAX_VECTORS, policy="any")
    i0, i1 = out.split(i, rows[0] * rows[1])
    j0, j1 = out.split(j, vectors[0] * vectors[1])
    blocks = (i0, j0) if (rows_first := knobs.choice("rows_first", [True, False])) else (j0, i0)
    out.reorder(*others, *blocks, i1, j1, lane)
    block = out.fuse(*others, *blocks)
    out.parallel(block)
    out.vectorize(lane)

    sums.compute_at(out, block)
    others, i, j = tile_loops(sums, sums)
    k = sums.loops[-1]
    k0, k1 = sums.split(k, knobs.split("depth", k, 2))
    j, lane = sums.split(j, lanes)
    i0, i1 = sums.split(i, rows[1])
    j0, j1 = sums.split(j, vectors[1])
    sums.reorder(*others, k0, *((i0, j0) if rows_first else (j0, i0)), k1, i1, j1, lane)
    sums.unroll(i1)
    sums.unroll(j1)
    sums.vectorize(lane)
    pack_constants(sums)
    if knobs.choice("pack", [False, True]):
        pack_operand(sums, k0)


@template
def batch_matmul(s: Schedule, knobs: Knobs) -> None:
    """A product of each batch: batches and blocks of rows on threads, tiles of rows by vectors in registers."""
    inline_cheap(s)
    sums, out = with_result(s, main_stage(s))
    lanes = vector_width(sums, knobs.target)
    batch, i, j = tile_loops(sums, out)
    j, lane = out.split(j, lanes)
    rows = knobs.split("rows", i, 3, max_inner=_MAX_ROWS, policy="any")
    vectors = knobs.split("vectors", j, 2, max_inner=_MAX_VECTORS, policy="any")
    i0, i1, i2 = out.split(i, rows)
    j0, j1 = out.split(j, vectors)
    out.reorder(*batch, i0, j0, i1, i2, j1, lane)
    out.parallel(out.fuse(*batch, i0))
    out.vectorize(lane)

    sums.compute_at(out, j0)
    batch, i, j = tile_loops(sums, sums)
    k = sums.loops[-1]
    k0, k1 = sums.split(k, knobs.split("depth", k, 2))
    i0, i1 = sums.split(i, rows[1])
    j, lane = sums.split(j, lanes)
    sums.reorder(*batch, k0, i0, k1, i1, j, lane)
    sums.unroll(i1)
    sums.unroll(j)
    sums.vectorize(lane)
    pack_constants(sums)
    if knobs.choice("pack", [False, True]):
        pack_operand(sums, k0)


@template
def conv2d(s: Schedule, knobs: Knobs) -> None:
    """A direct convolution of images with the channels last: tiles of pixels by vectors of channels in registers."""
    inline_cheap(s)
    padding = padding_of(s, main_stage(s))
    sums, out = with_result(s, main_stage(s))
    lanes = vector_width(sums, knobs.target)
    *n, y, x, f = out.loops
    f, lane = out.split(f, lanes)
    y0, y1 = out.split(y, knobs.split("lines", y, 2, policy="any"))
    x0, x1 = out.split(x, knobs.split("pixels", x, 2, max_inner=_MAX_ROWS, policy="any"))
    f0, f1, f2 = out.split(f, knobs.split("vectors", f, 3, max_inner=_MAX_VECTORS, policy="any"))
    shared = knobs.reorder("shared", [y0, f0])
    out.reorder(*n, *shared, f1, y1, x0, x1, f2, lane)
    band = out.fuse(*n, *shared)
    out.parallel(band)
    out.unroll(x1)
    out.unroll(f2)
    out.vectorize(lane)

    sums.compute_at(out, x0)
    *n, y, x, f, r, q, c = sums.loops
    c0, c1 = sums.split(c, knobs.split("depth", c, 2))
    f, lane = sums.split(f, lanes)
    sums.reorder(*n, y, c0, r, q, c1, x, f, lane)
    sums.unroll(x)
    sums.unroll(f)
    sums.vectorize(lane)
    pack_constants(sums)
    if padding is not None:
        pad(padding, knobs.choice("padding", PADDINGS), band)


@template
def depthwise(s: Schedule, knobs: Knobs) -> None:
    """A depthwise convolution of images with the channels last: some pixels by a vector of channels at a time."""
    inline_cheap(s)
    padding = padding_of(s, main_stage(s))
    sums, out = with_result(s, main_stage(s))
    lanes = vector_width(sums, knobs.target)
    *n, y, x, c = out.loops
    y0, y1 = out.split(y, knobs.split("lines", y, 2, policy="any"))
    x0, x1 = out.split(x, knobs.split("pixels", x, 2, max_inner=8, policy="any"))
    c, lane = out.split(c, lanes)
    c0, c1 = out.split(c, knobs.split("vectors", c, 2, max_inner=_MAX_VECTORS, policy="any"))
    out.reorder(*n, y0, c0, y1, x0, x1, c1, lane)
    band = out.fuse(*n, y0)
    out.parallel(band)
    out.unroll(x1)
    out.unroll(c1)
    out.vectorize(lane)

    sums.compute_at(out, x0)
    *n, y, x, c, r, q = sums.loops
    c, lane = sums.split(c, lanes)
    sums.reorder(*n, y, r, q, x, c, lane)
    sums.unroll(x)
    sums.unroll(c)
    sums.vectorize(lane)
    if knobs.choice("unroll_window", [False, True]):
        sums.unroll(q)
    if padding is not None:
        pad(padding, knobs.choice("padding", PADDINGS), band)
