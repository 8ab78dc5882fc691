"""Losses against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.operators.nodes import check, run, uniform


@pytest.mark.parametrize("ignored", [None, 2, -1])
@pytest.mark.parametrize("has_weights", [True, False])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("sizes", [(), (4,), (2, 3)])
def test_losses_agree_with_torch(
    sizes: tuple[int, ...], reduction: str, has_weights: bool, ignored: int | None
) -> None:
    import torch

    rng = np.random.default_rng(0)
    scores = uniform(rng, 6, 5, *sizes)
    target = rng.integers(0, 5, (6, *sizes))
    if ignored is not None:
        target.flat[::3] = ignored
    weights = np.abs(uniform(rng, 5))
    inputs = [scores, target, weights] if has_weights else [scores, target]
    attributes: dict[str, Any] = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
    logarithms = torch.log_softmax(torch.from_numpy(scores), dim=1)
    options = {
        "weight": torch.from_numpy(weights) if has_weights else None,
        "reduction": reduction,
        "ignore_index": -100 if ignored is None else ignored,
    }
    expected = torch.nn.functional.nll_loss(logarithms, torch.from_numpy(target), **options).numpy()
    check(run("SoftmaxCrossEntropyLoss", inputs, 2, **attributes), expected, logarithms.numpy())
    check(run("NegativeLogLikelihoodLoss", [logarithms.numpy(), *inputs[1:]], **attributes), expected)
