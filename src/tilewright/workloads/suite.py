"""The operator suite: the cases on which tuning is measured, for any batch."""

from __future__ import annotations

from tilewright.errors import UsageError
from tilewright.te import Task
from tilewright.workloads.specification import parse

_CONV2D = ("224x224x3,64,7x7,s2,p3", "56x56x64,64,1x1,s1,p0", "14x14x256,256,3x3,s1,p1", "7x7x512,512,3x3,s1,p1")
_CAPSULES = ("16x16x32,32,3x3,s2,p1", "8x8x32,32,3x3,s1,p1", "16x16x8,16,3x3,s2,p1", "8x8x16,16,3x3,s1,p1")
_MATRICES = ("256x256", "512x512", "1024x1024", "4096x1024")

# Written without the batch, which is put after the colon.
_CASES: dict[str, tuple[str, ...]] = {
    "c1d": ("256x64,128,3,s2,p1", "128x128,256,1,s2,p0", "64x256,256,5,s1,p2", "32x512,512,3,s1,p1"),
    "c2d": _CONV2D,
    "c3d": (
        "16x224x224x3,64,7x7x7,s2,p3",
        "16x56x56x64,64,1x1x1,s1,p0",
        "16x14x14x256,256,3x3x3,s1,p1",
        "16x7x7x512,512,3x3x3,s1,p1",
    ),
    "gmm": ("128x128x128", "512x32x512", "512x512x512", "1024x1024x1024"),
    "grp": tuple(f"{case},g4" for case in _CONV2D[1:]),
    "dil": tuple(f"{case},d2" for case in _CONV2D),
    "dep": ("112x112x32,3x3,s1,p1", "112x112x64,3x3,s2,p1", "14x14x512,3x3,s2,p1", "7x7x1024,3x3,s1,p1"),
    "t2d": ("4x4x512,256,4x4,s2,p1", "8x8x256,128,4x4,s2,p1", "16x16x128,64,4x4,s2,p1", "32x32x64,3,4x4,s2,p1"),
    "cap": _CAPSULES,
    "nrm": _MATRICES,
    "sfm": _MATRICES,
    "convlayer": _CONV2D,
    "tbg": ("128x12x64",),
}


def suite(batch: int) -> list[tuple[str, Task]]:
    """Every case of the suite for a batch: its workload string and its task; c3d only for a batch of 1.

    >>> [workload for workload, _ in suite(16) if workload.startswith("gmm")][0]
    'gmm:16x128x128x128'
    """
    if batch < 1:
        raise UsageError(f"a batch is at least 1, got {batch}; the suite is meant for 1 and 16")
    workloads = [
        _workload(family, case, batch)
        for family, cases in _CASES.items()
        if family != "c3d" or batch == 1
        for case in cases
    ]
    return [(workload, parse(workload)) for workload in workloads]


def _workload(family: str, case: str, batch: int) -> str:
    """A matrix product alone has no batch; every other case has one, even of 1."""
    return f"{family}:{case}" if family == "gmm" and batch == 1 else f"{family}:{batch}x{case}"
