"""What the measuring processes say to each other; pickled, over pipes that only they hold."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.codegen import KernelBinary
    from tilewright.measure.context import Context
    from tilewright.measure.measurement import Measurement
    from tilewright.measure.options import MeasureOptions
    from tilewright.measure.protocols import Built
    from tilewright.target import Target
    from tilewright.te import Task

BUILDER = "builder"
RUNNER = "runner"


@dataclass(frozen=True, slots=True)
class Setup:
    """What all candidates of one worker share. The context is for runners."""

    task: Task
    target: Target
    threads: int
    options: MeasureOptions
    context: Context


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has set itself up, and waits for its first job."""


@dataclass(frozen=True, slots=True)
class SetupFailed:
    """A worker could not set itself up: an error of the task or the options, not of a candidate."""

    error: str


@dataclass(frozen=True, slots=True)
class Death:
    """How a worker ended: its exit code, or minus the signal it died of, and the end of what it wrote to stderr."""

    exit_code: int
    last_words: str

    @property
    def is_killed(self) -> bool:
        """Whether something else ended it: no candidate crashes so, though one may have taken all memory."""
        return self.exit_code == -signal.SIGKILL

    def __str__(self) -> str:
        code = self.exit_code
        cause = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"{cause}, saying {self.last_words!r}," if self.last_words else cause


@dataclass(frozen=True, slots=True)
class BuildAnswer:
    """A builder's answer to a trace: its kernel, or why there is none."""

    outcome: Built | Measurement
    ends_worker: bool = False  # after an exception that nobody foresaw, the process is not to be trusted


@dataclass(frozen=True, slots=True)
class RunJob:
    """Time this kernel. Its output is checked if it could win, which every candidate could without a best.

    With `is_turn` it is a short turn of a comparison. `error_growth` is what its algorithm adds to rounding.
    """

    binary: KernelBinary
    best_latency_s: float | None = None
    is_turn: bool = False
    error_growth: float = 1.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A runner's answer: seconds a call, one for each repeat, and how the output differs from the reference."""

    runs_s: tuple[float, ...]
    mismatch: str = ""


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A runner's answer to a kernel that cannot be loaded or says that it failed."""

    error: str
