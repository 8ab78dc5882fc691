"""`SharedTrials`: what several devices measure of the same tasks in one run, from which one cost model learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.cost_model import Group

if TYPE_CHECKING:
    from tilewright.tuning.scoring import Scoring

MOST_PROGRAMS = 256
"""Of other devices, the newest: more take longer to learn from, and say little more."""


class SharedTrials:
    """The measured programs of a run, by task and context, for the tuners of all its devices.

    Each tuner has a copy of the model, which learns from the programs of all devices and reads what the device is: so
    it ranks programs for its own. Tuners may be in threads of their own.
    """

    def __init__(self) -> None:
        self._scorings: dict[tuple[str, str], list[Scoring]] = {}

    def join(self, task: str, context: str, scoring: Scoring) -> None:
        """A tuner of the task, by its hash, takes part."""
        self._scorings.setdefault((task, context), []).append(scoring)

    def of_others(self, task: str, context: str, scoring: Scoring) -> tuple[Group, ...]:
        """What all but this one have measured of the task, the newest groups of each."""
        others = [other for other in self._scorings.get((task, context), ()) if other is not scoring]
        found: list[Group] = []
        for other in others:
            quota = MOST_PROGRAMS // len(others)
            for group in reversed(other.dataset.groups):
                if quota <= 0:
                    break
                quota -= len(group)
                found.append(group)
        return tuple(found)
