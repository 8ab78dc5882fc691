"""Search strategies: ask for candidates to measure, tell what came of them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.space import Candidate, Population, Sketch
from tilewright.target import Target

FloatArray = npt.NDArray[np.float64]
Scorer = Callable[[Population], FloatArray]

_Strategy = TypeVar("_Strategy", bound="SearchStrategy")


@dataclass(kw_only=True, eq=False)
class SearchStrategy(ABC):
    """Chooses what to measure next. A candidate is never given twice, nor one that was told already.

    A strategy is a dataclass: its options are the fields that `__init__` takes. `begin` starts a search with them, of
    which there may be many at once.
    """

    uses_scores: ClassVar[bool] = True  # whether it asks the scorer, so that a cost model has to learn

    sketches: list[Sketch] = field(init=False, repr=False)
    scorer: Scorer = field(init=False, repr=False)
    target: Target = field(init=False, repr=False)
    rng: np.random.Generator = field(init=False, repr=False)
    seen: set[Candidate] = field(init=False, repr=False)
    measured: list[tuple[Candidate, float]] = field(init=False, repr=False)
    """What ran and its latency, fastest first."""

    def begin(self: _Strategy, sketches: Sequence[Sketch], scorer: Scorer, target: Target, seed: int = 0) -> _Strategy:
        """A search of these sketches, in which nothing was asked or told yet."""
        search = copy.copy(self)
        search.sketches = list(sketches)
        search.scorer = scorer
        search.target = target
        search.rng = np.random.default_rng(seed)
        search.seen = set()
        search.measured = []
        return search

    @abstractmethod
    def ask(self, n: int) -> list[Candidate]:
        """Up to `n` new candidates, best first; fewer only where the space is exhausted."""

    def tell(self, candidates: Sequence[Candidate], latencies_s: Sequence[float | None]) -> None:
        """What the candidates measured; None for one that failed."""
        for candidate, latency_s in zip(candidates, latencies_s, strict=True):
            self.seen.add(candidate)
            if latency_s is not None:
                self.measured.append((candidate, latency_s))
        self.measured.sort(key=lambda item: item[1])

    def add(self, sketch: Sketch) -> None:
        """Search one more sketch."""
        self.sketches.append(sketch)

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def random_legal(self, sketch: Sketch, n: int) -> Population:
        """Up to `n` different legal random candidates."""
        found = sketch.sample(self.rng, 4 * n).unique()
        return self.only_legal(found[self.rng.permutation(len(found))])[:n]

    def only_legal(self, population: Population) -> Population:
        return population[population.legal(self.target)]

    def take_new(self, candidates: Sequence[Candidate] | Population, n: int) -> list[Candidate]:
        """The first up to `n` of the candidates that were neither given nor told; they count as given from now on."""
        found: list[Candidate] = []
        for candidate in candidates:
            if len(found) >= n:
                break
            if candidate not in self.seen:
                self.seen.add(candidate)
                found.append(candidate)
        return found
