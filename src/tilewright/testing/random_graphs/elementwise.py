"""Functions of elements: arithmetic, activations, comparisons, logic and casts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from tilewright.testing.random_graphs.draft import Draft, Step, need

_ANY_FLOAT = (
    *("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Mish", "LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid"),
    *("HardSwish", "ThresholdedRelu", "Gelu", "Shrink", "Exp", "Erf", "Sin", "Cos", "Atan", "Asinh", "Sinh", "Cosh"),
    *("Sqrt", "Log", "Reciprocal", "Acos", "Asin", "Atanh", "Acosh", "Tan", "Identity", "Dropout"),
)
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "LeakyRelu": {"alpha": 0.3},
    "Elu": {"alpha": 0.7},
    "Celu": {"alpha": 1.5},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "ThresholdedRelu": {"alpha": 0.25},
    "Shrink": {"lambd": 0.4, "bias": 0.1},
}
# onnxruntime computes these in float32, or with constants of float32, whatever they are given.
_NARROW = ("Shrink", "HardSwish")
_DTYPES = ("float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool")
# Where two floats that should be the same differ in their last bits, these give another answer.
_LEAPS = ("Floor", "Ceil", "Round", "Sign", "Not", "IsNaN", "IsInf")


def function(draft: Draft, x: str) -> None:
    """A smooth function, of values where it has one."""
    need(draft.is_float(x))
    op = draft.choice(_ANY_FLOAT)
    need(op not in _NARROW or draft.dtype(x) == "float32")
    if op in ("Sqrt", "Log", "Reciprocal") and draft.chance(0.8):
        x = draft.result("Abs", [x])
        x = draft.result("Add", [x, draft.constant(np.array(0.5, draft.dtype(x)))])
    elif op in ("Acos", "Asin", "Atanh") and draft.chance(0.8):
        x = draft.result("Mul", [draft.result("Tanh", [x]), draft.constant(np.array(0.9, draft.dtype(x)))])
    elif op == "Acosh":
        x = draft.result("Add", [draft.result("Abs", [x]), draft.constant(np.array(1.1, draft.dtype(x)))])
    attributes: dict[str, Any] = _ATTRIBUTES.get(op, {}) if draft.chance() else {}
    # ONNX rounds the numbers of the approximation to float32, whatever the type.
    if op == "Gelu" and draft.dtype(x) != "float64" and draft.chance():
        attributes = {"approximate": "tanh"}
    draft.node(op, [x], **attributes)


def sign(draft: Draft, x: str) -> None:
    draft.node(draft.choice(["Abs", "Neg", "Sign", "Identity"]), [x])


def leap(draft: Draft, x: str) -> None:
    draft.node(draft.choice(_LEAPS), [x])


def arithmetic(draft: Draft, x: str) -> None:
    other = draft.partner(x)
    operands = [x, other] if draft.chance() else [other, x]
    draft.node(draft.choice(["Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"]), operands)


def several(draft: Draft, x: str) -> None:
    operands = [x, *(draft.partner(x) for _ in range(draft.integer(0, 2)))]
    draft.node(draft.choice(["Sum", "Mean", "Max", "Min"]), operands)


def division(draft: Draft, x: str) -> None:
    kind = draft.values[x].dtype.kind
    need(kind in "fiu")
    divisor = draft.array(draft.shape(x)[draft.integer(0, draft.values[x].ndim) :], draft.dtype(x))
    divisor = np.where(np.abs(divisor) < 0.5, np.ones_like(divisor) * 3, divisor)
    fmod = {"fmod": 1} if kind == "f" or draft.chance(0.3) else {}
    if draft.chance(0.7):
        draft.node("Div", [x, draft.constant(divisor)])
    else:
        draft.node("Mod", [x, draft.constant(divisor)], **fmod)


def number(draft: Draft, x: str) -> None:
    """Arithmetic with one constant number, which passes fold into what is before or after."""
    need(draft.values[x].dtype.kind in "fi")
    value = np.array(draft.choice([0, 1, 2, 3, -1]), draft.dtype(x))
    value = value.reshape(draft.choice([(), (1,), (1, 1)]))
    operands = [x, draft.constant(value)]
    draft.node(draft.choice(["Add", "Sub", "Mul"]), operands if draft.chance(0.7) else operands[::-1])


def widened(draft: Draft, x: str) -> None:
    """A shift by a constant that makes the value larger, and a scale of what it has become."""
    need(draft.is_float(x) and 1 in draft.shape(x))
    axis = draft.choice([axis for axis, size in enumerate(draft.shape(x)) if size == 1])
    wide = [draft.integer(2, 5) if place == axis else 1 for place in range(draft.values[x].ndim)]
    shifted = draft.result("Add", [x, draft.weights(*wide[draft.integer(0, axis) :], dtype=draft.dtype(x))])
    draft.node("Mul", [shifted, draft.weights(*wide[draft.integer(0, axis) :], dtype=draft.dtype(x))])


def power(draft: Draft, x: str) -> None:
    need(draft.is_float(x))
    exponent = draft.choice([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 1.7])
    if exponent not in (0.0, 1.0, 2.0, 3.0):
        x = draft.result("Add", [draft.result("Abs", [x]), draft.constant(np.array(0.5, draft.dtype(x)))])
    draft.node("Pow", [x, draft.constant(np.array(exponent, draft.dtype(x)))])


def clip(draft: Draft, x: str) -> None:
    dtype = draft.dtype(x)
    low, high = (draft.constant(np.array(v, dtype)) for v in (draft.choice([0, 1]), draft.choice([2, 5, 6])))
    draft.node("Clip", draft.choice([[x, low, high], [x, low], [x, "", high], [x]]))


def prelu(draft: Draft, x: str) -> None:
    need(draft.dtype(x) == "float32" or draft.chance(0.1))
    kept = [size if draft.chance() else 1 for size in draft.shape(x)]
    draft.node("PRelu", [x, draft.operand(kept[draft.integer(0, len(kept)) :], draft.dtype(x))])


def comparison(draft: Draft, x: str) -> None:
    op = draft.choice(["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
    draft.node(op, [x, draft.partner(x)])


def logic(draft: Draft, x: str) -> None:
    if draft.dtype(x) != "bool":
        x = draft.result("Greater", [x, draft.partner(x)])
    draft.node(draft.choice(["And", "Or", "Xor"]), [x, draft.partner(x)])


def where(draft: Draft, x: str) -> None:
    y = draft.partner(x)
    if draft.dtype(x) != "bool" and draft.chance(0.4):
        condition = draft.result("Less", [x, y])
    else:
        condition = draft.operand(draft.shape(x) if draft.chance() else draft.shape(y), "bool")
    draft.node("Where", [condition, x, y])


def cast(draft: Draft, x: str) -> None:
    """To any type that can hold the values: what is out of range has no meaning."""
    value = draft.values[x]
    dtype = draft.choice(_DTYPES)
    if value.size and np.dtype(dtype).kind in "iu":
        bounds = np.iinfo(dtype)
        need(bounds.min + 1 <= float(value.min()) and float(value.max()) <= bounds.max - 1)
    if draft.chance(0.15):
        draft.node("CastLike", [x, draft.operand((1,), dtype)])
    else:
        draft.node("Cast", [x], to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def bits(draft: Draft, x: str) -> None:
    need(draft.values[x].dtype.kind in "iu")
    if draft.dtype(x) == "uint8" and draft.chance(0.3):
        amount = draft.constant(draft.rng.integers(0, 8, draft.shape(x)).astype(np.uint8))
        draft.node("BitShift", [x, amount], direction=draft.choice(["LEFT", "RIGHT"]))
        return
    op = draft.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
    draft.node(op, [x] if op == "BitwiseNot" else [x, draft.partner(x)])


STEPS: tuple[Step, ...] = (
    *[function] * 5,
    sign,
    leap,
    *[arithmetic] * 4,
    several,
    division,
    number,
    widened,
    power,
    clip,
    prelu,
    *[comparison] * 2,
    logic,
    where,
    *[cast] * 2,
    bits,
)
