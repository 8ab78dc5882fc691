"""How candidates are scored while a task is tuned: by the cost model, or by the analytical one until it has learned.

For a model that takes longer the analytical one drafts: it scores all, and the model those that it prefers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tilewright.cost_model import AnalyticalModel, CostModel, Dataset, Group, RandomModel, ResidualModel
from tilewright.space import Candidate, Population

if TYPE_CHECKING:
    from tilewright.tuning.shared import SharedTrials

Floats = npt.NDArray[np.float64]

# With fewer measured programs than this the learned model knows less than the analytical one.
_MIN_PROGRAMS = 12
# Of so few candidates all are scored by the model.
_MIN_VERIFIED = 32


class Scoring:
    """Scores of populations, and the measured programs that the cost model learns from.

    With `shared` it learns from what other devices measure of the task, too, as far as the model can tell devices
    apart: see `share`.
    """

    def __init__(self, model: CostModel, context: str = "warm") -> None:
        self.analytical = AnalyticalModel()
        self.model = model
        self.dataset = Dataset()
        self._context = context
        self._device = self._task = ""
        self._shared: SharedTrials | None = None
        self._num_shared = 0
        knows = model.is_fitted and not isinstance(model, RandomModel)
        self.drafting: CostModel = model if knows else self.analytical
        """What chooses the first program of all, whatever is known of other tasks."""

    def share(self, shared: SharedTrials, task: str, device: str) -> None:
        """Learn of the task, by its hash, with those who tune it for other devices. Before anything is learned."""
        self._shared, self._task, self._device = shared, task, device
        self.model = self._on_device(self.model)
        shared.join(task, self._context, self)

    def _on_device(self, model: CostModel) -> CostModel:
        """One that adapts to a task reads what the device is; others learn from their own device alone."""
        if self._shared is None or not isinstance(model, ResidualModel) or model.local_ is not None:
            return model
        return model.reading_devices().on_device(self._device)

    def begin_with(self, model: CostModel) -> None:
        """Score by another model from now on; it learns of the task what is measured next."""
        self.model = self._on_device(model)
        self._num_shared = 0

    def scores(self, population: Population) -> Floats:
        """A score for each candidate, higher for faster programs, comparable over the sketches of a task."""
        if not self.model.is_fitted:
            return self.analytical.predict(population)
        if self.model.verified_share == 1:
            return self.model.predict(population)
        return verified(population, self.analytical.predict(population), self.model)

    def learn(self, candidates: Sequence[Candidate], latencies_s: Sequence[float | None]) -> None:
        """Take in new measurements (None for failures), and learn from all so far."""
        self.dataset = self.dataset.with_trials(candidates, latencies_s, self._context, self._device)
        self._update(self._others())

    def catch_up(self) -> None:
        """Learn from what other devices have measured since it learned last."""
        others = self._others()
        if sum(map(len, others)) > self._num_shared:
            self._update(others)

    def _others(self) -> tuple[Group, ...]:
        if self._shared is None or not isinstance(self.model, ResidualModel):
            return ()
        return self._shared.of_others(self._task, self._context, self)

    def _update(self, others: tuple[Group, ...]) -> None:
        self._num_shared = sum(map(len, others))
        known = Dataset((*self.dataset.groups, *others))
        if known.num_valid >= _MIN_PROGRAMS:
            self.model.update(known)


def verified(population: Population, drafts: Floats, model: CostModel) -> Floats:
    """The model's scores of the candidates with the best drafts; the others follow below, in the order of their drafts.

    Both are logarithms of throughput, or are treated as if they were.
    """
    number = max(_MIN_VERIFIED, round(model.verified_share * len(population)))
    if len(population) <= number:
        return model.predict(population)
    order = np.argsort(-drafts, kind="stable")
    best = np.sort(order[:number])
    scores = model.predict(population[best])
    found: Floats = scores.min() + np.minimum(drafts - drafts[best].min(), 0.0)
    found[best] = scores
    return found
