"""Search strategies: ask for candidates to measure, tell what came of them."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.errors import UsageError
from tilewright.search.enumeration import numbered
from tilewright.search.options import check_options
from tilewright.space import Candidate, Population, Sketch, as_programs
from tilewright.target import Target

FloatArray = npt.NDArray[np.float64]
Scorer = Callable[[Population], FloatArray]

_MAX_TRIES = 20
# A sketch with so many candidates or fewer is gone through before it counts as exhausted.
_MAX_ENUMERATED = 2**14
# To see which programs candidates are takes as long for so many as for one.
_LOOKED_AT = 64

_Strategy = TypeVar("_Strategy", bound="SearchStrategy")


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a candidate that was measured."""

    candidate: Candidate
    latency_s: float | None
    """None where it failed."""
    runs_s: tuple[float, ...] = ()
    """The single runs, if they are known."""


@dataclass(kw_only=True, eq=False)
class SearchStrategy(ABC):
    """Chooses what to measure next. A program is never given twice, nor one that was told already.

    A strategy is a dataclass: its options are the fields that `__init__` takes. `begin` starts a search with them, of
    which there may be many at once. Rounds may overlap: it may be asked again before it was told of what it gave.
    """

    uses_scores: ClassVar[bool] = True  # whether it asks the scorer, so that a cost model has to learn

    sketches: list[Sketch] = field(init=False, repr=False)
    scorer: Scorer = field(init=False, repr=False)
    target: Target = field(init=False, repr=False)
    rng: np.random.Generator = field(init=False, repr=False)
    seen: set[Candidate] = field(init=False, repr=False)
    """What was given or told, and the rows that stand for the same programs."""
    measured: list[tuple[Candidate, float]] = field(init=False, repr=False)
    """What ran and its latency, fastest first."""

    def begin(self: _Strategy, sketches: Sequence[Sketch], scorer: Scorer, target: Target, seed: int = 0) -> _Strategy:
        """A search of these sketches, in which nothing was asked or told yet."""
        if not sketches:
            raise UsageError("a search has at least one sketch, got none; derive gives those of a task")
        check_options(self, vars(self))
        search = copy.copy(self)
        search.sketches = list(sketches)
        search.scorer = scorer
        search.target = target
        search.rng = np.random.default_rng(seed)
        search.seen = set()
        search.measured = []
        search.prepare()
        return search

    @abstractmethod
    def ask(self, n: int) -> list[Candidate]:
        """Up to `n` new candidates, best first; fewer only where the space is exhausted."""

    def tell(
        self,
        candidates: Sequence[Candidate],
        latencies_s: Sequence[float | None],
        runs_s: Sequence[Sequence[float]] | None = None,
    ) -> None:
        """What the candidates measured; None for one that failed. `runs_s` has the single runs of each, if known."""
        all_runs_s = [()] * len(candidates) if runs_s is None else runs_s
        told: list[Told] = []
        for candidate, latency_s, own_s in zip(candidates, latencies_s, all_runs_s, strict=True):
            if candidate.sketch not in self.sketches:
                raise UsageError(
                    f"a search is told of candidates of its sketches, got one of {candidate.sketch!r}; add it"
                )
            ran = latency_s is not None and math.isfinite(latency_s)
            told.append(Told(candidate, latency_s if ran else None, tuple(own_s)))
        self.seen.update(candidates)
        self.seen.update(as_programs(candidates))
        self.measured += [(each.candidate, each.latency_s) for each in told if each.latency_s is not None]
        self.measured.sort(key=lambda item: item[1])
        self.learn(told)

    def add(self, sketch: Sketch) -> None:
        """Search one more sketch."""
        self.sketches.append(sketch)

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:  # noqa: B027 - most have nothing to do
        """Set up what this kind of search remembers from round to round."""

    def learn(self, told: Sequence[Told]) -> None:  # noqa: B027 - most look at what was measured when they are asked
        """Take up what came of candidates, which are among the seen and measured ones already."""

    def random_legal(self, sketch: Sketch, n: int) -> Population:
        """Up to `n` different legal random candidates."""
        found = sketch.sample(self.rng, 4 * n).unique()
        return self.only_legal(found[self.rng.permutation(len(found))])[:n]

    def random_new(self, n: int) -> list[Candidate]:
        """Up to `n` legal random candidates that were neither given nor told; they count as given from now on."""
        found: list[Candidate] = []
        for _ in range(_MAX_TRIES * len(self.sketches)):
            if len(found) >= n:
                break
            sketch = self.sketches[int(self.rng.integers(len(self.sketches)))]
            found += self.take_new(self.random_legal(sketch, 2), n - len(found))
        return found + self.remaining(n - len(found))

    def remaining(self, n: int) -> list[Candidate]:
        """Up to `n` new candidates of sketches that are small enough to go through, where drawing finds no more."""
        found: list[Candidate] = []
        for sketch in self.sketches:
            if len(found) >= n or sketch.cardinality > _MAX_ENUMERATED:
                continue
            legal = self.only_legal(numbered(sketch, 0, sketch.cardinality))
            found += self.take_new(legal[self.rng.permutation(len(legal))], n - len(found))
        return found

    def only_legal(self, population: Population) -> Population:
        return population[population.legal(self.target)]

    def take_new(self, candidates: Sequence[Candidate] | Population, n: int) -> list[Candidate]:
        """The first up to `n` of the candidates whose programs were neither given nor told; they count as given now."""
        found: list[Candidate] = []
        for first in range(0, len(candidates), _LOOKED_AT):
            if len(found) >= n:
                break
            looked_at = [c for c in candidates[first : first + _LOOKED_AT] if c not in self.seen]
            for candidate, program in zip(looked_at, as_programs(looked_at), strict=True):
                if len(found) < n and program not in self.seen:
                    self.seen |= {candidate, program}
                    found.append(candidate)
        return found
