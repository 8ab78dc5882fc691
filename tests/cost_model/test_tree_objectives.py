"""Derivatives are those of the losses, by finite differences; pairs are of one list; slopes suit the labels."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.cost_model import Examples
from tilewright.cost_model.tree_objectives import (
    RankInLists,
    Squared,
    SquaredInLists,
    by_statement,
    pairs,
    places,
)

Floats = NDArray[np.float64]

LISTS = np.array([0, 1, 0, 2, 1, 0, 1])
LABELS = np.array([1.0, 0.2, 0.5, 1.0, 1.0, 0.0, 0.2])
WEIGHTS = np.maximum(LABELS, 0.05)
SCORES = np.array([0.1, 0.7, 0.4, -3.0, 0.2, 0.3, 0.0])


def squared_in_lists(scores: Floats) -> float:
    """With what each list is off by chosen best."""
    total = 0.0
    for number in np.unique(LISTS):
        mine = number == LISTS
        error = (scores - LABELS)[mine]
        total += 0.5 * float(WEIGHTS[mine] @ (error - np.average(error, weights=WEIGHTS[mine])) ** 2)
    return total


def rank_loss(scores: Floats, weights: dict[tuple[int, int], float]) -> float:
    return sum(weight * float(np.log1p(np.exp(scores[j] - scores[i]))) for (i, j), weight in weights.items())


def rank_weights(scores: Floats) -> dict[tuple[int, int], float]:
    """By the formula, pair by pair."""
    found: dict[tuple[int, int], float] = {}
    for number in np.unique(LISTS):
        mine = np.flatnonzero(number == LISTS).tolist()
        order = sorted(mine, key=lambda n: -scores[n])
        discount = {n: 1 / np.log2(1 + place) for place, n in enumerate(order, 1)}
        own = {
            (i, j): abs(discount[i] - discount[j]) * (2 ** LABELS[i] - 2 ** LABELS[j])
            for i in mine
            for j in mine
            if LABELS[i] > LABELS[j]
        }
        found |= {pair: weight * len(mine) / sum(own.values()) for pair, weight in own.items()}
    return found


def slopes(loss: object, at: Floats, step: float = 1e-5) -> Floats:
    assert callable(loss)
    return np.array([(loss(at + e) - loss(at - e)) / (2 * step) for e in np.eye(len(at)) * step])


def test_squared_error() -> None:
    first, second = Squared(LABELS, WEIGHTS)(SCORES)
    np.testing.assert_allclose(first, WEIGHTS * (SCORES - LABELS))
    np.testing.assert_allclose(second, WEIGHTS)


def test_squared_error_in_lists_is_blind_to_what_a_list_is_off_by() -> None:
    objective = SquaredInLists(LABELS, WEIGHTS, LISTS)
    first, _ = objective(SCORES)
    np.testing.assert_allclose(first, slopes(squared_in_lists, SCORES), atol=1e-8)
    np.testing.assert_allclose(objective(SCORES + 10.0 * LISTS)[0], first, atol=1e-9)


def test_the_rank_loss_has_the_weights_of_its_formula() -> None:
    weights = rank_weights(SCORES)
    first, second = RankInLists(LABELS, LISTS, seed=0)(SCORES)
    np.testing.assert_allclose(first, slopes(lambda s: rank_loss(s, weights), SCORES), atol=1e-8)
    step = 1e-4
    curvature = [
        (rank_loss(SCORES + e, weights) - 2 * rank_loss(SCORES, weights) + rank_loss(SCORES - e, weights)) / step**2
        for e in np.eye(len(SCORES)) * step
    ]
    np.testing.assert_allclose(second, curvature, atol=1e-5)
    assert first[3] == second[3] == 0  # alone in its list


def test_pairs_are_of_one_list_the_better_first_each_once() -> None:
    better, worse = pairs(LABELS, LISTS, seed=0)
    assert sorted(zip(better.tolist(), worse.tolist(), strict=True)) == [(0, 2), (0, 5), (2, 5), (4, 1), (4, 6)]


def test_of_a_long_list_each_program_meets_some_others() -> None:
    rng = np.random.default_rng(0)
    labels, lists = rng.random(1200), np.repeat([0, 1], [1000, 200])
    better, worse = pairs(labels, lists, seed=0)
    assert len(better) <= 1200 * 64
    assert (lists[better] == lists[worse]).all()
    assert (labels[better] > labels[worse]).all()
    assert np.bincount(np.concatenate([better, worse]), minlength=1200).min() >= 64
    again = pairs(labels, lists, seed=0)
    np.testing.assert_array_equal(np.stack([better, worse]), np.stack(again))


def test_nothing_to_compare_gives_no_derivatives() -> None:
    for labels in (np.ones(4), np.zeros(4)):
        first, second = RankInLists(labels, np.array([0, 0, 1, 1]), seed=0)(np.arange(4.0))
        np.testing.assert_array_equal([first, second], np.zeros((2, 4)))


def test_places_count_from_the_highest_score_of_each_list() -> None:
    assert places(SCORES, LISTS).tolist() == [3, 1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_the_slope_brings_scores_to_the_size_of_labels(factor: float) -> None:
    rng = np.random.default_rng(0)
    lists = np.repeat(np.arange(20), 10)
    truth = rng.normal(size=200)
    squared = SquaredInLists(truth, np.ones(200), lists)
    assert squared.slope(truth / factor + 5.0 * lists) == pytest.approx(factor)
    assert squared.slope(-truth) == 0.0
    labels = np.exp(truth - truth.max())
    rank = RankInLists(labels, lists, seed=0)
    noisy = truth + rng.normal(size=200)
    assert rank.slope(noisy / factor) == pytest.approx(factor * rank.slope(noisy), rel=0.05)


def test_a_slope_of_nothing_to_learn_from_is_finite() -> None:
    for objective in (
        SquaredInLists(np.ones(4), np.ones(4), np.zeros(4, np.int64)),
        RankInLists(np.ones(4), LISTS[:4], 0),
    ):
        assert np.isfinite(objective.slope(np.ones(4)))
        assert np.isfinite(objective.slope(np.arange(4.0)))


def test_a_slope_against_the_order_goes_to_zero() -> None:
    labels = np.linspace(0, 1, 50)
    assert RankInLists(labels, np.zeros(50, np.int64), 0).slope(-labels) < 0.01


def test_statements_share_what_their_program_gets() -> None:
    features = [np.zeros((num, 1), np.float32) for num in (1, 2, 1, 3, 1, 1, 10)]
    examples = Examples.build(features, [1.0] * 7, ["task"] * 7)
    statements = np.repeat(SCORES / examples.num_statements, examples.num_statements).astype(np.float32)
    first, second = by_statement(Squared(LABELS, WEIGHTS), examples, 0.0, learning_rate=0.2)(statements, None)
    expected = np.repeat(WEIGHTS * (SCORES - LABELS), examples.num_statements)
    np.testing.assert_allclose(first, expected, atol=1e-6)
    damping = np.repeat([1, 1, 1, 1, 1, 1, 2], examples.num_statements)
    np.testing.assert_allclose(second, np.repeat(WEIGHTS, examples.num_statements) * damping)


def test_many_lists_take_milliseconds() -> None:
    """An order of magnitude above what it takes, so that only a real loss of speed fails."""
    rng = np.random.default_rng(0)
    lists, labels = np.repeat(np.arange(100), 96), rng.random(9600)
    objective = RankInLists(labels, lists, seed=0)
    start = time.process_time()
    objective(rng.random(9600))
    assert time.process_time() - start < 0.5
