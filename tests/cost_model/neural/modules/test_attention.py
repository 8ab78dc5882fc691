"""Attention written by hand is what its formula says."""

from __future__ import annotations

import numpy as np
import torch

from tilewright.cost_model.neural.modules.attention import Attention, Norm


def test_attention_is_a_mixture_of_what_is_seen() -> None:
    torch.manual_seed(0)
    layer, rows = Attention(8, 2), torch.randn(1, 4, 8)
    is_seen = torch.tensor([[[1.0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 0, 1]]])
    with torch.no_grad():
        found = layer(rows, is_seen)[0]
        query, key, value = (own(rows[0]) for own in (layer.query, layer.key, layer.value))
        for row in range(4):
            seen = [other for other in range(4) if is_seen[0, row, other]]
            mixed = []
            for head in (slice(0, 4), slice(4, 8)):
                logits = torch.stack([query[row, head] @ key[other, head] / 2 for other in seen])
                shares = torch.softmax(logits, 0)
                mixed.append(sum(share * value[other, head] for share, other in zip(shares, seen, strict=True)))
            np.testing.assert_allclose(found[row], layer.output(torch.cat(mixed)), atol=1e-5)


def test_a_norm_is_that_of_torch() -> None:
    rows = torch.randn(2, 3, 8)
    with torch.no_grad():
        np.testing.assert_allclose(Norm(8)(rows), torch.nn.LayerNorm(8)(rows), atol=1e-5)
