"""How candidates are scored while a task is tuned: by the analytical model at first, then by what was learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.cost_model import AnalyticalModel, CostModel, Dataset
from tilewright.features import Hardware, population_features
from tilewright.space import Candidate, Population
from tilewright.target import Target

# With fewer measured programs than this the learned model knows less than the analytical one.
_MIN_PROGRAMS = 12


class Scoring:
    """Scores of populations, and the measured programs that the cost model learns from."""

    def __init__(self, target: Target, threads: int, model: CostModel) -> None:
        self.hardware = Hardware.from_target(target, threads)
        self.analytical = AnalyticalModel()
        self.model = model
        self._features: list[npt.NDArray[np.float32]] = []
        self._latencies_s: list[float | None] = []

    def scores(self, population: Population) -> npt.NDArray[np.float64]:
        """A score for each candidate, higher for faster programs, comparable over the sketches of a task."""
        model = self.model if self.model.is_fitted else self.analytical
        return model.predict(population_features(population, self.hardware).values)

    def learn(self, candidates: Sequence[Candidate], latencies_s: Sequence[float | None]) -> None:
        """Take in new measurements (None for failures), and learn from all so far."""
        for sketch in {candidate.sketch: None for candidate in candidates}:
            mine = [n for n, candidate in enumerate(candidates) if candidate.sketch is sketch]
            population = Population.of([candidates[n] for n in mine])
            self._features += list(population_features(population, self.hardware).values)
            self._latencies_s += [latencies_s[n] for n in mine]
        if sum(latency is not None for latency in self._latencies_s) >= _MIN_PROGRAMS:
            tasks = [0] * len(self._features)
            self.model.update(Dataset.build(self._features, self._latencies_s, tasks))
