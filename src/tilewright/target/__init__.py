"""What programs are compiled for: `Target`, the model of its core, and how many threads a program may use."""

from tilewright.target.caches import Caches
from tilewright.target.core_model import FAMILIES, MEASURED, CoreModel
from tilewright.target.target import Target, runs_here, stands_for
from tilewright.target.threads import MAX_THREADS, checked_threads, default_threads

__all__ = [
    "FAMILIES",
    "MAX_THREADS",
    "MEASURED",
    "Caches",
    "CoreModel",
    "Target",
    "checked_threads",
    "default_threads",
    "runs_here",
    "stands_for",
]
