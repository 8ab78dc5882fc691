"""Which programs of a task a dataset has: good ones and bad ones, near each other and far apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from tilewright.cost_model import AnalyticalModel
from tilewright.search.evolutionary import EvolutionarySearch
from tilewright.search.operators import mutate
from tilewright.space import Candidate, Population, Sketch, as_programs
from tilewright.tuning.recorded import candidate_of
from tilewright.tuning.untuned import search_untuned

SHARES = {
    "random": 0.35,  # any legal program
    "plain": 0.10,  # any with few cuts in each loop
    "evolved": 0.25,  # a good one by the analytical model, after some generations
    "liked": 0.15,  # one of those that it likes best
    "mutant": 0.10,  # one of those with a few knobs changed
    "poor": 0.05,  # one of those that it likes least
}
"""How the programs are chosen, and how many of them so. Where a space has too few of a kind, random ones take over."""
UNTUNED = "untuned"
"""The program of the untuned task, which is always among them."""

_POPULATION, _GENERATIONS = 512, 4
_NUM_MUTATIONS = 3
_POOL_FACTOR = 4  # the evolved and the poor ones are drawn from so many times as many
_MAX_TRIES = 20

Choice = tuple[Candidate, str]
"""A program, and how it was chosen."""


def mixture(
    sketches: Sequence[Sketch], num: int, seed: Sequence[int], seen: Collection[Candidate] = ()
) -> list[Choice]:
    """Up to `num` legal programs that are not `seen`, in random order; fewer where the space has no more.

    The same arguments give the same programs.
    """
    return _Mixture(sketches, seed, seen).draw(num)


class _Mixture:
    """The programs that were chosen, each once."""

    def __init__(self, sketches: Sequence[Sketch], seed: Sequence[int], seen: Collection[Candidate]) -> None:
        self._sketches = list(sketches)
        options = sketches[0].options
        self._score = AnalyticalModel().predict
        first_seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        strategy = EvolutionarySearch(population=_POPULATION, generations=_GENERATIONS, epsilon=0.0)
        self._search = strategy.begin(self._sketches, self._score, options.target, first_seed)
        self._search.seen.update(seen, as_programs(list(seen)))
        self._rng = self._search.rng
        self._found: list[Choice] = []
        self._not_drawn: list[Candidate] = []

    def draw(self, num: int) -> list[Choice]:
        counts = {origin: round(share * num) for origin, share in SHARES.items()}
        self._take([self._untuned()], UNTUNED, 1)
        self._take_evolved(counts["liked"], counts["evolved"])
        self._take(self._mutants(counts["mutant"]), "mutant", counts["mutant"])
        self._take(self._poor(counts["poor"]), "poor", counts["poor"])
        self._take(self._plain(counts["plain"]), "plain", counts["plain"])
        for _ in range(_MAX_TRIES):
            if len(self._found) >= num:
                break
            self._take(self._random(num), "random", num - len(self._found))
        # A small space may have nothing else.
        self._search.seen.difference_update(self._not_drawn, as_programs(self._not_drawn))
        self._take(self._not_drawn, "evolved", num - len(self._found))
        chosen = self._found[:num]
        return [chosen[place] for place in self._rng.permutation(len(chosen))]

    def _take(self, candidates: Iterable[Candidate], origin: str, num: int) -> None:
        self._found += [(candidate, origin) for candidate in self._search.take_new(list(candidates), num)]

    def _untuned(self) -> Candidate:
        """One that no sketch has, for want of legal rows, is a sketch of its own."""
        trace = search_untuned(self._sketches, model=AnalyticalModel()).trace
        first = self._sketches[0]
        found = candidate_of(trace, self._sketches)
        return found or Candidate(Sketch(first.task, trace.steps, first.options, "plain"), ())

    def _take_evolved(self, num_liked: int, num_evolved: int) -> None:
        """The best of an evolution are liked; the others are drawn from those that come next."""
        ranked = self._search.ask(num_liked + _POOL_FACTOR * num_evolved)
        self._found += [(candidate, "liked") for candidate in ranked[:num_liked]]
        others = self._shuffled(ranked[num_liked:])
        self._found += [(candidate, "evolved") for candidate in others[:num_evolved]]
        self._not_drawn = others[num_evolved:]

    def _mutants(self, num: int) -> list[Candidate]:
        liked = [candidate for candidate, origin in self._found if origin == "liked"]
        found: list[Candidate] = []
        for sketch in dict.fromkeys(candidate.sketch for candidate in liked):
            population = Population.of([candidate for candidate in liked if candidate.sketch is sketch])
            parents = population[self._rng.integers(0, len(population), _POOL_FACTOR * num)]
            for _ in range(_NUM_MUTATIONS):
                parents = mutate(self._rng, parents)
            found += self._search.only_legal(parents.unique())
        return self._shuffled(found)

    def _poor(self, num: int) -> list[Candidate]:
        """Those of a few random ones with the lowest scores."""
        share = _POOL_FACTOR * num // len(self._sketches) + 1
        drawn = [self._search.random_legal(sketch, share) for sketch in self._sketches]
        scores = np.concatenate([self._score(population) for population in drawn])
        candidates = [candidate for population in drawn for candidate in population]
        return [candidates[place] for place in np.argsort(scores, kind="stable")]

    def _plain(self, num: int) -> list[Candidate]:
        share = _POOL_FACTOR * num // len(self._sketches) + 1
        drawn = [self._search.only_legal(s.sample_plain(self._rng, share).unique()) for s in self._sketches]
        return self._shuffled([candidate for population in drawn for candidate in population])

    def _random(self, num: int) -> list[Candidate]:
        share = num // len(self._sketches) + 1
        drawn = [self._search.random_legal(sketch, share) for sketch in self._sketches]
        return self._shuffled([candidate for population in drawn for candidate in population])

    def _shuffled(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return [candidates[place] for place in self._rng.permutation(len(candidates))]
