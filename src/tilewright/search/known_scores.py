"""What a round has looked at: to look at a candidate again costs as much as to look at a new one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tilewright.search.base import FloatArray
from tilewright.space import Population, Sketch

Keys = npt.NDArray[np.uint64]


class KnownScores:
    """Gives what `look` gives for a population, and asks it only for candidates that are new."""

    def __init__(self, look: Callable[[Population], FloatArray]) -> None:
        self._look = look
        self._known: dict[Sketch, tuple[Keys, FloatArray]] = {}  # sorted by the keys

    def scores(self, population: Population) -> FloatArray:
        """A score for each candidate, also where some of them are the same."""
        keys, first, places = np.unique(_keys(population), return_index=True, return_inverse=True)
        known_keys, known_scores = self._known.get(population.sketch, (keys[:0], np.empty(0)))
        is_new = ~np.isin(keys, known_keys, assume_unique=True)
        if is_new.any():
            places_of_new = np.searchsorted(known_keys, keys[is_new])
            known_keys = np.insert(known_keys, places_of_new, keys[is_new])
            known_scores = np.insert(known_scores, places_of_new, self._look(population[first[is_new]]))
            self._known[population.sketch] = known_keys, known_scores
        scores: FloatArray = known_scores[np.searchsorted(known_keys, keys)][places]
        return scores


def _keys(population: Population) -> Keys:
    """The number of each row, the digits of which are its choices.

    In a space of more than 2^64 candidates they are remainders: that two of some thousands are the same is as good as
    impossible, and would cost one of them its right score. Bases are odd, so that no digit is lost to the remainder:
    neighbours, which differ in a single choice, are never the same.
    """
    keys = np.zeros(len(population), np.uint64)
    for column, knob in enumerate(population.sketch.knobs):
        keys = keys * np.uint64(knob.cardinality | 1) + population.rows[:, column].astype(np.uint64)
    return keys
