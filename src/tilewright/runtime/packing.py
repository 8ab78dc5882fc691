"""Packing of a constant input into the order in which a kernel reads it."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tilewright.runtime._native import NativeKernel
from tilewright.runtime.aligned_arrays import aligned_empty
from tilewright.runtime.spec import Argument, KernelSpec, PackSpec
from tilewright.te import numpy_dtype


class Packer:
    """Makes the packed form of one constant input; wrong arrays raise errors that name kernel and input."""

    def __init__(self, kernel: KernelSpec, constant: Argument, packed: PackSpec) -> None:
        self._packed = packed
        self._dtype = numpy_dtype(packed.dtype)
        self._native = NativeKernel(
            kernel.name,
            packed.entry_address,
            (
                (constant.name, constant.dtype, constant.shape, False),
                (f"{constant.name} (packed)", packed.dtype, packed.shape, True),
            ),
            packed.workspace_bytes,
            packed.scratch_bytes,
            kernel.num_threads,
            kernel.keepalive,
        )

    def __call__(self, plain: Any) -> npt.NDArray[Any]:
        """A new array with the contents of `plain` in packed order."""
        packed = aligned_empty(self._packed.shape, self._dtype, self._packed.nbytes)
        self._native(plain, packed)
        return packed
