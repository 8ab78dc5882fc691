"""Transposed convolutions: both layouts against PyTorch, and the output shapes that ONNX lets a model ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.operators.nodes import check, reference, run, run_channels_last, transposed_weights, uniform
from tilewright import te
from tilewright.operators import OWN, Call, Node, express

TORCH_CASES: list[tuple[tuple[int, ...], int, int, int, dict[str, Any]]] = [
    # sizes, channels in, channels out, size of the kernel, what PyTorch is given
    ((5,), 3, 4, 3, {"stride": 2, "padding": 1, "output_padding": 1}),
    ((5,), 4, 4, 3, {"dilation": 2, "groups": 2}),
    ((4, 4), 3, 5, 4, {"stride": 2, "padding": 1}),
    ((4, 5), 3, 4, 3, {"stride": 2, "padding": 1, "output_padding": 1}),
    ((4, 5), 3, 4, 2, {"stride": 3}),
    ((4, 5), 3, 4, 5, {"stride": 3, "padding": 1}),
    ((4, 5), 3, 4, 3, {"stride": 3, "padding": 2, "output_padding": 2}),
    ((4, 5), 3, 4, 3, {"stride": (1, 2), "padding": (0, 1)}),
    ((4, 5), 3, 4, 3, {"stride": 2, "dilation": 2}),
    ((4, 5), 3, 4, 3, {"stride": (2, 3), "dilation": (3, 1), "padding": 2}),
    ((4, 5), 4, 4, 3, {"groups": 4, "stride": 2}),
    ((4, 5), 4, 8, 3, {"groups": 4, "padding": 1}),
    ((4, 5), 4, 6, 3, {"groups": 2, "stride": 2}),
    ((1, 1), 6, 5, 4, {}),
    ((1, 1), 6, 5, 4, {"stride": 2, "padding": 1}),
    ((1, 3), 6, 5, 4, {"stride": 2, "padding": 1}),
    ((6, 7), 2, 3, 3, {"padding": 3}),  # more padding than the kernel reaches
    ((3, 2, 4), 2, 3, 3, {"stride": (2, 1, 3), "padding": 1}),
]


def _spread(value: int | tuple[int, ...], num: int) -> list[int]:
    return [value] * num if isinstance(value, int) else list(value)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("sizes", "ci", "co", "kernel", "options"), TORCH_CASES)
def test_transposed_convolutions_in_both_layouts_agree_with_torch(
    sizes: tuple[int, ...], ci: int, co: int, kernel: int, options: dict[str, Any], has_bias: bool
) -> None:
    import torch

    rng = np.random.default_rng(0)
    num, groups = len(sizes), options.get("groups", 1)
    inputs = [uniform(rng, 2, ci, *sizes), uniform(rng, ci, co // groups, *[kernel] * num)]
    inputs += [uniform(rng, co)] if has_bias else []
    function = getattr(torch.nn.functional, f"conv_transpose{num}d")
    expected = function(*(torch.from_numpy(array) for array in inputs), **options).numpy()
    attributes = {
        "strides": _spread(options.get("stride", 1), num),
        "dilations": _spread(options.get("dilation", 1), num),
        "pads": _spread(options.get("padding", 0), num) * 2,
        "output_padding": _spread(options.get("output_padding", 0), num),
        "group": groups,
    }
    check(run("ConvTranspose", inputs, **attributes), expected)
    check(run_channels_last("ConvTranspose", inputs, transposed_weights(num + 2), **attributes), expected)


@pytest.mark.parametrize(
    "attributes",
    [
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2], "output_shape": [9, 8]},
        {"auto_pad": "SAME_LOWER", "strides": [3, 2], "output_shape": [10, 11]},
        {"pads": [1, 0, 0, 2], "strides": [2, 2]},
    ],
)
def test_output_shapes_that_are_asked_for_agree_with_onnx(attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 1, 2, 4, 5), uniform(rng, 2, 3, 3, 3), uniform(rng, 3)]
    (expected,) = reference("ConvTranspose", inputs, **attributes)
    check(run("ConvTranspose", inputs, **attributes), expected)
    check(run_channels_last("ConvTranspose", inputs, transposed_weights(4), **attributes), expected)


def test_an_output_shape_alone_takes_more_padding_from_the_front() -> None:
    """The evaluator ignores `output_shape` here: the rule is that of the operator's text."""
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, 1, 2, 4, 4), uniform(rng, 2, 3, 3, 3)]
    (full,) = run("ConvTranspose", inputs, strides=[2, 2])
    check(run("ConvTranspose", inputs, strides=[2, 2], output_shape=[6, 8]), full[:, :, 2:8, 1:9])


def test_phases_multiply_by_no_zeros() -> None:
    """A kernel of 4 at stride 2 has 2 taps in each phase, and no condition on them."""
    X, W = te.placeholder((1, 8, 8, 16), name="X"), te.placeholder((4, 4, 16, 8), name="W", constant=True)
    node = Node("ConvTranspose", ("X", "W"), ("Y",), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, domain=OWN)
    (Y,) = express(Call(node, [X, W], [None, None]))
    (conv,) = [T for T in te.topological_order([Y]) if isinstance(T.body, te.Reduce)]
    assert isinstance(conv.body, te.Reduce)
    assert conv.shape == (1, 2, 2, 8, 8, 8)
    assert [axis.extent for axis in conv.body.axes] == [2, 2, 16]
    assert "select" not in str(conv)
