"""The interface of a derivation rule."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tilewright.schedule import Stage
from tilewright.space.sketch_state import SketchState


class Rule(ABC):
    """One way to derive. `is_exclusive` rules end the search for rules at a stage that they match.

    A rule is asked about the stages of a task from the last to the first. It looks at the state as it is, changes
    nothing, and gives new states that go on from it.
    """

    name = ""
    is_exclusive = False

    @abstractmethod
    def matches(self, state: SketchState, stage: Stage) -> bool:
        """Whether the rule has something to say about the stage."""

    @abstractmethod
    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        """The states that go on from here."""
