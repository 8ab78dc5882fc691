"""tilewright: from a tensor expression to native code at library speed, by a schedule or by tuning.

The public names are loaded when first used, so that `import tilewright` and the command line answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tilewright.errors import (
    ArtifactError,
    CodegenError,
    ExpressionError,
    KernelArgumentError,
    LoweringError,
    ModelError,
    NoValidCandidateError,
    RecordFormatError,
    ScheduleError,
    TilewrightError,
    UnsupportedOperatorError,
    UsageError,
)

if TYPE_CHECKING:
    from tilewright import te
    from tilewright.codegen import Target
    from tilewright.compile import build
    from tilewright.graph.session import InferenceSession
    from tilewright.runtime import Kernel
    from tilewright.schedule import Schedule, Trace
    from tilewright.task import Task
    from tilewright.tuner import TuneResult, tune

__version__ = "0.1.0"

__all__ = [
    "ArtifactError",
    "CodegenError",
    "ExpressionError",
    "InferenceSession",
    "Kernel",
    "KernelArgumentError",
    "LoweringError",
    "ModelError",
    "NoValidCandidateError",
    "RecordFormatError",
    "Schedule",
    "ScheduleError",
    "Target",
    "Task",
    "TilewrightError",
    "Trace",
    "TuneResult",
    "UnsupportedOperatorError",
    "UsageError",
    "__version__",
    "build",
    "te",
    "tune",
]

_HOME = {
    "InferenceSession": "tilewright.graph.session",
    "Kernel": "tilewright.runtime",
    "Schedule": "tilewright.schedule",
    "Target": "tilewright.codegen",
    "Task": "tilewright.task",
    "Trace": "tilewright.schedule",
    "TuneResult": "tilewright.tuner",
    "build": "tilewright.compile",
    "tune": "tilewright.tuner",
}


def __getattr__(name: str) -> object:
    if name == "te":
        return import_module("tilewright.te")
    if name not in _HOME:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}; it has {', '.join(__all__)}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
