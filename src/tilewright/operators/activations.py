"""The activation functions of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright import te
from tilewright.operators.elementwise import elementwise_operator
from tilewright.operators.operands import map_elements
from tilewright.operators.registry import Call
from tilewright.te import Expr, Tensor

# The constants of SELU as float32, which ONNX gives them by default.
_SELU_ALPHA = 1.67326319217681884765625
_SELU_GAMMA = 1.05070102214813232421875


def log1p(x: Expr) -> Expr:
    """log(1 + x), exact for small x: what rounding took from 1 + x is put back as a factor."""
    total = x + 1.0
    exact = te.log(total) * (x / (total - 1.0))
    return te.select(te.equal(total, 1.0), x, te.select(te.equal(total, math.inf), total, exact))


def softplus(x: Expr) -> Expr:
    """log(1 + exp(x)), without overflow."""
    return te.maximum(x, 0.0) + log1p(te.exp(-te.abs(x)))


def activation(function: Callable[..., Expr], **defaults: float) -> Callable[[Call], Tensor]:
    """The lowering of an activation: `function` of an element and the attributes, in the order of `defaults`."""

    def lower(call: Call) -> Tensor:
        parameters = [call.attribute(name, default) for name, default in defaults.items()]
        return map_elements(call, lambda x: function(x, *parameters))

    return lower


def _selu(x: Expr, alpha: float, gamma: float) -> Expr:
    return gamma * te.select(x > 0, x, alpha * te.exp(x) - alpha)


def _celu(x: Expr, alpha: float) -> Expr:
    return te.maximum(x, 0.0) + te.minimum(alpha * (te.exp(x / alpha) - 1.0), 0.0)


def _hard_sigmoid(x: Expr, alpha: float, beta: float) -> Expr:
    return te.maximum(te.minimum(alpha * x + beta, 1.0), 0.0)


_ACTIVATIONS = {
    "Relu": activation(lambda x: te.maximum(x, 0)),
    "Sigmoid": activation(te.sigmoid),
    "Tanh": activation(te.tanh),
    "Softplus": activation(softplus),
    "Softsign": activation(lambda x: x / (te.abs(x) + 1.0)),
    "Mish": activation(lambda x: x * te.tanh(softplus(x))),
    "LeakyRelu": activation(lambda x, alpha: te.select(x < 0, x * alpha, x), alpha=0.01),
    "Elu": activation(lambda x, alpha: te.select(x > 0, x, alpha * (te.exp(x) - 1.0)), alpha=1.0),
    "Selu": activation(_selu, alpha=_SELU_ALPHA, gamma=_SELU_GAMMA),
    "Celu": activation(_celu, alpha=1.0),
    "HardSigmoid": activation(_hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": activation(lambda x: x * _hard_sigmoid(x, 1.0 / 6.0, 0.5)),
    "Swish": activation(lambda x, alpha: x * te.sigmoid(x * alpha), alpha=1.0),
    "ThresholdedRelu": activation(lambda x, alpha: te.select(x > alpha, x, te.constant(0, x.dtype)), alpha=1.0),
}

for _name, _lowering in _ACTIVATIONS.items():
    elementwise_operator(_name)(_lowering)


@elementwise_operator("Gelu")
def gelu(call: Call) -> Tensor:
    """x times the normal distribution's integral up to x, or its approximation by tanh."""
    if call.attribute("approximate", "none") == "tanh":
        return map_elements(
            call, lambda x: 0.5 * x * (1.0 + te.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
        )
    return map_elements(call, lambda x: 0.5 * x * (1.0 + te.erf(x * math.sqrt(0.5))))


@elementwise_operator("SwiGLU")
def swiglu(call: Call) -> Tensor:
    """The second operand, gated by the swish of the first."""
    alpha = call.attribute("alpha", 1.0)
    return map_elements(call, lambda a, b: a * te.sigmoid(a * alpha) * b)


@elementwise_operator("Shrink")
def shrink(call: Call) -> Tensor:
    """Elements moved towards zero by `bias`, those within `lambd` become zero; integers are computed as floats."""
    limit, bias = call.attribute("lambd", 0.5), call.attribute("bias", 0.0)

    def shrunk(x: Expr) -> Expr:
        number = x if te.is_float(x.dtype) else te.cast(x, "float64")
        zero = te.constant(0, number.dtype)
        result = te.select(number < -limit, number + bias, te.select(number > limit, number - bias, zero))
        return te.cast(result, x.dtype)

    return map_elements(call, shrunk)
