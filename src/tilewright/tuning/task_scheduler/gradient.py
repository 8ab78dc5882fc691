"""Which task to tune next: the one whose next round promises most for the objective, or simply each in turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tilewright.errors import UsageError

# A task that is this many rounds ahead of the fastest of its kind and still far behind is no task of that kind.
_ROUNDS_TO_CATCH_UP = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a task is. `slope` is by how much the objective falls for each second that it becomes faster."""

    slope: float
    flop: float
    kind: Hashable
    history_s: tuple[float, ...]
    """The best latency after each round; before the first round, what it is estimated to be."""
    is_open: bool = True
    """Whether it can be tuned further."""

    @property
    def num_rounds(self) -> int:
        return len(self.history_s)

    @property
    def latency_s(self) -> float:
        return self.history_s[-1]

    @property
    def speed(self) -> float:
        """Operations a second."""
        return self.flop / self.latency_s


class Strategy(Protocol):
    """Chooses among tasks."""

    def choose(self, standings: Sequence[Standing], rng: np.random.Generator) -> int | None:
        """The position of the task to tune next; None where no task can improve the objective."""


class RoundRobin:
    """The task with the fewest rounds."""

    def choose(self, standings: Sequence[Standing], rng: np.random.Generator) -> int | None:
        rounds = {n: standing.num_rounds for n, standing in enumerate(standings) if standing.is_open}
        return min(rounds, key=lambda n: rounds[n], default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """Ansor's: the gain of a round is guessed from the task's past, from optimism, and from what similar tasks reach.

    Of the guess, `alpha` is the mean gain of the last `window` rounds. The rest is optimistic: `gamma` times the
    latency over the rounds so far, or what is missing to a speed `beta` times below the best of its kind, if that is
    more. No task is taken to reach `headroom` times the speed of the fastest of all. With the probability `epsilon`
    any task is chosen.
    """

    alpha: float = 0.2
    beta: float = 2.0
    gamma: float = 1.0
    window: int = 3
    headroom: float = 1.1
    epsilon: float = 0.05

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 1 if field.name in ("window", "headroom") else 0
            most = 1 if field.name in ("alpha", "epsilon") else np.inf
            if not least <= value <= most:
                raise UsageError(f"{field.name} of the gradient is {value}; it must be from {least} to {most}")

    def choose(self, standings: Sequence[Standing], rng: np.random.Generator) -> int | None:
        gains = self.gains(standings)
        worthwhile = np.flatnonzero(gains > 0)
        if not len(worthwhile):
            return None
        if rng.random() < self.epsilon:
            return int(rng.choice(worthwhile))
        return int(np.argmax(gains))

    def gains(self, standings: Sequence[Standing]) -> npt.NDArray[np.float64]:
        """What the next round of each task is expected to take off the objective; nothing where it is not open."""
        best_of_kind = self._best_of_kind(standings)
        top_speed = self.headroom * max(standing.speed for standing in standings)
        found = np.zeros(len(standings))
        for position, standing in enumerate(standings):
            if not standing.is_open:
                continue
            past = self._past_gain_s(standing)
            hoped = self._hoped_gain_s(standing, best_of_kind[position], top_speed)
            found[position] = standing.slope * (self.alpha * past + (1 - self.alpha) * hoped)
        return found

    def _past_gain_s(self, standing: Standing) -> float:
        if standing.num_rounds <= self.window:
            return 0.0
        return (standing.history_s[-1 - self.window] - standing.latency_s) / self.window

    def _hoped_gain_s(self, standing: Standing, best_of_kind: float, top_speed: float) -> float:
        latency_s = standing.latency_s
        hoped_s = self.gamma * latency_s / standing.num_rounds
        if best_of_kind > 0:
            hoped_s = max(hoped_s, latency_s - self.beta * standing.flop / best_of_kind)
        least_s = standing.flop / top_speed if top_speed > 0 else 0.0
        return max(0.0, min(hoped_s, latency_s - least_s))

    def _best_of_kind(self, standings: Sequence[Standing]) -> list[float]:
        """For each task the speed of the fastest that it is compared with; 0 where there is none."""
        kinds: dict[Hashable, list[Standing]] = defaultdict(list)
        for standing in standings:
            kinds[standing.kind].append(standing)
        fastest = {kind: max(members, key=lambda member: member.speed) for kind, members in kinds.items()}
        return [self._comparable_speed(standing, fastest[standing.kind]) for standing in standings]

    def _comparable_speed(self, standing: Standing, fastest: Standing) -> float:
        is_behind = standing.speed * self.beta < fastest.speed
        has_tried = standing.num_rounds > fastest.num_rounds + _ROUNDS_TO_CATCH_UP
        return 0.0 if standing is fastest or (is_behind and has_tried) else fastest.speed
