"""What programs are compiled for: `Target`, the model of its core, and how many threads a program may use."""

from tilewright.target.caches import Caches
from tilewright.target.calibration import (
    CALIBRATION_VARIABLE,
    Calibration,
    calibration_path,
    read_calibration,
    write_calibration,
)
from tilewright.target.core_model import FAMILIES, MEASURED, CoreModel
from tilewright.target.machine import read_machine
from tilewright.target.target import Target, is_calibration_of, runs_here, stands_for
from tilewright.target.threads import MAX_THREADS, checked_threads, default_threads

__all__ = [
    "CALIBRATION_VARIABLE",
    "FAMILIES",
    "MAX_THREADS",
    "MEASURED",
    "Caches",
    "Calibration",
    "CoreModel",
    "Target",
    "calibration_path",
    "checked_threads",
    "default_threads",
    "is_calibration_of",
    "read_calibration",
    "read_machine",
    "runs_here",
    "stands_for",
    "write_calibration",
]
