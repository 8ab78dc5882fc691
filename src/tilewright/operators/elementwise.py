"""Operators that compute each element from the elements at its place, with NumPy's broadcasting.

Division, powers and bits are in `arithmetic`, functions of angles in `trigonometry`, activations in `activations`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from tilewright import te
from tilewright.operators.operands import broadcast_shape, known, known_number, map_elements, reader
from tilewright.operators.registry import Call, Facts, Lowering, NotCompilableError, operator
from tilewright.te import Expr, Tensor


def elementwise(function: Callable[..., Expr]) -> Callable[[Call], Tensor]:
    """The lowering of an operator that is `function` of the elements of all its operands."""
    return lambda call: map_elements(call, function)


def elementwise_operator(name: str) -> Callable[[Lowering], Lowering]:
    """Register a function as the tensor expression of an operator that works on each element by itself."""
    return operator(name, facts=Facts(elementwise=True))


def absolute(x: Expr) -> Expr:
    """The absolute value, of unsigned integers too."""
    return x if x.dtype == "uint8" else te.abs(x)


def sign(x: Expr) -> Expr:
    """1, -1, or x itself where it is zero or NaN."""
    below = x if x.dtype == "uint8" else te.select(x < 0, te.constant(-1, x.dtype), x)
    return te.select(x > 0, te.constant(1, x.dtype), below)


def round_half_even(x: Expr) -> Expr:
    """The nearest whole number, of two the even one: a sum with 2**23 has no room for the fraction and rounds it."""
    no_room = 2.0**52 if x.dtype == "float64" else 2.0**23
    size = te.abs(x)
    rounded = (size + no_room) - no_room
    return te.select(size < no_room, te.select(x < 0, -rounded, rounded), x)


_FUNCTIONS: dict[str, Callable[..., Expr]] = {
    "Abs": absolute,
    "Neg": lambda x: -x,
    "Sign": sign,
    "Floor": te.floor,
    "Ceil": te.ceil,
    "Round": round_half_even,
    "Sqrt": te.sqrt,
    "Reciprocal": lambda x: 1.0 / x,
    "Exp": te.exp,
    "Log": te.log,
    "Erf": te.erf,
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Equal": te.equal,
    "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b,
    "Greater": lambda a, b: a > b,
    "GreaterOrEqual": lambda a, b: a >= b,
    "And": te.logical_and,
    "Or": te.logical_or,
    "Xor": te.not_equal,
    "Not": te.logical_not,
    "IsNaN": lambda x: te.not_equal(x, x),
    "Where": te.select,
}
_FUNCTIONS_OF_MANY: dict[str, Callable[..., Expr]] = {
    "Sum": lambda *x: functools.reduce(lambda a, b: a + b, x),
    "Mean": lambda *x: functools.reduce(lambda a, b: a + b, x) / len(x),
    "Max": lambda *x: functools.reduce(te.maximum, x),
    "Min": lambda *x: functools.reduce(te.minimum, x),
}

for _name, _function in _FUNCTIONS.items():
    elementwise_operator(_name)(elementwise(_function))
for _name, _function in _FUNCTIONS_OF_MANY.items():
    operator(_name, facts=Facts(elementwise=True, copies_one=True))(elementwise(_function))


@elementwise_operator("IsInf")
def is_inf(call: Call) -> Tensor:
    """Whether an element is infinite, of the signs that the attributes ask for."""
    signs = [
        sign
        for sign, attribute in ((math.inf, "detect_positive"), (-math.inf, "detect_negative"))
        if call.attribute(attribute, 1)
    ]

    def test(x: Expr) -> Expr:
        return te.logical_or(te.constant(False, "bool"), *(te.equal(x, te.constant(s, x.dtype)) for s in signs))

    return map_elements(call, test)


@elementwise_operator("Clip")
def clip(call: Call) -> Tensor:
    """Elements moved into the bounds, which are operands since opset 11; of crossing bounds the upper one counts."""
    X = call.tensor(0)
    low = _bound(call, 1, "min")
    high = _bound(call, 2, "max")

    def clipped(*i: Expr) -> Expr:
        raised = X[i] if low is None else te.maximum(X[i], low)
        return raised if high is None else te.minimum(raised, high)

    return te.compute(X.shape, clipped, call.name())


def _bound(call: Call, position: int, attribute: str) -> Expr | None:
    dtype = call.tensor(0).dtype
    if call.node.opset < 11:
        value: float | None = call.attribute(attribute, None)
        return None if value is None else te.constant(value, dtype)
    if position >= len(call.node.inputs) or not call.node.inputs[position]:
        return None
    number = known_number(call, position)
    if number is not None:
        return te.constant(number, dtype)
    bound = call.tensor(position)
    return bound[(0,) * bound.ndim]


# The element types of ONNX's TensorProto that kernels know.
_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    16: "bfloat16",
}


def element_type(call: Call, number: int) -> str:
    """The name of an element type of ONNX."""
    if number not in _TYPES:
        raise NotCompilableError(f"{call.node.op} gives the ONNX element type {number}, which kernels do not know")
    return _TYPES[number]


@operator("Cast", facts=Facts(elementwise=True, copies_same_type=True))
def cast(call: Call) -> Tensor:
    """Elements in the type that the attribute `to` names."""
    dtype = element_type(call, call.attribute("to", 0))
    return map_elements(call, lambda x: te.cast(x, dtype))


@operator("CastLike", facts=Facts(copies_same_type=True))
def cast_like(call: Call) -> Tensor:
    """Elements in the type of the second operand."""
    value = known(call, 1)
    # An operand without elements has a type too, but no tensor.
    dtype = value.dtype.name if value is not None and value.size == 0 else call.tensor(1).dtype
    if dtype not in te.DTYPES:
        raise NotCompilableError(f"CastLike gives {dtype}, which kernels do not know")
    return map_elements(call, lambda x: te.cast(x, dtype), [0])


@elementwise_operator("PRelu")
def prelu(call: Call) -> Tensor:
    """Elements below zero times a slope that broadcasts to them."""
    X, slope = call.tensor(0), reader(call, 1)
    if broadcast_shape(call, X.shape, call.tensor(1).shape) != X.shape:
        raise NotCompilableError(f"the slope of PRelu has the shape {call.tensor(1).shape}, beyond that of its input")
    return te.compute(X.shape, lambda *i: te.select(X[i] < 0, X[i] * slope(i), X[i]), call.name())
