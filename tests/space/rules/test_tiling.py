"""The order of the outer loops."""

from __future__ import annotations

from tilewright import workloads
from tilewright.schedule import Schedule
from tilewright.space import SpaceOptions, derive
from tilewright.space.rules.tiling import heavy_first
from tilewright.target import Target

OPTIONS = SpaceOptions(Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2)


def names(workload: str) -> list[str]:
    stage = Schedule(workloads.parse(workload))["conv"]
    return [axis.name for axis in heavy_first(stage, [axis for axis in stage.axes if axis.extent > 1])]


def test_axes_that_select_from_large_weights_come_first() -> None:
    assert names("c2d:1x7x7x512,512,3x3,s1,p1") == ["f", "y", "x"]


def test_axes_keep_their_order_where_no_operand_is_much_larger() -> None:
    assert names("c2d:1x56x56x64,64,1x1,s1,p0") == ["y", "x", "f"]
    assert names("dep:1x14x14x512,3x3,s2,p1") == ["y", "x", "c"]


def test_the_parallel_loop_is_fused_in_that_order() -> None:
    sketches = derive(workloads.parse("c2d:1x7x7x512,512,3x3,s1,p1"), OPTIONS)
    tiled = [sketch for sketch in sketches if any("fuse" in str(step) for step in sketch.steps)]
    assert tiled
    assert all("f.0@y.0@x.0" in "\n".join(map(str, sketch.steps)) for sketch in tiled)
