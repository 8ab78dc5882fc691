"""What training minimises: squared errors, or LambdaRank over pairs of programs in a list.

What of a loss does not depend on scores, such as which program of a pair is the better one, is made once a batch with
NumPy. Only `mean_squared_error` and `lambda_rank` compute with torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RANK = "rank"
"""LambdaRank; a list is the programs of one subject."""
RANK_MIXED = "rank-mixed"
"""LambdaRank as TLP and TenSet train: a whole batch of shuffled programs is one list."""
MSE = "mse"
LOSSES = (RANK, RANK_MIXED, MSE)

# torch has no types here.
Tensor = Any


@dataclass(frozen=True, slots=True, eq=False)
class RankedLists:
    """Programs in lists, one list after the other, and their pairs of different labels."""

    starts: NDArray[np.int64]
    """Where the list of each program begins."""
    num_lists: int
    better: NDArray[np.int64]
    worse: NDArray[np.int64]
    gaps: NDArray[np.float32]
    """What the gains of a pair differ by; those of a list are relative to the best ranking of it."""

    @staticmethod
    def of(labels: NDArray[np.float64], sizes: NDArray[np.int64]) -> RankedLists:
        """Of programs whose lists have the given sizes."""
        ends = np.cumsum(sizes)
        found = [_pairs(labels, end - size, end) for size, end in zip(sizes, ends, strict=True)]
        better, worse, gaps = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return RankedLists(np.repeat(ends - sizes, sizes), len(sizes), better, worse, gaps)

    def discounts(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """1 / log2(1 + rank) of each program in its list by score, the highest having rank 1."""
        order = np.lexsort((-scores, self.starts))
        rank = np.empty(len(scores), np.int64)
        rank[order] = np.arange(len(scores)) - self.starts[order]
        discounts: NDArray[np.float32] = (1 / np.log2(2.0 + rank)).astype(np.float32)
        return discounts


def _pairs(
    labels: NDArray[np.float64], start: int, end: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    own = labels[start:end]
    gains = np.exp2(own - min(own.min(), 0.0)) - 1  # what a residual learns is below 0, too
    best = (np.sort(gains)[::-1] / np.log2(2.0 + np.arange(len(own)))).sum()
    better, worse = np.nonzero(own[:, np.newaxis] > own)
    gaps = (gains[better] - gains[worse]) / max(best, np.finfo(np.float64).tiny)
    return better + start, worse + start, gaps.astype(np.float32)


def lambda_rank(scores: Tensor, lists: RankedLists) -> Tensor:
    """The mean over lists of the sum over pairs of -log2 sigmoid(s_better - s_worse), weighted by what a swap costs.

    That is |1/D_i - 1/D_j| |G_i - G_j| with the gain G = (2^label - 1) / (the best ranking's) and the discount
    D = log2(1 + rank by score): the NDCG that swapping the two would change. Lists without a pair are 0. The code of
    TLP and TenSet cuts each logarithm off where the sigmoid is below 1e-10; here it goes on, and so does its gradient.
    """
    import torch

    discounts = lists.discounts(scores.detach().numpy())
    weights = lists.gaps * np.abs(discounts[lists.better] - discounts[lists.worse])
    better, worse = scores[torch.from_numpy(lists.better)], scores[torch.from_numpy(lists.worse)]
    bits = torch.nn.functional.softplus(worse - better) / np.log(2)
    return (torch.from_numpy(weights) * bits).sum() / lists.num_lists


def mean_squared_error(scores: Tensor, labels: NDArray[np.float64]) -> Tensor:
    """The mean of (score - label)^2."""
    import torch

    return torch.mean((scores - torch.from_numpy(labels.astype(np.float32))) ** 2)
