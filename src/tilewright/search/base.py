"""Search strategies: ask for candidates to measure, tell what came of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tilewright.space import Candidate, Population, Sketch
from tilewright.target import Target

FloatArray = npt.NDArray[np.float64]
Scorer = Callable[[Population], FloatArray]


class SearchStrategy(ABC):
    """Chooses what to measure next. A candidate is never given twice, nor one that was told already."""

    uses_scores: ClassVar[bool] = True  # whether it asks the scorer, so that a cost model has to learn

    def __init__(self, sketches: Sequence[Sketch], scorer: Scorer, target: Target, seed: int = 0) -> None:
        self.sketches = list(sketches)
        self.scorer = scorer
        self.target = target
        self.rng = np.random.default_rng(seed)
        self.seen: set[Candidate] = set()
        self.measured: list[tuple[Candidate, float]] = []  # what ran and its latency, fastest first

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
