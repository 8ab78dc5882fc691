"""Normalisations against NumPy and ONNX's evaluator, those of images in both layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.operators.nodes import check, reference, run, run_channels_last, uniform
from tilewright.operators import NotCompilableError


def normal(x: NDArray[Any], axes: tuple[int, ...], epsilon: float = 1e-5) -> NDArray[Any]:
    """x with a mean of 0 and a variance of 1 over the axes."""
    wide = x.astype("float64")
    mean, variance = wide.mean(axis=axes, keepdims=True), wide.var(axis=axes, keepdims=True)
    return np.asarray((wide - mean) / np.sqrt(variance + epsilon))


def of_channels(values: NDArray[Any], ndim: int) -> NDArray[Any]:
    return values.reshape(-1, *[1] * (ndim - 2))


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -2])
def test_layer_norm_and_its_moments_agree_with_onnx(axis: int, has_bias: bool) -> None:
    rng = np.random.default_rng(0)
    x = uniform(rng, 2, 3, 5)
    inputs = [x, *(uniform(rng, *x.shape[axis:]) for _ in range(2 if has_bias else 1))]
    expected = reference("LayerNormalization", inputs, 3, axis=axis, epsilon=0.01)
    check(run("LayerNormalization", inputs, 3, axis=axis, epsilon=0.01), *expected)


def test_layer_norm_of_half_floats_is_computed_in_float32() -> None:
    rng = np.random.default_rng(0)
    x = (uniform(rng, 2, 1000) + 30).astype("float16")
    scale = np.ones(1000, "float16")
    y, mean, deviation = run("LayerNormalization", [x, scale], 3)
    check([y], normal(x, (1,)).astype("float16"), atol=2e-3)
    wide = x.astype("float64")
    exact = 1 / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    check([mean, deviation], wide.mean(axis=1, keepdims=True).astype("float32"), exact.astype("float32"))


def test_a_large_mean_does_not_cancel_the_variance() -> None:
    rng = np.random.default_rng(0)
    x = uniform(rng, 4, 64) + np.float32(1000)
    check(run("LayerNormalization", [x, np.ones(64, "float32")]), normal(x, (1,)).astype("float32"), atol=1e-3)


@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_norm_agrees_with_onnx(axis: int) -> None:
    rng = np.random.default_rng(0)
    x = uniform(rng, 2, 3, 5)
    inputs = [x, uniform(rng, *x.shape[axis:])]
    expected = reference("RMSNormalization", inputs, opset=23, axis=axis)
    check(run("RMSNormalization", inputs, opset=23, axis=axis), *expected)


@pytest.mark.parametrize("axes", [None, (0, 1, 2, 3), (2,)])
def test_mean_variance_norm_over_its_axes(axes: tuple[int, ...] | None) -> None:
    x = uniform(np.random.default_rng(0), 3, 2, 4, 5)
    attributes: dict[str, Any] = {} if axes is None else {"axes": axes}
    expected = normal(x, axes or (0, 2, 3), epsilon=0.0)
    check(run("MeanVarianceNormalization", [x], **attributes), expected.astype("float32"))


@pytest.mark.parametrize("sizes", [(), (5,), (3, 4), (2, 3, 2)])
def test_batch_norm_in_both_layouts_agrees_with_onnx(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 2, 3, *sizes), *(uniform(rng, 3) for _ in range(3)), uniform(rng, 3) ** 2]
    expected = reference("BatchNormalization", inputs, epsilon=0.01)
    check(run("BatchNormalization", inputs, epsilon=0.01), *expected)
    check(run_channels_last("BatchNormalization", inputs, epsilon=0.01), *expected)


def test_batch_norm_in_training_updates_the_running_moments() -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 2, 3, 4, 5), *(uniform(rng, 3) for _ in range(3)), uniform(rng, 3) ** 2]
    attributes: dict[str, Any] = {"training_mode": 1, "momentum": 0.7}
    expected = reference("BatchNormalization", inputs, 3, **attributes)
    check(run("BatchNormalization", inputs, 3, **attributes), *expected)
    check(run_channels_last("BatchNormalization", inputs, num_outputs=3, **attributes), *expected)


def test_batch_norm_in_training_before_opset_14_is_not_compiled() -> None:
    x, c = np.zeros((1, 2, 3), "float32"), np.zeros(2, "float32")
    with pytest.raises(NotCompilableError, match="training mode of opsets before 14"):
        run("BatchNormalization", [x, c, c, c, c], 5, opset=11)


@pytest.mark.parametrize("sizes", [(5,), (3, 4)])
def test_instance_norm_takes_each_channel_of_each_image(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 2, 3, *sizes), uniform(rng, 3), uniform(rng, 3)]
    expected = reference("InstanceNormalization", inputs, epsilon=0.01)
    check(run("InstanceNormalization", inputs, epsilon=0.01), *expected)
    check(run_channels_last("InstanceNormalization", inputs, epsilon=0.01), *expected)


@pytest.mark.parametrize(("opset", "num_scales"), [(21, 6), (18, 3)])
def test_group_norm_has_scales_of_channels_and_before_opset_21_of_groups(opset: int, num_scales: int) -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 2, 6, 4, 5), uniform(rng, num_scales), uniform(rng, num_scales)]
    groups = normal(inputs[0].reshape(2, 3, 2, 4, 5), (2, 3, 4)).reshape(2, 6, 4, 5)
    scale, bias = (of_channels(np.repeat(values, 6 // num_scales), 4) for values in inputs[1:])
    expected = (groups * scale + bias).astype("float32")
    check(run("GroupNormalization", inputs, opset=opset, num_groups=3), expected)
    check(run_channels_last("GroupNormalization", inputs, opset=opset, num_groups=3), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_local_response_agrees_with_torch(size: int) -> None:
    """PyTorch has the longer half of an even window before, ONNX after: the channels are turned round."""
    import torch

    x = uniform(np.random.default_rng(0), 2, 6, 3, 4)
    flipped = torch.from_numpy(x[:, ::-1].copy())
    expected = torch.nn.functional.local_response_norm(flipped, size, alpha=0.3, beta=0.6, k=1.5).numpy()[:, ::-1]
    attributes: dict[str, Any] = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    check(run("LRN", [x], **attributes), expected)
    check(run_channels_last("LRN", [x], **attributes), expected)
