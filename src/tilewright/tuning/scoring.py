"""How candidates are scored while a task is tuned: by the cost model, or by the analytical one until it has learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.cost_model import AnalyticalModel, CostModel, Dataset
from tilewright.space import Candidate, Population

# With fewer measured programs than this the learned model knows less than the analytical one.
_MIN_PROGRAMS = 12


class Scoring:
    """Scores of populations, and the measured programs that the cost model learns from."""

    def __init__(self, model: CostModel, context: str = "warm") -> None:
        self.analytical = AnalyticalModel()
        self.model = model
        self.dataset = Dataset()
        self._context = context

    def scores(self, population: Population) -> npt.NDArray[np.float64]:
        """A score for each candidate, higher for faster programs, comparable over the sketches of a task."""
        model = self.model if self.model.is_fitted else self.analytical
        return model.predict(population)

    def learn(self, candidates: Sequence[Candidate], latencies_s: Sequence[float | None]) -> None:
        """Take in new measurements (None for failures), and learn from all so far."""
        self.dataset = self.dataset.with_trials(candidates, latencies_s, self._context)
        if self.dataset.num_valid >= _MIN_PROGRAMS:
            self.model.update(self.dataset)
