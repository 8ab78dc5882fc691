"""Trace: the steps that lead from a task to a schedule. What a record stores and what prints as Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.steps import AlgorithmStep, Step, step_from_json
from tilewright.te.algorithms import ALGORITHMS, is_exact

if TYPE_CHECKING:
    from tilewright.te import Task


# A program of the largest operators takes about a hundred.
MAX_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Trace:
    """An immutable sequence of steps. `print(trace)` is Python to paste."""

    steps: tuple[Step, ...] = ()

    def apply(self, task: Task) -> Schedule:
        """Replay on a task: the same steps give the same schedule."""
        schedule = Schedule(task)
        schedule.replay(self.steps)
        return schedule

    @property
    def algorithms(self) -> tuple[str, ...]:
        """What it has in the place of sums of the task, such as winograd4; mostly nothing."""
        return tuple(step.algorithm for step in self.steps if isinstance(step, AlgorithmStep))

    @property
    def error_growth(self) -> float:
        """How many times what rounding adds up to the results may be off, for the algorithms that it uses: mostly 1.

        >>> Trace.from_json('[{"step": "algorithm", "stage": "conv", "arguments": ["winograd2"]}]').error_growth
        2.0
        """
        used = map(ALGORITHMS.get, self.algorithms)
        return max((algorithm.error_growth for algorithm in used if algorithm is not None), default=1.0)

    @property
    def is_exact(self) -> bool:
        """Whether it gives the sums of the task themselves, in whatever order."""
        return all(map(is_exact, self.algorithms))

    def candidate(self, row: int) -> Trace:
        """The trace of one candidate of a population."""
        return Trace(tuple(step.candidate(row) for step in self.steps))

    def to_json(self) -> list[dict[str, Any]]:
        return [step.to_json() for step in self.steps]

    @staticmethod
    def from_json(data: str | Sequence[dict[str, Any]]) -> Trace:
        """Read a trace from JSON text or the lists and dicts it holds."""
        try:
            items = json.loads(data) if isinstance(data, str) else data
        except RecursionError:
            raise ScheduleError("a trace is a JSON list of steps; this is nested too deeply for JSON") from None
        except ValueError as error:
            raise ScheduleError(f"a trace is a JSON list of steps; this is not JSON: {error}") from None
        if not isinstance(items, list | tuple):
            raise ScheduleError(f"a trace is a JSON list of steps, got {type(items).__name__}")
        if len(items) > MAX_STEPS:
            raise ScheduleError(f"a trace has at most {MAX_STEPS} steps, got {len(items)}")
        return Trace(tuple(step_from_json(item) for item in items))

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join(["s = tw.Schedule(task)", *map(str, self.steps)])
