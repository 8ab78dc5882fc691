"""Simulated annealing over the scores: chains that walk through the space, all at once, and go on in the next round."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewright.search.base import FloatArray
from tilewright.search.best import Best
from tilewright.search.known_scores import KnownScores
from tilewright.search.operators import change_sketch, mutate
from tilewright.search.options import number, share, whole
from tilewright.search.points import Points
from tilewright.search.scored import KEPT, ScoredSearch
from tilewright.space import Candidate, Population, Sketch


@dataclass(kw_only=True, eq=False)
class SimulatedAnnealing(ScoredSearch):
    """AutoTVM's search: chains go to neighbours that score higher, and while it is hot also to others.

    A neighbour whose score is lower by as much as the scores of the chains are apart (by the half of them in the
    middle) is accepted with probability exp(-1 / temperature); the temperature falls evenly over the steps of a round.
    Chains stay where they are between the rounds. They are shared out over the sketches, and some moves go to another.

    AutoTVM takes 500 steps of one neighbour for a batch of 64, and gives up after 50 without a better one. Here what
    costs is a call of the scorer for each sketch, nearly as much for a few candidates as for a hundred. So a step
    scores `tries` neighbours of every chain at once and takes the first that is accepted, which is as if one was tried
    after the other; and a round has few steps, from a lower temperature: the chains go on in the next.
    """

    chains: int = whole(128)
    steps: int = whole(6)
    tries: int = whole(8)
    early_stop: int = whole(3)
    """After so many steps without one better than the batch's best so far the round ends."""
    start_temperature: float = number(0.3)
    end_temperature: float = number(0.0)
    relocate_share: float = share(0.05)

    _points: Points | None = field(init=False, repr=False)  # where the chains are
    _known: KnownScores = field(init=False, repr=False)

    def prepare(self) -> None:
        self._points = None

    def add(self, sketch: Sketch) -> None:
        """The chains begin anew, so that the sketch gets its share of them."""
        super().add(sketch)
        self._points = None

    def ask(self, n: int) -> list[Candidate]:
        self._known = KnownScores(self.legal_scores)
        best = Best(self.seen, KEPT * n)
        points = self._starts() if self._points is None else self._points
        if len(points):
            self._points = self._annealed(points, best, n)
        return self.batch(best, n)

    def _starts(self) -> Points:
        """Random candidates and plain ones, as many of each sketch."""
        num = -(-self.chains // len(self.sketches))
        drawn = [self._drawn(sketch, num) for sketch in self.sketches]
        return Points.of(self.sketches, [candidate for population in drawn for candidate in population])

    def _drawn(self, sketch: Sketch, num: int) -> Population:
        plain = self.only_legal(sketch.sample_plain(self.rng, num))
        return Population.concatenate([plain[: num // 2], self.random_legal(sketch, num)])[:num]

    def _annealed(self, points: Points, best: Best, n: int) -> Points:
        scores = self._scored(points, best)
        unit = _spread(scores)
        reached, since = best.least_of(n), 0
        for temperature in np.linspace(self.start_temperature, self.end_temperature, self.steps).tolist():
            points, scores = self._advanced(points, scores, temperature * unit, best)
            since = 0 if best.least_of(n) > reached else since + 1
            reached = best.least_of(n)
            if since >= self.early_stop:
                break
        return points

    def _scored(self, points: Points, best: Best) -> FloatArray:
        """A score for each, lower than any where it is illegal; the legal ones are offered."""
        scores = np.empty(len(points))
        for places, population in points.populations():
            scores[places] = self._known.scores(population)
            legal = scores[places] > -np.inf
            best.offer(population[legal], scores[places[legal]])
        return scores

    def _advanced(self, points: Points, scores: FloatArray, allowed: float, best: Best) -> tuple[Points, FloatArray]:
        """Each chain at the first of its tries that is accepted, or where it was; their scores."""
        num = len(points)
        tried = self._moved(points[np.tile(np.arange(num), self.tries)])
        tried_scores = self._scored(tried, best).reshape(self.tries, num)
        accepted = scores - tried_scores <= allowed * self.rng.exponential(size=tried_scores.shape)
        first, chain = np.argmax(accepted, axis=0), np.arange(num)
        moves = accepted[first, chain]
        return points.where(moves, tried[first * num + chain]), np.where(moves, tried_scores[first, chain], scores)

    def _moved(self, points: Points) -> Points:
        """A neighbour of each, or the same in another sketch."""
        rows = points.rows.copy()
        for places, population in points.populations():
            rows[places, : len(population.sketch.knobs)] = mutate(self.rng, population).rows
        changes = self.rng.random(len(points)) < self.relocate_share
        mutants = Points(points.sketches, points.owners, rows)
        return mutants.where(changes, change_sketch(self.rng, points))


def _spread(scores: FloatArray) -> float:
    """How far the half in the middle is apart; 1 where all are alike, as before anything was learned."""
    low, high = np.quantile(scores, [0.25, 0.75]).tolist()
    return (high - low) or float(scores.std()) or 1.0
