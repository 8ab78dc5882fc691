"""How candidates are scored while a task is tuned: by the analytical model at first, then by what was learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.codegen import Target
from tilewright.cost_model import CostModel, Dataset
from tilewright.cost_model.analytical import AnalyticalModel
from tilewright.features import Hardware, statement_features
from tilewright.space import Candidate, Sketch
from tilewright.space.knob import IntArray

# With fewer measured programs than this the learned model knows less than the analytical one.
_MIN_PROGRAMS = 12


class Scoring:
    """Scores of populations, and the measured programs that the cost model learns from."""

    def __init__(self, target: Target, threads: int, model: CostModel) -> None:
        self.hardware = Hardware.from_target(target, threads)
        self.analytical = AnalyticalModel(hardware=self.hardware)
        self.model = model
        self._features: list[npt.NDArray[np.float32]] = []
        self._latencies_s: list[float | None] = []

    def scores(self, sketch: Sketch, rows: IntArray) -> npt.NDArray[np.float64]:
        """A score for each row, higher for faster programs, comparable over the sketches of a task."""
        schedule = sketch.population(rows)
        if not self.model.is_fitted:
            return self.analytical.predict(schedule, len(rows))
        return self.model.predict(statement_features(schedule, len(rows), self.hardware).values)

    def learn(self, candidates: Sequence[Candidate], latencies_s: Sequence[float | None]) -> None:
        """Take in new measurements (None for failures), and learn from all so far."""
        for candidate, latency in zip(candidates, latencies_s, strict=True):
            row = np.asarray([candidate.row], np.int64)
            table = statement_features(candidate.sketch.population(row), 1, self.hardware)
            self._features.append(table.values[0])
            self._latencies_s.append(latency)
        if sum(latency is not None for latency in self._latencies_s) >= _MIN_PROGRAMS:
            tasks = [0] * len(self._features)
            self.model.update(Dataset.build(self._features, self._latencies_s, tasks))
