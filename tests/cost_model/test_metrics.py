"""Metrics of rankings, by small cases that can be counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright import UsageError
from tilewright.cost_model import (
    average_peak_score,
    mean_over_tasks,
    pairwise_accuracy,
    peak_score,
    top_k_latency_s,
    top_k_recall,
)

LABELS = np.array([0.1, 0.4, 1.0, 0.8])


def test_a_perfect_and_a_reversed_ranking() -> None:
    assert pairwise_accuracy(10 * LABELS, LABELS) == 1.0
    assert pairwise_accuracy(-LABELS, LABELS) == 0.0
    for k in (1, 2, 4):
        assert top_k_recall(LABELS, LABELS, k) == peak_score(LABELS, LABELS, k) == 1.0
    assert top_k_recall(-LABELS, LABELS, 2) == 0.0
    assert peak_score(-LABELS, LABELS, 2) == 0.4


def test_pairs_of_equal_labels_do_not_count_and_equal_scores_count_half() -> None:
    assert pairwise_accuracy(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 1.0])) == 1.0
    assert pairwise_accuracy(np.zeros(4), LABELS) == 0.5
    assert pairwise_accuracy(np.array([1.0, 2.0]), np.array([0.5, 0.5])) == 1.0


def test_average_peak_score_is_the_mean_of_the_best_so_far() -> None:
    scores = np.array([4.0, 3.0, 2.0, 1.0])
    assert average_peak_score(scores, LABELS, 3) == pytest.approx((0.1 + 0.4 + 1.0) / 3)
    assert [peak_score(scores, LABELS, k) for k in (1, 2, 3)] == [0.1, 0.4, 1.0]


def test_among_equal_scores_the_order_of_the_candidates_says_nothing() -> None:
    """What tells nothing apart is as good as a blind choice, whether the best candidate comes first or last."""
    for order in ([0, 1, 2, 3], [2, 3, 1, 0]):
        blind = [peak_score(np.zeros(4), LABELS[order], k) for k in (1, 2)]
        assert average_peak_score(np.zeros(4), LABELS[order], 2) == pytest.approx(np.mean(blind))
        assert top_k_recall(np.zeros(4), LABELS[order], 1) == 0.25
        knows_the_best = np.where(LABELS[order] == 1.0, 1.0, 0.0)
        assert top_k_recall(knows_the_best, LABELS[order], 2) == pytest.approx((1 + 1 / 3) / 2)


def test_a_candidate_as_good_as_the_best_is_as_good_a_choice() -> None:
    labels = np.array([1.0, 1.0, 0.5])
    for scores in ([3.0, 2.0, 1.0], [2.0, 3.0, 1.0]):
        assert top_k_recall(np.array(scores), labels, 1) == 1.0
    assert top_k_recall(np.array([2.0, 1.0, 3.0]), labels, 2) == 0.5


def test_k_above_the_number_of_candidates_means_all() -> None:
    assert peak_score(-LABELS, LABELS, 100) == top_k_recall(-LABELS, LABELS, 100) == 1.0


def test_failures_alone_have_nothing_to_miss() -> None:
    assert peak_score(LABELS, np.zeros(4), 1) == average_peak_score(LABELS, np.zeros(4), 1) == 1.0


def test_tasks_weigh_as_many_programs_as_they_have() -> None:
    scores, labels = np.array([1.0, 2.0, 3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0, 1.0, 2.0])
    tasks = np.array([7, 7, 7, 9, 9])
    assert mean_over_tasks(pairwise_accuracy, scores, labels, tasks) == pytest.approx(3 / 5)


def test_errors() -> None:
    with pytest.raises(UsageError, match=r"as many scores as labels, at least one; got shapes \(3,\) and \(4,\)"):
        pairwise_accuracy(np.zeros(3), LABELS)
    with pytest.raises(UsageError, match="k is at least 1, got 0"):
        peak_score(LABELS, LABELS, 0)


LATENCIES_S = np.array([4.0, 1.0, np.inf, 2.0, 8.0])


def test_the_fastest_of_the_highest_scores_is_found() -> None:
    scores = np.array([5.0, 1.0, 4.0, 3.0, 2.0])
    assert [top_k_latency_s(scores, LATENCIES_S, k) for k in (1, 2, 3, 4, 5, 9)] == [4.0, 4.0, 2.0, 2.0, 1.0, 1.0]


def test_failures_alone_among_the_highest_are_as_slow_as_the_slowest_that_ran() -> None:
    scores = np.array([1.0, 1.0, 5.0, 2.0, 3.0])
    assert [top_k_latency_s(scores, LATENCIES_S, k) for k in (1, 2, 3)] == [8.0, 8.0, 2.0]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("seed", range(6))
def test_equal_scores_give_the_mean_over_all_ways_to_take_them(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores, latencies_s = rng.integers(0, 3, 7).astype(np.float64), rng.integers(1, 9, 7).astype(np.float64)
    latencies_s[rng.random(7) < 0.2] = np.inf
    latencies_s[0] = 3.0
    as_counted = np.where(np.isfinite(latencies_s), latencies_s, latencies_s[np.isfinite(latencies_s)].max())
    taken = [sorted(order, key=lambda n: -scores[n])[:k] for order in itertools.permutations(range(7))]
    expected_s = np.mean([as_counted[chosen].min() for chosen in taken])
    assert top_k_latency_s(scores, latencies_s, k) == pytest.approx(expected_s)
    labels = 1 / latencies_s
    peak = np.mean([labels[chosen].max() for chosen in taken]) / labels.max()
    assert peak_score(scores, labels, k) == pytest.approx(peak)


def test_the_order_of_the_candidates_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    scores, latencies_s = rng.integers(0, 4, 50).astype(np.float64), rng.random(50) + 0.1
    order = rng.permutation(50)
    assert top_k_latency_s(scores, latencies_s, 5) == pytest.approx(
        top_k_latency_s(scores[order], latencies_s[order], 5)
    )


def test_scores_that_are_no_numbers_and_failures_alone_are_refused() -> None:
    with pytest.raises(UsageError, match="scores are finite numbers, got nan"):
        top_k_latency_s(np.array([1.0, np.nan]), np.ones(2), 1)
    with pytest.raises(UsageError, match="at least one candidate ran, got failures alone"):
        top_k_latency_s(np.ones(2), np.full(2, np.inf), 1)
