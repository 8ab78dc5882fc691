"""Convolutions: both layouts against PyTorch, and the attributes that only ONNX has against ONNX's evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.operators.nodes import check, conv_weights, reference, run, run_channels_last, uniform
from tilewright.operators import NotCompilableError

TORCH_CASES: list[tuple[int, int, int, int, dict[str, Any]]] = [
    # dimensions, channels in, channels out, size of the kernel, what PyTorch is given
    (1, 3, 8, 3, {"stride": 2, "padding": 1}),
    (1, 6, 4, 4, {"dilation": 2, "groups": 2}),
    (2, 3, 8, 3, {"padding": 1}),
    (2, 16, 16, 1, {}),
    (2, 4, 4, 3, {"groups": 4, "padding": 1, "stride": 2}),
    (2, 4, 12, 3, {"groups": 4, "padding": 2}),
    (2, 8, 12, 3, {"groups": 4, "dilation": 2, "padding": 3}),
    (2, 1, 5, 3, {"padding": 1}),
    (2, 5, 5, 1, {"groups": 5}),
    (3, 2, 6, 2, {"stride": (1, 2, 3), "padding": (0, 1, 1)}),
    (3, 4, 4, 3, {"groups": 2, "padding": 1}),
]


def _spread(value: int | tuple[int, ...], num: int) -> list[int]:
    return [value] * num if isinstance(value, int) else list(value)


def _attributes(num: int, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "strides": _spread(options.get("stride", 1), num),
        "dilations": _spread(options.get("dilation", 1), num),
        "pads": _spread(options.get("padding", 0), num) * 2,
        "group": options.get("groups", 1),
    }


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("num", "ci", "co", "kernel", "options"), TORCH_CASES)
def test_convolutions_in_both_layouts_agree_with_torch(
    num: int, ci: int, co: int, kernel: int, options: dict[str, Any], has_bias: bool
) -> None:
    import torch

    rng = np.random.default_rng(0)
    sizes = (7, 9, 8)[:num]
    x = uniform(rng, 2, ci, *sizes)
    w = uniform(rng, co, ci // options.get("groups", 1), *[kernel] * num)
    inputs = [x, w, uniform(rng, co)] if has_bias else [x, w]
    function = getattr(torch.nn.functional, f"conv{num}d")
    expected = function(*(torch.from_numpy(array) for array in inputs), **options).numpy()
    attributes = _attributes(num, options)
    check(run("Conv", inputs, **attributes), expected)
    check(run_channels_last("Conv", inputs, conv_weights(w.ndim), **attributes), expected)


@pytest.mark.parametrize(
    "attributes",
    [
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
        {"auto_pad": "SAME_LOWER", "strides": [3, 2]},
        {"auto_pad": "SAME_UPPER", "dilations": [2, 1]},
        {"auto_pad": "VALID", "strides": [2, 2]},
        {"pads": [2, 0, 0, 1]},
        {"pads": [0, 3, 1, 0], "strides": [1, 2], "kernel_shape": [3, 2]},
    ],
)
def test_padding_that_differs_between_sides_agrees_with_onnx(attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 1, 3, 8, 9), uniform(rng, 4, 3, 3, 2), uniform(rng, 4)]
    (expected,) = reference("Conv", inputs, **attributes)
    check(run("Conv", inputs, **attributes), expected)
    check(run_channels_last("Conv", inputs, conv_weights(4), **attributes), expected)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float16", 2e-3)])
def test_other_float_types_keep_their_precision(dtype: str, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 1, 64, 6, 6, dtype=dtype), uniform(rng, 4, 64, 3, 3, dtype=dtype)]
    (exact,) = reference("Conv", [array.astype("float64") for array in inputs])
    check(run("Conv", inputs), exact.astype(dtype), rtol=tolerance, atol=tolerance)


def test_a_kernel_larger_than_its_input_is_not_compiled() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(NotCompilableError, match="the kernel of Conv does not fit into its padded input"):
        run("Conv", [uniform(rng, 1, 1, 2, 2), uniform(rng, 1, 1, 3, 3)])


def test_weights_of_other_channels_are_not_compiled() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(NotCompilableError, match="weights for another number of channels"):
        run("Conv", [uniform(rng, 1, 3, 4, 4), uniform(rng, 2, 2, 3, 3)])
