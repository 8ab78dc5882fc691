"""A comparison is only fair if the peers compute what the references compute."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import peers, references
from benchmarks.references import Array


def random(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32)


def channels_last(result: object) -> Array:
    return np.asarray(result).transpose(0, 2, 3, 1)


def test_numpy_gemm_multiplies() -> None:
    a, b = random(3, 4), random(4, 5)
    for call in peers.numpy_gemm(a, b).values():
        np.testing.assert_allclose(np.asarray(call()), a @ b, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_parallel_copy_copies_everything(threads: int) -> None:
    source = random(1001)
    for call in peers.parallel_copy(source, threads).values():
        np.testing.assert_array_equal(np.asarray(call()), source)


def test_torch_depthwise_matches_the_reference() -> None:
    x, w = random(1, 6, 7, 16), random(3, 3, 16)
    calls = peers.torch_depthwise(x, w)
    assert len(calls) == 3
    for call in calls.values():
        np.testing.assert_allclose(channels_last(call()), references.depthwise(x, w), atol=1e-5)


def test_torch_softmax_matches_the_reference() -> None:
    x = random(4, 33)
    for call in peers.torch_softmax(x).values():
        np.testing.assert_allclose(np.asarray(call()), references.softmax(x), rtol=1e-5)


def test_torch_layer_norm_matches_the_reference() -> None:
    x, gamma, beta = random(4, 33), random(33), random(33)
    for call in peers.torch_layer_norm(x, gamma, beta).values():
        np.testing.assert_allclose(np.asarray(call()), references.layer_norm(x, gamma, beta), atol=1e-5)


def test_conv2d_reference_matches_the_definition() -> None:
    x, w, bias = random(1, 4, 5, 2), random(3, 3, 2, 3), random(3)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = np.array(
        [[np.einsum("rsc,rsco->o", padded[0, i : i + 3, j : j + 3], w) + bias for j in range(5)] for i in range(4)]
    )
    np.testing.assert_allclose(references.conv2d_bias_relu(x, w, bias)[0], np.maximum(expected, 0), atol=1e-5)
