"""RNN, GRU and LSTM for the reference evaluator of ONNX.

Its own know neither lengths of sequences nor clipping, and no activations but the usual ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from onnx.reference.op_run import OpRun

Array: TypeAlias = Any
"""An array of one of the float types."""


@dataclass(frozen=True, slots=True)
class _Activation:
    """A function of an array and up to two numbers, with what those are if they are not given."""

    function: Callable[..., Array]
    defaults: tuple[float, ...] = ()


_ACTIVATIONS = {
    "affine": _Activation(lambda x, alpha, beta: alpha * x + beta, (1.0, 0.0)),
    "elu": _Activation(lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x), (1.0,)),
    "hardsigmoid": _Activation(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), (0.2, 0.5)),
    "leakyrelu": _Activation(lambda x, alpha: np.where(x < 0, alpha * x, x), (0.01,)),
    "relu": _Activation(lambda x: np.maximum(x, 0)),
    "scaledtanh": _Activation(lambda x, alpha, beta: alpha * np.tanh(beta * x), (1.0, 1.0)),
    "sigmoid": _Activation(lambda x: 1 / (1 + np.exp(-x))),
    "softplus": _Activation(lambda x: np.logaddexp(x, 0)),
    "softsign": _Activation(lambda x: x / (1 + np.abs(x))),
    "tanh": _Activation(np.tanh),
    "thresholdedrelu": _Activation(lambda x, alpha: np.where(x > alpha, x, 0), (1.0,)),
}


@dataclass(frozen=True, slots=True)
class _Direction:
    """What one direction of a network works with; gates lie side by side in the weights."""

    w: Array
    r: Array
    w_bias: Array
    r_bias: Array
    peepholes: Array
    activations: Sequence[Callable[[Array], Array]]
    attributes: dict[str, Any]


class _Recurrent(OpRun):  # type: ignore[misc]
    """Steps through sequences, each as far as it goes, from its start or from its end."""

    num_gates: int
    num_states = 1
    usual_activations: tuple[str, ...]

    def _run(self, *inputs: Array, layout: int | None = None, **attributes: Any) -> tuple[Array, ...]:
        operands: list[Array] = [*inputs, *[None] * (8 - len(inputs))]
        x, w, r, bias, lengths = operands[:5]
        if layout:
            x = x.swapaxes(0, 1)
        length, batch, _ = x.shape
        num_directions, _, size = r.shape
        given = operands[5 : 5 + self.num_states]
        if layout:
            given = [None if state is None else state.swapaxes(0, 1) for state in given]
        zeros = np.zeros((num_directions, batch, size), x.dtype)
        states = [zeros if state is None else state for state in given]
        peepholes = operands[7]
        if peepholes is None:
            peepholes = np.zeros((num_directions, 3 * size), x.dtype)
        if bias is None:
            bias = np.zeros((num_directions, 2 * self.num_gates * size), x.dtype)
        lengths = np.full(batch, length) if lengths is None else lengths
        activations = list(self._activations(num_directions, attributes))
        is_reverse = attributes.get("direction") == "reverse"
        rows, lasts = [], []
        per_direction = len(self.usual_activations)
        for i in range(num_directions):
            w_bias, r_bias = np.split(bias[i], 2)
            direction = _Direction(
                w[i].T,
                r[i].T,
                w_bias,
                r_bias,
                peepholes[i],
                activations[i * per_direction : (i + 1) * per_direction],
                attributes,
            )
            found, last = self._run_direction(
                x, direction, [state[i] for state in states], lengths, backwards=is_reverse or i == 1
            )
            rows.append(found)
            lasts.append(last)
        y = np.stack(rows, axis=1)
        ends = [np.stack(state) for state in zip(*lasts, strict=True)]
        if layout:
            y, ends = y.transpose(2, 0, 1, 3), [end.swapaxes(0, 1) for end in ends]
        return (y, *ends)[: max(1, len(self.onnx_node.output))]

    def _run_direction(
        self, x: Array, direction: _Direction, states: list[Array], lengths: Array, *, backwards: bool
    ) -> tuple[Array, list[Array]]:
        """The state after each step, 0 beyond the end of a sequence, and the last states."""
        steps = np.arange(len(x))[:, None]
        order = (
            np.where(steps < lengths, lengths - 1 - steps, steps) if backwards else np.broadcast_to(steps, x.shape[:2])
        )
        projected = np.take_along_axis(x, order[:, :, None], axis=0) @ direction.w + direction.w_bias
        rows = np.zeros((*x.shape[:2], direction.r.shape[0]), x.dtype)
        for step, row in enumerate(projected):
            goes_on = (step < lengths)[:, None]
            after = self._step(row, states, direction)
            states = [np.where(goes_on, new, old).astype(x.dtype) for new, old in zip(after, states, strict=True)]
            rows[step] = np.where(goes_on, states[0], 0)
        return np.take_along_axis(rows, order[:, :, None], axis=0), states

    def _activations(self, num_directions: int, attributes: dict[str, Any]) -> Iterator[Callable[[Array], Array]]:
        """The functions of all directions; numbers are given in the order of the functions that take one."""
        names = attributes.get("activations") or self.usual_activations * num_directions
        parameters = [list(attributes.get(f"activation_{name}") or ()) for name in ("alpha", "beta")]
        clip = attributes.get("clip") or np.inf
        for name in names:
            activation = _ACTIVATIONS.get(str(name).lower())
            if activation is None:
                raise ValueError(f"there is no activation {name}")
            numbers = [
                given.pop(0) if given else default
                for given, default in zip(parameters, activation.defaults, strict=False)
            ]
            yield _clipped(activation.function, numbers, clip)

    @abstractmethod
    def _step(self, row: Array, states: Sequence[Array], direction: _Direction) -> list[Array]:
        """The states after one more row of the input, which is multiplied by the weights already."""


def _clipped(function: Callable[..., Array], numbers: Sequence[float], clip: float) -> Callable[[Array], Array]:
    return lambda x: function(x if clip == np.inf else np.clip(x, -clip, clip), *numbers)


class RNN(_Recurrent):
    num_gates = 1
    usual_activations = ("Tanh",)

    def _step(self, row: Array, states: Sequence[Array], direction: _Direction) -> list[Array]:
        return [direction.activations[0](row + states[0] @ direction.r + direction.r_bias)]


class GRU(_Recurrent):
    num_gates = 3
    usual_activations = ("Sigmoid", "Tanh")

    def _step(self, row: Array, states: Sequence[Array], direction: _Direction) -> list[Array]:
        (before,) = states
        f, g = direction.activations
        x_update, x_reset, x_new = np.split(row, 3, axis=-1)
        r_update, r_reset, r_new = np.split(direction.r, 3, axis=-1)
        b_update, b_reset, b_new = np.split(direction.r_bias, 3)
        update = f(x_update + before @ r_update + b_update)
        reset = f(x_reset + before @ r_reset + b_reset)
        if direction.attributes.get("linear_before_reset"):
            new = g(x_new + reset * (before @ r_new + b_new))
        else:
            new = g(x_new + (reset * before) @ r_new + b_new)
        return [(1 - update) * new + update * before]


class LSTM(_Recurrent):
    num_gates = 4
    num_states = 2
    usual_activations = ("Sigmoid", "Tanh", "Tanh")

    def _step(self, row: Array, states: Sequence[Array], direction: _Direction) -> list[Array]:
        hidden, cell = states
        f, g, h = direction.activations
        into, out, forget, new = np.split(row + hidden @ direction.r + direction.r_bias, 4, axis=-1)
        p_into, p_out, p_forget = np.split(direction.peepholes, 3)
        taken = f(into + p_into * cell)
        kept = 1 - taken if direction.attributes.get("input_forget") else f(forget + p_forget * cell)
        cell = kept * cell + taken * g(new)
        return [f(out + p_out * cell) * h(cell), cell]
