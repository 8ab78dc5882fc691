"""The families of workloads: how each is written, and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.workloads.capsule import capsule_conv2d
from tilewright.workloads.computation import Computation
from tilewright.workloads.convolution import conv1d, conv2d, conv3d, conv_layer
from tilewright.workloads.depthwise import depthwise
from tilewright.workloads.matrix import matmul, transpose_batch_matmul
from tilewright.workloads.rows import norm, softmax
from tilewright.workloads.transposed import transposed_conv2d


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a workload between commas: sizes joined by x, as many as one of `lengths`."""

    form: str
    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """A letter and a number, such as s2 for a stride of 2."""

    letter: str
    keyword: str
    default: int
    smallest: int
    is_always_written: bool = False


STRIDE = Option("s", "stride", 1, 1, is_always_written=True)
PADDING = Option("p", "padding", 0, 0, is_always_written=True)
DILATION = Option("d", "dilation", 1, 1)
GROUPS = Option("g", "groups", 1, 1)


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of workload. `make` takes the fields in order and the options by keyword."""

    name: str
    summary: str
    example: str
    fields: tuple[Field, ...]
    make: Callable[..., Computation]
    options: tuple[Option, ...] = ()
    is_fusible: bool = True
    """Whether +bias, +bn and +relu may follow."""
    needs: Option | None = None
    """The option that must be above its default."""

    @property
    def form(self) -> str:
        """How the family is written, options in brackets."""
        fields = ",".join(field.form for field in self.fields)
        options = "".join(f"[,{o.letter}{o.keyword.upper()}]" for o in self.options)
        return f"{self.name}:{fields}{options}"


_CHANNELS = Field("CHANNELS", (1,))
_IMAGE = Field("NxHxWxC", (4,))
_KERNEL = Field("KHxKW", (2,))
_CONV2D = (_IMAGE, _CHANNELS, _KERNEL)
_CONV = (STRIDE, PADDING, DILATION)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "c1d", "convolution in one dimension", "c1d:1x256x64,128,3,s2,p1",
            (Field("NxWxC", (3,)), _CHANNELS, Field("K", (1,))), conv1d, _CONV,
        ),
        Family(
            "c2d", "convolution in two dimensions", "c2d:1x28x28x128,128,3x3,s1,p1+relu",
            _CONV2D, conv2d, (*_CONV, GROUPS),
        ),
        Family(
            "c3d", "convolution in three dimensions", "c3d:1x16x14x14x256,256,3x3x3,s1,p1",
            (Field("NxDxHxWxC", (5,)), _CHANNELS, Field("KDxKHxKW", (3,))), conv3d, _CONV,
        ),
        Family("gmm", "matrix product: rows x columns x depth, with or without a batch", "gmm:512x512x512",
               (Field("[BATCHx]ROWSxCOLUMNSxDEPTH", (3, 4)),), matmul),
        Family("grp", "convolution in groups", "grp:1x14x14x256,256,3x3,s1,p1,g4",
               _CONV2D, conv2d, (*_CONV, GROUPS), needs=GROUPS),
        Family("dil", "dilated convolution", "dil:1x14x14x256,256,3x3,s1,p1,d2",
               _CONV2D, conv2d, (*_CONV, GROUPS), needs=DILATION),
        Family("dep", "depthwise convolution", "dep:1x112x112x32,3x3,s1,p1", (_IMAGE, _KERNEL), depthwise, _CONV),
        Family("t2d", "transposed convolution", "t2d:1x4x4x512,256,4x4,s2,p1",
               _CONV2D, transposed_conv2d, (STRIDE, PADDING)),
        Family("cap", "capsule convolution, capsules of 4x4", "cap:1x16x16x32,32,3x3,s2,p1",
               _CONV2D, capsule_conv2d, (STRIDE, PADDING)),
        Family("nrm", "2-norm of each matrix", "nrm:1x256x256",
               (Field("BATCHxROWSxCOLUMNS", (3,)),), norm, is_fusible=False),
        Family("sfm", "softmax of each row", "sfm:1x256x256",
               (Field("BATCHxROWSxCOLUMNS", (3,)),), softmax, is_fusible=False),
        Family("convlayer", "convolution, batch norm and ReLU", "convlayer:1x56x56x64,64,1x1,s1,p0",
               _CONV2D, conv_layer, (*_CONV, GROUPS), is_fusible=False),
        Family("tbg", "two transposes and a batch of matrix products", "tbg:1x128x12x64",
               (Field("BATCHxPOSITIONSxHEADSxDIM", (4,)),), transpose_batch_matmul, is_fusible=False),
    )
}  # fmt: skip


def names() -> list[str]:
    """The families, as they begin a workload."""
    return list(FAMILIES)
