"""What lies next to the fastest programs: what a cost model gets wrong of a program it gets wrong of these, too."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from tilewright.search.base import FloatArray, Scorer
from tilewright.search.best import Best
from tilewright.search.operators import neighbours
from tilewright.space import Candidate, Population
from tilewright.target import Target

# So many times the latency of the fastest is close to it: of what was measured, and of what is worth a trial.
_CLOSE = 1.1
_MOST_CENTRES = 8


def near_fastest(
    measured: Sequence[tuple[Candidate, float]], scorer: Scorer, target: Target, given: Set[Candidate]
) -> list[Candidate]:
    """Candidates that were not given and differ in one knob from one of the fastest measured ones, best first.

    What is expected of such a candidate is what its neighbour measured, times what the scores say of the difference of
    both; those that are not expected to be close to the fastest are left out. `measured` has the fastest first.
    """
    if not measured:
        return []
    least_s = measured[0][1]
    centres = [(centre, latency_s) for centre, latency_s in measured[:_MOST_CENTRES] if latency_s <= _CLOSE * least_s]
    found = Best(given, size=_MOST_CENTRES * 256)
    for sketch in dict.fromkeys(centre.sketch for centre, _ in centres):
        own = [(centre, latency_s) for centre, latency_s in centres if centre.sketch is sketch]
        population, speeds = _around([c for c, _ in own], [least_s / latency_s for _, latency_s in own], scorer)
        is_worth_it = (speeds >= -np.log(_CLOSE)) & population.legal(target)
        found.offer(population[is_worth_it], speeds[is_worth_it])
    return found.candidates


def _around(centres: Sequence[Candidate], speeds: Sequence[float], scorer: Scorer) -> tuple[Population, FloatArray]:
    """The centres, which are of one sketch, and all their neighbours, with the logarithms of their expected speeds."""
    parts = [neighbours(centre) for centre in centres]
    population = Population.concatenate([Population.of(centres), *parts])
    numbers = np.arange(len(centres))
    centre_of = np.concatenate([numbers, np.repeat(numbers, [len(part) for part in parts])])
    scores = scorer(population)
    return population, scores - scores[centre_of] + np.log(speeds)[centre_of]
