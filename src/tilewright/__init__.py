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
from tilewright.sockets import plug
from tilewright.version import __version__

if TYPE_CHECKING:
    from tilewright import te
    from tilewright.network import InferenceSession, TunedNetwork, tune_network
    from tilewright.runtime import Kernel
    from tilewright.runtime.build import build
    from tilewright.schedule import Schedule, Trace
    from tilewright.space import Template, register_template, template, unregister_template
    from tilewright.target import Target
    from tilewright.te import Task
    from tilewright.tuning.tuner import TuneResult, tune

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
    "Template",
    "TilewrightError",
    "Trace",
    "TuneResult",
    "TunedNetwork",
    "UnsupportedOperatorError",
    "UsageError",
    "__version__",
    "build",
    "register_template",
    "te",
    "template",
    "tune",
    "tune_network",
    "unregister_template",
]

_HOME = {
    "InferenceSession": "tilewright.network",
    "Kernel": "tilewright.runtime",
    "Schedule": "tilewright.schedule",
    "Target": "tilewright.target",
    "Task": "tilewright.te",
    "Template": "tilewright.space",
    "Trace": "tilewright.schedule",
    "TuneResult": "tilewright.tuning.tuner",
    "TunedNetwork": "tilewright.network",
    "build": "tilewright.runtime.build",
    "register_template": "tilewright.space",
    "template": "tilewright.space",
    "tune": "tilewright.tuning.tuner",
    "tune_network": "tilewright.network",
    "unregister_template": "tilewright.space",
}

# What runs the networks of cost models.
plug("cost_model.neural.engine", "tilewright.model_engine:run_compiled")


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
