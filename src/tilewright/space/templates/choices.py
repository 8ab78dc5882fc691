"""One run of a template: the structure that it follows, and the knobs that it asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.space.knob import TileKnob


@dataclass(frozen=True, slots=True)
class Point:
    """Where a template was told one of several structures: `taken` of `num_values`."""

    name: str
    num_values: int
    taken: int
    text: str
    """The value, as it is shown."""


class Choices:
    """What a run of a template is told: at its first points as `path` says, at those after it the first of each.

    `asked` is all that the template asked for, in order: what two runs must have in common as far as they are told the
    same. `knobs` has the knobs of all runs, so that those of two structures which decide the same are one.
    """

    def __init__(self, path: tuple[int, ...], knobs: dict[tuple[object, ...], TileKnob]) -> None:
        self.path = path
        self.points: list[Point] = []
        self.asked: list[tuple[object, ...]] = []
        self._knobs = knobs

    def structure(self, name: str, num_values: int, text_of: Callable[[int], str]) -> int:
        """Which of the values the template goes on with."""
        position = len(self.points)
        wanted = self.path[position] if position < len(self.path) else 0
        self.asked.append(("structure", name, num_values))
        taken = min(wanted, num_values - 1)  # a path that does not fit is found by what was asked
        self.points.append(Point(name, num_values, taken, text_of(taken)))
        return taken

    def knob(self, knob: TileKnob) -> TileKnob:
        """The knob, or the same one of another run."""
        key = (knob.name, knob.table.shape, knob.table.tobytes())
        self.asked.append(("knob", *key))
        return self._knobs.setdefault(key, knob)

    @property
    def next_path(self) -> tuple[int, ...] | None:
        """The path of the next run: the last point that has another value takes it; None where all were taken."""
        for position in range(len(self.points) - 1, -1, -1):
            point = self.points[position]
            if point.taken + 1 < point.num_values:
                return (*(earlier.taken for earlier in self.points[:position]), point.taken + 1)
        return None

    def asked_until(self, num_points: int) -> list[tuple[object, ...]]:
        """What was asked for up to a point, that one included."""
        left = num_points
        for position, asked in enumerate(self.asked):
            left -= asked[0] == "structure"
            if left == 0:
                return self.asked[: position + 1]
        return self.asked

    def __str__(self) -> str:
        return ", ".join(f"{point.name}={point.text}" for point in self.points)
