"""Convolutions, pools and changes of size, of one to three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.testing.random_graphs.draft import Draft, Step, need


def _image(draft: Draft, x: str) -> str:
    """The value if it is an image, or a new one."""
    if (
        (draft.dtype(x) == "float32" or (draft.is_float(x) and draft.chance(0.2)))
        and 3 <= draft.values[x].ndim <= 5
        and 0 not in draft.shape(x)
    ):
        return x
    rank = draft.choice([1, 2, 2, 2, 3])
    most = {1: 33, 2: 12, 3: 5}[rank]
    return draft.input((draft.integer(1, 2), draft.extent(9), *(draft.extent(most) for _ in range(rank))))


def _window(draft: Draft, sizes: tuple[int, ...], *, dilates: bool = True) -> tuple[list[int], dict[str, Any]]:
    """A kernel that fits into the image, with padding smaller than itself."""
    kernel = [min(draft.integer(1, 4), size) for size in sizes]
    attributes: dict[str, Any] = {"strides": [draft.integer(1, 3) for _ in sizes]}
    padding = draft.integer(0, 3)
    if padding == 0:
        attributes["strides"] = [1 if k == 1 else min(s, k) for s, k in zip(attributes["strides"], kernel, strict=True)]
        attributes["auto_pad"] = draft.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif padding < 3:
        attributes["pads"] = [draft.integer(0, k - 1) for k in (*kernel, *kernel)]
    if dilates and padding and draft.chance(0.3):
        attributes["dilations"] = [2 if 2 * k - 1 <= size else 1 for k, size in zip(kernel, sizes, strict=True)]
    return kernel, attributes


def conv(draft: Draft, x: str) -> None:
    x = _image(draft, x)
    _, channels, *sizes = draft.shape(x)
    group = draft.choice([g for g in (1, 1, 2, 3, channels) if channels % g == 0])
    outputs = group * draft.integer(1, 4)
    kernel, attributes = _window(draft, tuple(sizes))
    dtype = draft.dtype(x)
    operands = [x, draft.operand((outputs, channels // group, *kernel), dtype)]
    if draft.chance():
        operands.append(draft.operand((outputs,), dtype))
    made = draft.result("Conv", operands, group=group, **attributes)
    if draft.chance(0.3):
        draft.node("Relu", [made])


def conv_transpose(draft: Draft, x: str) -> None:
    x = _image(draft, x)
    _, channels, *sizes = draft.shape(x)
    group = draft.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    kernel = [draft.integer(1, 4) for _ in sizes]
    strides = [draft.integer(1, 3) for _ in sizes]
    attributes: dict[str, Any] = {"strides": strides}
    if draft.chance():
        pads = [draft.integer(0, min(1, k - 1)) for k in kernel]
        need(all((n - 1) * s + k - 2 * p >= 1 for n, s, k, p in zip(sizes, strides, kernel, pads, strict=True)))
        attributes["pads"] = [*pads, *pads]
    if draft.chance(0.3):
        attributes["output_padding"] = [draft.integer(0, s - 1) for s in strides]
    dtype = draft.dtype(x)
    operands = [x, draft.operand((channels, draft.integer(1, 3), *kernel), dtype)]
    draft.node("ConvTranspose", operands, group=group, **attributes)


def pool(draft: Draft, x: str) -> None:
    x = _image(draft, x)
    op = draft.choice(["MaxPool", "AveragePool", "LpPool"])
    newest = draft.schema(op).attributes
    kernel, attributes = _window(draft, draft.shape(x)[2:], dilates="dilations" in newest)
    if "ceil_mode" in newest and "auto_pad" not in attributes and draft.chance(0.3):
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and draft.chance():
        attributes["count_include_pad"] = 1
    # The evaluator of onnx counts the places of what it has padded by itself.
    has_places = op == "MaxPool" and "auto_pad" not in attributes and draft.chance(0.15)
    draft.node(op, [x], 1 + has_places, kernel_shape=kernel, **attributes)


def global_pool(draft: Draft, x: str) -> None:
    draft.node(draft.choice(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]), [_image(draft, x)])


def resize(draft: Draft, x: str) -> None:
    x = _image(draft, x)
    need(draft.values[x].ndim == 4 and draft.dtype(x) == "float32")
    height, width = draft.shape(x)[2:]
    mode = draft.choice(["nearest", "linear", "cubic"])
    coordinates = draft.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = draft.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    roi = draft.constant(np.zeros(0, np.float32)) if draft.opset < 13 else ""
    if draft.chance():
        scales = np.array([1, 1, draft.choice([1, 2, 3, 0.5]), draft.choice([1, 2, 1.5])], np.float32)
        found = np.array([height, width]) * scales[2:]
        # Of half an element at the end, onnxruntime aligns the corners without and ONNX with it.
        need(min(found) >= 1 and (coordinates != "align_corners" or (found % 1 == 0).all()))
        draft.node("Resize", [x, roi, draft.constant(scales)], **attributes)
        return
    sizes = draft.integers(*draft.shape(x)[:2], draft.extent(17), draft.extent(17))
    empty = draft.constant(np.zeros(0, np.float32)) if draft.opset < 13 else ""
    draft.node("Resize", [x, roi, empty, sizes], **attributes)


def grid_sample(draft: Draft, x: str) -> None:
    x = _image(draft, x)
    need(draft.values[x].ndim == 4 and draft.dtype(x) == "float32")
    grid = draft.rng.uniform(-1.2, 1.2, (draft.shape(x)[0], 2, 3, 2)).astype(np.float32)
    mode = draft.choice(["linear", "nearest", "cubic"] if draft.opset >= 20 else ["bilinear", "nearest", "bicubic"])
    padding = draft.choice(["zeros", "border", "reflection"])
    need(padding != "border" or "cubic" not in mode)  # there onnxruntime moves the sample into the image, ONNX its taps
    draft.node("GridSample", [x, draft.given(grid)], mode=mode, padding_mode=padding, align_corners=draft.integer(0, 1))


STEPS: tuple[Step, ...] = (*[conv] * 5, *[conv_transpose] * 2, *[pool] * 3, global_pool, resize, grid_sample)
