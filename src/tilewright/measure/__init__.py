"""Measuring candidates: builder processes compile them, one runner process times them and checks what they compute."""

from tilewright.codegen import KernelBinary, PackedInput
from tilewright.measure.measurement import (
    BUILD_ERROR,
    BUILD_TIMEOUT,
    INVALID,
    OK,
    RUN_ERROR,
    RUN_TIMEOUT,
    STATUSES,
    WRONG_RESULT,
    Measurement,
)
from tilewright.measure.measurer import Measurer
from tilewright.measure.options import MeasureOptions

__all__ = [
    "BUILD_ERROR",
    "BUILD_TIMEOUT",
    "INVALID",
    "OK",
    "RUN_ERROR",
    "RUN_TIMEOUT",
    "STATUSES",
    "WRONG_RESULT",
    "KernelBinary",
    "MeasureOptions",
    "Measurement",
    "Measurer",
    "PackedInput",
]
