"""Products of matrices, and the quantized ones."""

from __future__ import annotations

import numpy as np

from tilewright.testing.random_graphs.draft import Draft, Step, need

_EQUATIONS = (
    "ij,jk->ik",
    "ij,kj->ik",
    "ij,ij->",
    "ij,j->i",
    "i,j->ij",
    "ii->i",
    "ij->ji",
    "bij,bjk->bik",
    "bij,kj->bki",
)
_ROUNDED = ("uint8", "int8")


def matmul(draft: Draft, x: str) -> None:
    """With a new matrix, a vector, a batch of matrices, or the value itself."""
    shape, dtype = draft.shape(x), draft.dtype(x)
    need(shape)
    if shape[-1:] == shape[-2:-1] and draft.chance(0.3):
        draft.node("MatMul", [x, x])
        return
    kind = draft.integer(0, 4)
    if kind == 0:
        other = draft.operand(shape[-1:], dtype)
    elif kind == 1 and len(shape) > 2:
        batch = [size if draft.chance(0.7) else 1 for size in shape[:-2]]
        other = draft.operand((*batch, shape[-1], draft.extent(9)), dtype)
    else:
        other = draft.operand((shape[-1], draft.extent(70)), dtype)
    draft.node("MatMul", [x, other])


def transposed_matmul(draft: Draft, x: str) -> None:
    """With its own transpose, or one of a constant: scores of attention, and tied weights."""
    rank = draft.values[x].ndim
    need(rank >= 2)
    perm = [*range(rank - 2), rank - 1, rank - 2]
    draft.node("MatMul", [x, draft.result("Transpose", [x], perm=perm)])


def gemm(draft: Draft, x: str) -> None:
    need(draft.values[x].ndim == 2 and (draft.is_float(x) or draft.chance(0.1)))
    first, second = draft.integer(0, 1), draft.integer(0, 1)
    rows, inner = draft.shape(x)[::-1] if first else draft.shape(x)
    columns = draft.extent(70)
    dtype = draft.dtype(x)
    operands = [x, draft.operand((columns, inner) if second else (inner, columns), dtype)]
    if draft.chance(0.2) and (first != second or rows == inner):
        operands[1] = x
        columns = rows
    if draft.chance(0.6):
        operands.append(draft.operand(draft.choice([(columns,), (1,), (rows, 1), (rows, columns), ()]), dtype))
    attributes = {"alpha": draft.choice([1.0, 0.5]), "beta": draft.choice([1.0, 2.0])} if draft.is_float(x) else {}
    draft.node("Gemm", operands, transA=first, transB=second, **attributes)


def einsum(draft: Draft, x: str) -> None:
    equation = draft.choice([e for e in _EQUATIONS if len(e.replace("->", ",").split(",")[0]) == draft.values[x].ndim])
    operands, _ = equation.split("->")
    first, *others = operands.split(",")
    sizes = dict(zip(first, draft.shape(x), strict=True))
    need(len(set(first)) == len(first) or len(set(draft.shape(x))) == 1)
    need(0 not in draft.shape(x))  # onnxruntime divides by them
    found = [x]
    for letters in others:
        for letter in letters:
            sizes.setdefault(letter, draft.extent(7))
        found.append(draft.operand([sizes[letter] for letter in letters], draft.dtype(x)))
    draft.node("Einsum", found, equation=equation)


# --- quantized -------------------------------------------------------------------------------------------------------


def _scale(draft: Draft, *shape: int) -> str:
    return draft.constant(draft.rng.uniform(0.02, 0.2, shape).astype(np.float32))


def _zero_point(draft: Draft, dtype: str, *shape: int) -> str:
    low = 0 if dtype == "uint8" else -3
    return draft.constant(draft.rng.integers(low, 4, shape).astype(dtype))


def quantize(draft: Draft, x: str) -> None:
    need(draft.dtype(x) == "float32")
    dtype = draft.choice(_ROUNDED)
    if draft.opset >= 13 and draft.values[x].ndim >= 2 and draft.chance(0.4):
        axis = draft.axis(x)
        channels = draft.shape(x)[axis]
        operands = [_scale(draft, channels), _zero_point(draft, dtype, channels)]
        quantized = draft.result("QuantizeLinear", [x, *operands], axis=axis)
        if draft.chance(0.6):
            draft.node("DequantizeLinear", [quantized, *operands], axis=axis)
        return
    operands = [_scale(draft), _zero_point(draft, dtype)]
    quantized = draft.result("QuantizeLinear", [x, *operands])
    if draft.chance(0.6):
        draft.node("DequantizeLinear", [quantized, *operands])


def dynamic_quantize(draft: Draft, x: str) -> None:
    need(draft.values[x].any())  # of zeros alone, every scale is as good
    draft.node("DynamicQuantizeLinear", [x], 3)


def quantized_layer(draft: Draft, x: str) -> None:
    """A product of quantized data and weights with a bias of any shape, rounded in the end, as quantizers write it."""
    need(draft.dtype(x) == "float32" and draft.values[x].ndim == 2 and draft.values[x].size and draft.opset >= 13)
    rounding = [_scale(draft), _zero_point(draft, draft.choice(_ROUNDED))]
    data = draft.result("DequantizeLinear", [draft.result("QuantizeLinear", [x, *rounding]), *rounding])
    rows, inner = draft.shape(x)
    columns, second = draft.extent(9), draft.integer(0, 1)
    values = draft.rng.integers(-128, 128, (columns, inner) if second else (inner, columns)).astype(np.int8)
    scales = [_scale(draft, columns) if draft.chance() else _scale(draft)]
    weights = draft.result("DequantizeLinear", [draft.constant(values), *scales], axis=1 - second)
    shapes = draft.choice([[], [()], [(columns,)], [(1, columns)], [(rows, 1)], [(rows, columns)]])
    biases = [draft.weights(*shape) for shape in shapes]
    made = draft.result("Gemm", [data, weights, *biases], transB=second)
    if draft.chance(0.3):
        made = draft.result("Relu", [made])
    if draft.chance(0.7):
        again = [_scale(draft), _zero_point(draft, draft.choice(_ROUNDED))]
        draft.node("DequantizeLinear", [draft.result("QuantizeLinear", [made, *again]), *again])


def dequantize(draft: Draft, x: str) -> None:
    need(draft.dtype(x) in _ROUNDED)
    operands = [x, _scale(draft)]
    draft.node("DequantizeLinear", [*operands, _zero_point(draft, draft.dtype(x))] if draft.chance(0.7) else operands)


def _bytes(draft: Draft, shape: tuple[int, ...], dtype: str) -> str:
    bounds = np.iinfo(dtype)
    value = draft.rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)
    return draft.constant(value) if draft.chance(0.7) else draft.given(value)


def matmul_integer(draft: Draft, x: str) -> None:
    if draft.dtype(x) not in _ROUNDED:
        x = _bytes(draft, (draft.extent(9), draft.extent(70)), draft.choice(_ROUNDED))
    need(draft.values[x].ndim == 2)
    dtype = draft.choice(_ROUNDED)
    w = _bytes(draft, (draft.shape(x)[1], draft.extent(9)), dtype)
    points = [_zero_point(draft, draft.dtype(x)), _zero_point(draft, dtype)] if draft.chance(0.7) else []
    draft.node("MatMulInteger", [x, w, *points])


def qlinear_matmul(draft: Draft, x: str) -> None:
    if draft.dtype(x) not in _ROUNDED:
        x = _bytes(draft, (draft.extent(9), draft.extent(70)), draft.choice(_ROUNDED))
    need(draft.values[x].ndim == 2)
    dtype = draft.dtype(x)
    w = _bytes(draft, (draft.shape(x)[1], draft.extent(9)), dtype)
    names = [name for value in (x, w) for name in (value, _scale(draft), _zero_point(draft, dtype))]
    draft.node("QLinearMatMul", [*names, _scale(draft), _zero_point(draft, dtype)])


def _quantized_image(draft: Draft, x: str) -> str:
    if draft.dtype(x) == "uint8" and draft.values[x].ndim == 4:
        return x
    return _bytes(draft, (draft.integer(1, 2), draft.integer(1, 4), draft.extent(7), draft.extent(7)), "uint8")


def conv_integer(draft: Draft, x: str) -> None:
    x = _quantized_image(draft, x)
    need(0 not in draft.shape(x))
    kernel = [min(draft.integer(1, 3), size) for size in draft.shape(x)[2:]]
    w = _bytes(draft, (draft.integer(1, 5), draft.shape(x)[1], *kernel), "uint8")
    points = [_zero_point(draft, "uint8"), _zero_point(draft, "uint8")] if draft.chance() else []
    draft.node("ConvInteger", [x, w, *points], pads=[draft.integer(0, 1) for _ in range(4)])


def qlinear_conv(draft: Draft, x: str) -> None:
    x = _quantized_image(draft, x)
    need(0 not in draft.shape(x))
    kernel = [min(draft.integer(1, 3), size) for size in draft.shape(x)[2:]]
    outputs = draft.integer(1, 5)
    w = _bytes(draft, (outputs, draft.shape(x)[1], *kernel), "int8")
    per_channel = (outputs,) if draft.chance() else ()
    zeros = draft.constant(np.zeros(per_channel, np.int8))
    operands = [x, _scale(draft), _zero_point(draft, "uint8"), w, _scale(draft, *per_channel), zeros]
    operands += [_scale(draft), _zero_point(draft, "uint8")]
    if draft.chance():
        operands.append(draft.constant(draft.rng.integers(-99, 99, (outputs,)).astype(np.int32)))
    draft.node("QLinearConv", operands, pads=[draft.integer(0, 1) for _ in range(4)])


STEPS: tuple[Step, ...] = (
    *[matmul] * 4,
    *[transposed_matmul] * 2,
    *[gemm] * 3,
    *[einsum] * 2,
    *[quantize] * 2,
    *[quantized_layer] * 2,
    dynamic_quantize,
    dequantize,
    matmul_integer,
    qlinear_matmul,
    conv_integer,
    qlinear_conv,
)
