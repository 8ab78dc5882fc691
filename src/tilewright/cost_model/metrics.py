"""How good a ranking is. Scores rank candidates of one task; labels are their true throughput, higher is better.

`mean_over_tasks` takes any of these to a dataset of several tasks. `top_k_latency_s` speaks of seconds, of which those
of the tasks of a network add up: TLP's top-k score of a network is the sum of its tasks' best latencies over the sum of
what a model finds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError

Floats = NDArray[np.float64]


def pairwise_accuracy(scores: Floats, labels: Floats) -> float:
    """The share of pairs with different labels whose scores are in the same order; equal scores count half.

    >>> pairwise_accuracy(np.array([3.0, 1.0, 1.0]), np.array([0.9, 0.5, 0.5]))
    1.0
    """
    _check(scores, labels)
    right = num_pairs = 0.0
    # A row at a time: all pairs of ten thousand programs at once would not fit into memory.
    for i in range(len(scores) - 1):
        label_order = np.sign(labels[i + 1 :] - labels[i])
        agreement = label_order * np.sign(scores[i + 1 :] - scores[i])
        right += np.count_nonzero(agreement > 0) + 0.5 * np.count_nonzero((agreement == 0) & (label_order != 0))
        num_pairs += np.count_nonzero(label_order)
    return float(right / num_pairs) if num_pairs else 1.0


def top_k_recall(scores: Floats, labels: Floats, k: int) -> float:
    """The share of the k with the highest scores that are as good as the k-th best candidate.

    Of candidates with the same score any may be among the k: it is the mean over all ways to take them.

    >>> top_k_recall(np.array([3.0, 1.0, 2.0]), np.array([0.9, 0.5, 0.1]), k=2)
    0.5
    """
    k = _check(scores, labels, k)
    is_best, last = labels >= np.sort(labels)[-k], np.sort(scores)[-k]
    sure, tied = is_best[scores > last], is_best[scores == last]
    return float(sure.sum() + tied.mean() * (k - len(sure))) / k


def peak_score(scores: Floats, labels: Floats, k: int) -> float:
    """The best label among the k candidates with the highest scores, relative to the best of all.

    Of candidates with the same score any may be among the k: it is the mean over all ways to take them.

    >>> peak_score(np.array([3.0, 1.0, 2.0]), np.array([0.4, 0.8, 0.2]), k=2)
    0.5
    """
    k = _check(scores, labels, k)
    best = labels.max()
    return -_expected_least(scores, -labels, k) / float(best) if best > 0 else 1.0


def top_k_latency_s(scores: Floats, latencies_s: Floats, k: int) -> float:
    """The latency of the fastest of the k candidates with the highest scores.

    Of candidates with the same score any may be among the k: it is the mean over all ways to take them, so that a model
    that tells nothing apart finds what a blind choice finds. A failure, whose latency is infinite, is never what is
    found; where all k failed, the slowest candidate that ran stands for them.

    >>> top_k_latency_s(np.array([3.0, 1.0, 2.0]), np.array([4.0, 1.0, np.inf]), k=2)
    4.0
    >>> top_k_latency_s(np.zeros(3), np.array([4.0, 1.0, np.inf]), k=1)
    3.0
    """
    k = _check(scores, latencies_s, k)
    ran = latencies_s[np.isfinite(latencies_s)]
    if len(ran) == 0:
        raise UsageError("at least one candidate ran, got failures alone; leave the task out")
    # Whoever fails is as slow as the slowest: so it is found only where nothing else is.
    return _expected_least(scores, np.where(np.isfinite(latencies_s), latencies_s, ran.max()), k)


def average_peak_score(scores: Floats, labels: Floats, k: int) -> float:
    """The mean of `peak_score` for 1 to k: how soon a good candidate comes up, not only whether."""
    k = _check(scores, labels, k)
    return float(np.mean([peak_score(scores, labels, taken) for taken in range(1, k + 1)]))


def mean_over_tasks(
    metric: Callable[[Floats, Floats], float], scores: Floats, labels: Floats, tasks: NDArray[np.int64]
) -> float:
    """The mean of a metric over tasks, each weighted by its number of programs."""
    _check(scores, labels)
    ids, counts = np.unique(tasks, return_counts=True)
    values = [metric(scores[tasks == task], labels[tasks == task]) for task in ids]
    return float(np.average(values, weights=counts))


def _expected_least(scores: Floats, values: Floats, k: int) -> float:
    """The least value among the k highest scores; the mean over all ways to choose among equal scores."""
    last = np.sort(scores)[-k]
    sure, tied = values[scores > last], np.sort(values[scores == last])
    found = np.minimum(tied, sure.min(initial=np.inf))
    return float(found @ _chances_of_the_least(len(tied), k - len(sure)))


def _chances_of_the_least(num: int, taken: int) -> Floats:
    """For each of `num` things in order, how likely it is the first of `taken` different ones drawn blindly."""
    places = np.arange(1, num, dtype=np.float64)
    passed_over = np.maximum(num - places - taken + 1, 0) / (num - places)
    return np.cumprod(np.concatenate([[taken / num], passed_over]))


def _check(scores: Floats, labels: Floats, k: int = 1) -> int:
    """`k`, or the number of candidates if that is less."""
    if scores.ndim != 1 or scores.shape != labels.shape or len(scores) == 0:
        raise UsageError(
            f"a metric compares as many scores as labels, at least one; got shapes {scores.shape} and {labels.shape}"
        )
    if not np.isfinite(scores).all():
        raise UsageError(f"scores are finite numbers, got {scores[~np.isfinite(scores)][0]}; mend the model")
    if k < 1:
        raise UsageError(f"k is at least 1, got {k}")
    return min(k, len(scores))
