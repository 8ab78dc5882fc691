"""A workload string taken apart: its family, its sizes, its options and the stages fused to it."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.workloads import canonical

_DEFAULTS = {"s": 1, "p": 0, "d": 1, "g": 1}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a library must be told of a workload.

    >>> Shape.parse("c2d:1x28x28x128,64,3x3,s1,p1+relu")
    Shape(family='c2d', fields=((1, 28, 28, 128), (64,), (3, 3)), stride=1, padding=1, dilation=1, groups=1, \
fused=('relu',))
    """

    family: str
    fields: tuple[tuple[int, ...], ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    fused: tuple[str, ...] = ()

    @staticmethod
    def parse(workload: str) -> Shape:
        """From a workload string; UsageError where it is none."""
        family, rest = canonical(workload).split(":")
        sizes, *fused = rest.split("+")
        parts = sizes.split(",")
        fields = tuple(tuple(map(int, part.split("x"))) for part in parts if part[0].isdigit())
        options = _DEFAULTS | {part[0]: int(part[1:]) for part in parts if not part[0].isdigit()}
        stages = ("bn", "relu") if family == "convlayer" else tuple(fused)
        return Shape(family, fields, options["s"], options["p"], options["d"], options["g"], stages)
