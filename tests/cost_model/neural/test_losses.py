"""The losses are what a slow, obvious computation gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tilewright.cost_model.neural.losses import RankedLists, lambda_rank, mean_squared_error


def slow_lambda_rank(scores: NDArray[np.float32], labels: NDArray[np.float64], sizes: list[int]) -> float:
    """Of each list, pair by pair, by the formulas."""
    total, start = 0.0, 0
    for size in sizes:
        s, y = scores[start : start + size].tolist(), labels[start : start + size].tolist()
        start += size
        rank = {i: 1 + place for place, i in enumerate(sorted(range(size), key=lambda i: -s[i]))}
        best = sum((2**label - 1) / math.log2(1 + place) for place, label in enumerate(sorted(y, reverse=True), 1))
        for i in range(size):
            for j in range(size):
                if y[i] > y[j]:
                    gain = abs((2 ** y[i] - 1) / best - (2 ** y[j] - 1) / best)
                    discount = abs(1 / math.log2(1 + rank[i]) - 1 / math.log2(1 + rank[j]))
                    total -= gain * discount * math.log2(1 / (1 + math.exp(-(s[i] - s[j]))))
    return total / len(sizes)


@pytest.mark.parametrize("sizes", [[1], [5], [4, 1, 7], [12, 30]])
@pytest.mark.parametrize("seed", range(3))
def test_lambda_rank_is_the_sum_over_pairs(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, sum(sizes)) / 4
    scores = rng.normal(size=sum(sizes)).astype(np.float32)
    found = lambda_rank(torch.from_numpy(scores), RankedLists.of(labels, np.array(sizes)))
    assert float(found) == pytest.approx(slow_lambda_rank(scores, labels, sizes), rel=1e-5)


def test_the_gradient_of_lambda_rank_has_the_ranks_as_they_are() -> None:
    labels, sizes = np.array([1.0, 0.5, 0.2, 0.9]), np.array([4])
    lists = RankedLists.of(labels, sizes)
    scores = torch.tensor([0.1, 0.4, -0.3, 0.2], requires_grad=True)
    lambda_rank(scores, lists).backward()
    step = 1e-2
    for place in range(4):
        moved = [scores.detach().numpy().copy() for _ in range(2)]
        moved[0][place] -= step
        moved[1][place] += step
        low, high = (slow_lambda_rank(each, labels, [4]) for each in moved)
        assert float(scores.grad[place]) == pytest.approx((high - low) / (2 * step), rel=1e-2)


def test_programs_in_the_right_order_lose_less_than_in_the_wrong_one() -> None:
    labels = np.array([1.0, 0.6, 0.1, 0.0])
    lists = RankedLists.of(labels, np.array([4]))
    right, wrong = torch.tensor([3.0, 2.0, 1.0, 0.0]), torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert lambda_rank(right, lists) < lambda_rank(wrong, lists)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_lists_of_equal_labels_lose_nothing_and_have_a_gradient(label: float) -> None:
    scores = torch.tensor([0.5, 0.5, 1.0], requires_grad=True)
    loss = lambda_rank(scores, RankedLists.of(np.full(3, label), np.array([2, 1])))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert scores.grad.tolist() == [0.0, 0.0, 0.0]


def test_scores_far_apart_give_finite_losses_and_gradients() -> None:
    scores = torch.tensor([-1e4, 1e4], requires_grad=True)
    loss = lambda_rank(scores, RankedLists.of(np.array([1.0, 0.0]), np.array([2])))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(scores.grad).all()
    assert scores.grad[0] < 0 < scores.grad[1]


def test_the_squared_error_is_of_labels() -> None:
    assert float(mean_squared_error(torch.tensor([1.0, 0.0]), np.array([0.5, 0.5]))) == pytest.approx(0.25)


def test_labels_below_0_count_as_those_above_that_are_as_far_apart() -> None:
    """As those of a residual are, whose local model learns what another one gets wrong."""
    scores = torch.tensor([0.1, 0.4, -0.3, 0.2])
    below, above = (RankedLists.of(np.array([-2.0, -1.5, -1.75, -1.0]) + up, np.array([4])) for up in (0, 2))
    assert float(lambda_rank(scores, below)) == pytest.approx(float(lambda_rank(scores, above)))
    assert float(lambda_rank(scores, above)) > 0
