"""Pools in both layouts: against PyTorch, and what only ONNX has against ONNX's evaluator or NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.operators.nodes import check, reference, run, run_channels_last, uniform
from tilewright.operators import MisfitError, NotCompilableError

MAX_CASES: list[tuple[int, dict[str, Any]]] = [
    (1, {"kernel_size": 3, "stride": 2, "padding": 1}),
    (2, {"kernel_size": 3, "stride": 2, "padding": 1}),
    (2, {"kernel_size": 2, "stride": 2, "ceil_mode": True}),
    (2, {"kernel_size": 3, "stride": 1, "dilation": 2}),
    (2, {"kernel_size": 3, "stride": 2, "dilation": 2, "padding": 1, "ceil_mode": True}),
    (3, {"kernel_size": 2, "stride": 2, "padding": 1}),
]
AVERAGE_CASES: list[tuple[int, dict[str, Any]]] = [
    (1, {"kernel_size": 3, "stride": 1, "padding": 1}),
    (2, {"kernel_size": 3, "stride": 2, "padding": 1}),
    (2, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    (2, {"kernel_size": 2, "stride": 2}),
    (3, {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}),
]


def both(op: str, x: NDArray[Any], num_outputs: int = 1, **attributes: Any) -> list[list[NDArray[Any]]]:
    """The outputs in each layout."""
    return [
        run(op, [x], num_outputs, **attributes),
        run_channels_last(op, [x], num_outputs=num_outputs, **attributes),
    ]


def _attributes(num: int, options: dict[str, Any]) -> dict[str, Any]:
    attributes = {
        "kernel_shape": [options["kernel_size"]] * num,
        "strides": [options["stride"]] * num,
        "pads": [options.get("padding", 0)] * (2 * num),
        "ceil_mode": int(options.get("ceil_mode", False)),
    }
    return attributes | ({"dilations": [options["dilation"]] * num} if "dilation" in options else {})


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize(("num", "options"), MAX_CASES)
def test_max_pools_and_their_indices_agree_with_torch(num: int, options: dict[str, Any], storage_order: int) -> None:
    import torch

    sizes = (7, 9, 6)[:num]
    x = uniform(np.random.default_rng(0), 2, 3, *sizes)
    function = getattr(torch.nn.functional, f"max_pool{num}d")
    largest, flat = (t.numpy() for t in function(torch.from_numpy(x), return_indices=True, **options))
    places = np.unravel_index(flat, sizes)
    within = np.ravel_multi_index(places, sizes, order="F" if storage_order else "C")
    image = np.arange(6).reshape(2, 3, *[1] * num) * np.prod(sizes)
    for found in both("MaxPool", x, 2, storage_order=storage_order, **_attributes(num, options)):
        check(found, largest, image + within)


@pytest.mark.parametrize("is_padding_counted", [True, False])
@pytest.mark.parametrize(("num", "options"), AVERAGE_CASES)
def test_average_pools_agree_with_torch(num: int, options: dict[str, Any], is_padding_counted: bool) -> None:
    import torch

    x = uniform(np.random.default_rng(0), 2, 3, *(7, 9, 6)[:num])
    function = getattr(torch.nn.functional, f"avg_pool{num}d")
    expected = function(torch.from_numpy(x), count_include_pad=is_padding_counted, **options).numpy()
    for found in both("AveragePool", x, count_include_pad=int(is_padding_counted), **_attributes(num, options)):
        check(found, expected)


@pytest.mark.parametrize("is_padding_counted", [0, 1])
@pytest.mark.parametrize(
    "attributes",
    [
        {"dilations": [2, 3], "pads": [1, 2, 0, 3]},
        {"dilations": [2, 2], "pads": [2, 2, 2, 2], "strides": [2, 3], "ceil_mode": 1},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [3, 2]},
    ],
)
def test_average_pools_with_dilations_or_uneven_padding_agree_with_onnx(
    attributes: dict[str, Any], is_padding_counted: int
) -> None:
    x = uniform(np.random.default_rng(0), 1, 2, 9, 8)
    attributes = {"kernel_shape": [3, 2], "count_include_pad": is_padding_counted, **attributes}
    (expected,) = reference("AveragePool", [x], **attributes)
    for found in both("AveragePool", x, **attributes):
        check(found, expected)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pools_are_the_norms_of_their_windows(p: int) -> None:
    x = uniform(np.random.default_rng(0), 1, 2, 6, 6)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    expected = (np.abs(windows) ** p).sum(axis=(4, 5)) ** (1 / p)
    for found in both("LpPool", x, p=p, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]):
        check(found, expected.astype("float32"))


@pytest.mark.parametrize("sizes", [(5,), (4, 3), (13, 11), (2, 3, 4)])
def test_global_pools_take_the_whole_image(sizes: tuple[int, ...]) -> None:
    x = uniform(np.random.default_rng(0), 2, 3, *sizes)
    axes = tuple(range(2, x.ndim))
    for op, expected in (
        ("GlobalAveragePool", x.mean(axis=axes, keepdims=True)),
        ("GlobalMaxPool", x.max(axis=axes, keepdims=True)),
        ("GlobalLpPool", np.sqrt((x * x).sum(axis=axes, keepdims=True))),
    ):
        for found in both(op, x):
            check(found, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integers_are_pooled_and_padding_is_never_the_place_of_the_largest(dtype: str) -> None:
    """All elements are as low as the type allows: the first one inside is meant, not the padding before it."""
    x = np.full((1, 1, 4, 4), np.iinfo(dtype).min, dtype)
    expected = np.full((1, 1, 2, 2), np.iinfo(dtype).min, dtype)
    places = np.array([[[[0, 1], [4, 5]]]])
    for found in both("MaxPool", x, 2, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]):
        check(found, expected, places)


def test_a_large_window_of_half_floats_does_not_overflow() -> None:
    x = np.full((1, 1, 40, 40), 100, "float16")
    for found in both("GlobalAveragePool", x):
        check(found, np.full((1, 1, 1, 1), 100, "float16"))


def test_a_kernel_of_other_dimensions_is_not_compiled() -> None:
    with pytest.raises(NotCompilableError, match="kernel_shape of 1 for 2 dimensions"):
        run("MaxPool", [np.zeros((1, 1, 4, 4), "float32")], kernel_shape=[2])


def _pooled(x: NDArray[Any], kernel: int, stride: int, dilation: int, pad: int, output: int, mode: str) -> NDArray[Any]:
    """A pool along one axis, window by window. "counted" and "mean" divide by elements with and without padding."""
    found = []
    for n in range(output):
        places = np.arange(kernel) * dilation + n * stride - pad
        inside = x[places[(places >= 0) & (places < len(x))]]
        counted = np.count_nonzero((places >= -pad) & (places < len(x) + pad))
        found.append(inside.max() if mode == "max" else inside.sum() / (counted if mode == "counted" else len(inside)))
    return np.array(found, np.float32)


@pytest.mark.parametrize("mode", ["max", "mean", "counted"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "pad", "ceil_mode", "output"),
    [
        (3, 5, 3, 1, 0, 0, 1),
        (3, 4, 2, 1, 0, 0, 1),
        (3, 4, 2, 1, 0, 1, 1),
        (3, 3, 3, 2, 0, 0, 1),
        (3, 5, 3, 1, 1, 0, 1),
        (2, 5, 2, 1, 1, 0, 1),
        (2, 5, 3, 1, 1, 1, 1),
        (3, 5, 1, 1, 2, 0, 3),
        (5, 3, 2, 2, 1, 1, 2),
        (1, 3, 2, 1, 1, 0, 1),
    ],
)
def test_windows_that_exceed_the_input(
    size: int, kernel: int, stride: int, dilation: int, pad: int, ceil_mode: int, output: int, mode: str
) -> None:
    x = uniform(np.random.default_rng(0), 1, 1, size)
    attributes: dict[str, Any] = {"strides": [stride], "dilations": [dilation], "pads": [pad] * 2}
    attributes |= {"kernel_shape": [kernel], "ceil_mode": ceil_mode}
    attributes |= {} if mode == "max" else {"count_include_pad": int(mode == "counted")}
    expected = _pooled(x[0, 0], kernel, stride, dilation, pad, output, mode)
    for (got,) in both("MaxPool" if mode == "max" else "AveragePool", x, **attributes):
        np.testing.assert_allclose(got.reshape(-1), expected, rtol=1e-6, atol=1e-6)


def test_the_mean_of_a_window_without_elements_is_zero() -> None:
    attributes: dict[str, Any] = {"kernel_shape": [2], "strides": [3], "dilations": [2], "pads": [1, 1], "ceil_mode": 1}
    for (got,) in both("AveragePool", uniform(np.random.default_rng(0), 1, 1, 1), **attributes):
        np.testing.assert_array_equal(got, np.zeros((1, 1, 1), np.float32))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_a_window_that_exceeds_the_input_by_more_than_a_stride_does_not_fit(op: str) -> None:
    with pytest.raises(MisfitError, match="does not fit into its padded input: it spans 5 elements, and there are 3"):
        run(op, [uniform(np.random.default_rng(0), 1, 1, 3)], kernel_shape=[5], strides=[1])
