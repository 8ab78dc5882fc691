"""What boosted trees minimise: first and second derivatives by the scores of programs, all programs at once.

A program's score is the sum of its statements' scores; `by_statement` makes of the derivatives by programs those by
statements, as xgboost wants them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Derivatives: TypeAlias = tuple[Floats, Floats]
ProgramObjective: TypeAlias = Callable[[Floats], Derivatives]
StatementObjective: TypeAlias = Callable[[NDArray[np.float32], Any], Derivatives]

# Of shorter lists all pairs are taken; in a longer one each program meets this many others.
_LONGEST_WHOLE_LIST = 128
_NUM_PARTNERS = 64
_STEPS = 12
_LARGEST_SLOPE = 20.0


def by_statement(
    objective: ProgramObjective, examples: Examples, offset: Floats | float, learning_rate: float
) -> StatementObjective:
    """The objective of programs whose scores are `offset` and the sum of their statements' scores.

    Where all statements of a program are in one leaf, its score moves by as many times the leaf's step; a larger second
    derivative keeps many of them from overshooting.
    """
    counts, starts = examples.num_statements, examples.offsets[:-1]
    damping = np.maximum(1.0, learning_rate * counts)

    def of_statements(scores: NDArray[np.float32], _: Any) -> Derivatives:
        first, second = objective(offset + np.add.reduceat(scores, starts, dtype=np.float64))
        return np.repeat(first, counts), np.repeat(second * damping, counts)

    return of_statements


class Squared:
    """weight / 2 * (score - label)^2."""

    def __init__(self, labels: Floats, weights: Floats) -> None:
        self._labels, self._weights = labels, weights

    def __call__(self, scores: Floats) -> Derivatives:
        return self._weights * (scores - self._labels), self._weights


class SquaredInLists:
    """weight / 2 * (score - label - what the list is off by)^2: scores are compared within lists alone."""

    def __init__(self, labels: Floats, weights: Floats, lists: Integers) -> None:
        self._labels, self._weights, self._lists = labels, weights, lists
        self._totals = np.maximum(np.bincount(lists, weights), np.finfo(np.float64).tiny)

    def __call__(self, scores: Floats) -> Derivatives:
        return self._weights * self._centred(scores - self._labels), self._weights

    def slope(self, scores: Floats) -> float:
        """The factor of the scores with which they come nearest."""
        centred = self._weights * self._centred(scores)
        spread = float(centred @ self._centred(scores))
        return float(np.clip(centred @ self._labels / spread, 0.0, _LARGEST_SLOPE)) if spread > 0 else 0.0

    def _centred(self, values: Floats) -> Floats:
        return values - (np.bincount(self._lists, self._weights * values) / self._totals)[self._lists]


class RankInLists:
    """LambdaRank: over pairs of a list, the logistic loss of having them the wrong way round, times what that costs.

    That is the difference of their gains times that of the discounts of their places; those of a list are scaled so
    that a program weighs one on average.
    """

    def __init__(self, labels: Floats, lists: Integers, seed: int, num_partners: int | None = None) -> None:
        self._lists = lists
        self._better, self._worse = pairs(labels, lists, seed, num_partners)
        gains = np.exp2(labels) - 1
        self._gain = gains[self._better] - gains[self._worse]
        self._list_of_pair = lists[self._better]
        self._num_programs = np.bincount(lists).astype(np.float64)

    def __call__(self, scores: Floats) -> Derivatives:
        weights = self._weights(scores)
        wrong = _chance_of(scores[self._worse] - scores[self._better])
        return self._sums(-weights * wrong, weights * wrong), self._sums(*[weights * wrong * (1 - wrong)] * 2)

    def slope(self, scores: Floats) -> float:
        """The factor of the scores with which they rank best."""
        weights = self._weights(scores)
        ahead = scores[self._better] - scores[self._worse]
        slope = 1.0
        for _ in range(_STEPS):  # of Newton's method
            wrong = _chance_of(-slope * ahead)
            curvature = float((weights * wrong * (1 - wrong)) @ ahead**2)
            if not curvature > 0:
                break
            slope = float(np.clip(slope + (weights * wrong) @ ahead / curvature, slope / 4, slope * 4 + 0.1))
        return min(slope, _LARGEST_SLOPE)

    def _weights(self, scores: Floats) -> Floats:
        discounts = 1 / np.log2(1 + places(scores, self._lists))
        weights: Floats = np.abs(discounts[self._better] - discounts[self._worse]) * self._gain
        totals = np.bincount(self._list_of_pair, weights, len(self._num_programs)).astype(np.float64)
        scale = np.divide(self._num_programs, totals, out=np.zeros_like(totals), where=totals > 0)
        return np.asarray(weights * scale[self._list_of_pair], np.float64)

    def _sums(self, of_better: Floats, of_worse: Floats) -> Floats:
        """What each program has from all its pairs."""
        programs, values = np.concatenate([self._better, self._worse]), np.concatenate([of_better, of_worse])
        return np.bincount(programs, values, len(self._lists)).astype(np.float64)


def pairs(labels: Floats, lists: Integers, seed: int, num_partners: int | None = None) -> tuple[Integers, Integers]:
    """Pairs of programs of one list with different labels, the better ones first; a sample of those of long lists.

    `num_partners` is how many others each program meets in a list that is longer than twice that.
    """
    longest = _LONGEST_WHOLE_LIST if num_partners is None else 2 * num_partners
    met = _NUM_PARTNERS if num_partners is None else num_partners
    rng = np.random.default_rng(seed)
    better: list[Integers] = [np.zeros(0, np.int64)]
    worse: list[Integers] = [np.zeros(0, np.int64)]
    for programs in _members(lists):
        num = len(programs)
        if num <= longest:
            first, second = np.triu_indices(num, 1)
        else:
            first = np.repeat(np.arange(num), met)
            second = (first + rng.integers(1, num, len(first))) % num
        one, other = programs[first], programs[second]
        is_better, is_worse = labels[one] > labels[other], labels[one] < labels[other]
        better += [one[is_better], other[is_worse]]
        worse += [other[is_better], one[is_worse]]
    return np.concatenate(better), np.concatenate(worse)


def places(scores: Floats, lists: Integers) -> Integers:
    """Of each program its place in its list: 1 for the highest score.

    >>> places(np.array([0.1, 0.5, 0.2, 0.3]), np.array([0, 0, 1, 1]))
    array([2, 1, 2, 1])
    """
    order = np.lexsort((-scores, lists))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = lists[order[1:]] != lists[order[:-1]]
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) - starts + 1
    return found


def _members(lists: Integers) -> list[Integers]:
    order = np.argsort(lists, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(lists[order])) + 1)


def _chance_of(margin: Floats) -> Floats:
    """The logistic function."""
    chance: Floats = 1 / (1 + np.exp(-np.clip(margin, -500, 500)))
    return chance
