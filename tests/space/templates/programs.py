"""A task and templates that the tests of templates share."""

from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.space import Knobs, SpaceOptions

OPTIONS = SpaceOptions(tw.Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2)


def product(n: int = 48, m: int = 64, depth: int = 32) -> tw.Task:
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis(depth, name="k")
    return tw.Task([a, b], te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C"), "product")


def scaled(*shape: int) -> tw.Task:
    x = te.placeholder(shape, name="X")
    return tw.Task([x], te.compute(shape, lambda *i: x[i] * 2.0, "Y"), "scaled")


@tw.template
def blocked(s: tw.Schedule, knobs: Knobs) -> None:
    """That of the design."""
    i, j, k = s["C"].loops
    i0, i1 = s["C"].split(i, knobs.split("tile_i", i, 2))
    j0, j1 = s["C"].split(j, knobs.split("tile_j", j, 2))
    s["C"].reorder(i0, j0, k, i1, j1)
    s["C"].vectorize(j1)
    if knobs.choice("unroll", [False, True]):
        s["C"].unroll(i1)
