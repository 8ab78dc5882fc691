"""Layers by bands of rows compute what they compute one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.layers import Chain, Layer, by_bands, one_after_the_other, task_of, weight_shapes
from benchmarks.references import Array
from tilewright.runtime import Kernel
from tilewright.runtime.build import build

CHAINS = {
    "1x1, depthwise, 1x1": Chain("", (6, 6, 2), (Layer(8, 1), Layer(8, 3, depthwise=True), Layer(3, 1)), (1, 2, 3, 6)),
    "depthwise of stride 2": Chain("", (8, 8, 2), (Layer(4, 1), Layer(4, 3, 2, depthwise=True), Layer(3, 1)), (1, 4)),
    "an odd height of stride 2": Chain("", (7, 7, 2), (Layer(4, 3, 2), Layer(3, 3)), (1, 2, 4)),
    "windows on windows": Chain("", (6, 6, 2), (Layer(4, 3), Layer(3, 5), Layer(2, 3)), (1, 2, 3)),
    "one layer": Chain("", (4, 4, 2), (Layer(3, 3),), (2,)),
}


def _compiled(layer: Layer, shape: tuple[int, int, int], weights: Array, pad_rows: bool) -> Kernel:
    return build(task_of(layer, shape, pad_rows), threads=1).bind(W=weights)


def _convolved(layer: Layer, image: Array, weights: Array) -> Array:
    padding = layer.padding
    padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (layer.kernel, layer.kernel), axis=(0, 1))
    taken = windows[:: layer.stride, :: layer.stride].astype(np.float64)
    how = "yxcrs,rsc->yxc" if layer.depthwise else "yxcrs,rscf->yxf"
    convolved: Array = np.maximum(np.einsum(how, taken, weights), 0.0)
    return convolved


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
def test_both_ways_compute_what_numpy_computes(chain: Chain) -> None:
    rng = np.random.default_rng(0)
    source = rng.standard_normal(chain.shape, np.float32)
    weights = [rng.standard_normal(shape, np.float32) for shape in weight_shapes(chain)]
    expected = source
    for layer, weight in zip(chain.layers, weights, strict=True):
        expected = _convolved(layer, expected, weight)
    ways = [one_after_the_other(chain, source, weights, _compiled)]
    ways += [by_bands(chain, height, source, weights, _compiled) for height in chain.heights]
    for way in ways:
        np.testing.assert_allclose(way()[0], expected, rtol=1e-4, atol=1e-3)
