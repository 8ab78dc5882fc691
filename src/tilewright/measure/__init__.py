"""What a measurement is, and what makes one: the protocols `Measurer`, `Builder` and `Runner`.

`local` has those of this machine.
"""

from tilewright.measure.context import WARM, Context, activation_bytes, constant_bytes
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
from tilewright.measure.options import MeasureOptions
from tilewright.measure.protocols import Batch, Builder, Built, Measurer, Result, Runner, Ticket, measure_all
from tilewright.measure.sequential import SequentialMeasurer

__all__ = [
    "BUILD_ERROR",
    "BUILD_TIMEOUT",
    "INVALID",
    "OK",
    "RUN_ERROR",
    "RUN_TIMEOUT",
    "STATUSES",
    "WARM",
    "WRONG_RESULT",
    "Batch",
    "Builder",
    "Built",
    "Context",
    "MeasureOptions",
    "Measurement",
    "Measurer",
    "Result",
    "Runner",
    "SequentialMeasurer",
    "Ticket",
    "activation_bytes",
    "constant_bytes",
    "measure_all",
]
