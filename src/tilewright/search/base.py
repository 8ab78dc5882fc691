"""Search strategies: ask for candidates to measure, tell what came of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tilewright.space import Candidate, Sketch, is_legal
from tilewright.space.knob import IntArray
from tilewright.target import Target

FloatArray = npt.NDArray[np.float64]
Scorer = Callable[[Sketch, IntArray], FloatArray]


class SearchStrategy(ABC):
    """Chooses what to measure next. A candidate is never given twice, nor one that was told already."""

    uses_scores: ClassVar[bool] = True  # whether it asks the scorer, so that a cost model has to learn

    def __init__(self, sketches: Sequence[Sketch], scorer: Scorer, target: Target, seed: int = 0) -> None:
        self.sketches = list(sketches)
        self.scorer = scorer
        self.target = target
        self.rng = np.random.default_rng(seed)
        self.seen: set[tuple[int, bytes]] = set()
        self.measured: list[tuple[int, IntArray, float]] = []  # sketch, row and latency of what ran

    @abstractmethod
    def ask(self, n: int) -> list[Candidate]:
        """Up to `n` new candidates, best first; fewer only where the space is exhausted."""

    def tell(self, candidates: Sequence[Candidate], latencies_s: Sequence[float | None]) -> None:
        """What the candidates measured; None for one that failed."""
        for candidate, latency in zip(candidates, latencies_s, strict=True):
            position = self.sketches.index(candidate.sketch)
            row = np.asarray(candidate.row, np.int64)
            self.seen.add((position, row.tobytes()))
            if latency is not None:
                self.measured.append((position, row, latency))
        self.measured.sort(key=lambda item: item[2])

    def add(self, sketch: Sketch) -> int:
        """Search one more sketch; return its position."""
        self.sketches.append(sketch)
        return len(self.sketches) - 1

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def random_rows(self, sketch: Sketch, n: int) -> IntArray:
        """Up to `n` different legal random rows."""
        rows = np.unique(sketch.sample(self.rng, 4 * n), axis=0)
        rows = self.rng.permutation(rows)
        return self.only_legal(sketch, rows)[:n]

    def only_legal(self, sketch: Sketch, rows: IntArray) -> IntArray:
        if not len(rows):
            return rows
        return rows[is_legal(sketch.population(rows), len(rows), self.target)]

    def is_new(self, position: int, row: IntArray) -> bool:
        return (position, row.tobytes()) not in self.seen

    def take(self, position: int, row: IntArray) -> Candidate:
        """The candidate of a row, which counts as given from now on."""
        self.seen.add((position, row.tobytes()))
        return Candidate(self.sketches[position], tuple(int(v) for v in row))
