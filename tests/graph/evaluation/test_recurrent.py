"""RNN, GRU, LSTM and STFT on the reference evaluator, with what its own leave out, next to onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.graph.onnx_models import model, random, tensor
from tilewright.errors import ModelError
from tilewright.graph.evaluation.fallback import run_fallback
from tilewright.operators import Node

LENGTH, BATCH, WIDTH, SIZE = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS = np.array([5, 2, 4], np.int32)


def check(op: str, inputs: list[Any], num_outputs: int, **attributes: Any) -> None:
    names = tuple("" if value is None else f"in{i}" for i, value in enumerate(inputs))
    outputs = tuple(f"out{i}" for i in range(num_outputs))
    feed = {name: value for name, value in zip(names, inputs, strict=True) if name}
    declared = [
        tensor(name, value.shape, onnx.helper.np_dtype_to_tensor_dtype(value.dtype)) for name, value in feed.items()
    ]
    proto = model([onnx.helper.make_node(op, names, outputs, **attributes)], declared, outputs, opset=17, ir_version=8)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found = run_fallback(Node(op, names, outputs, attributes, opset=17), inputs)
    for result, wanted in zip(found, session.run(None, feed), strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def operands(op: str, directions: int = 1, lengths: Any = None, is_complete: bool = False) -> list[Any]:
    gates, states = GATES[op], 2 if op == "LSTM" else 1
    found = [
        random((LENGTH, BATCH, WIDTH)),
        random((directions, gates * SIZE, WIDTH), 1),
        random((directions, gates * SIZE, SIZE), 2),
        random((directions, 2 * gates * SIZE), 3) if is_complete else None,
        lengths,
        *[random((directions, BATCH, SIZE), 4 + i) if is_complete else None for i in range(states)],
    ]
    return [*found, random((directions, 3 * SIZE), 9)] if is_complete and op == "LSTM" else found


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences_of_several_lengths(op: str, direction: str) -> None:
    inputs = operands(op, 2 if direction == "bidirectional" else 1, LENGTHS, is_complete=True)
    check(op, inputs, 3 if op == "LSTM" else 2, hidden_size=SIZE, direction=direction)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("RNN", {"activations": ["Relu"]}),
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.3], "activation_beta": [0.1]}),
        ("RNN", {"activations": ["HardSigmoid"]}),
        ("RNN", {"activations": ["ScaledTanh"], "activation_alpha": [0.5], "activation_beta": [0.7]}),
        ("RNN", {"activations": ["Elu"], "activation_alpha": [0.5]}),
        ("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.5]}),
        ("RNN", {"activations": ["Softsign"]}),
        ("RNN", {"activations": ["Softplus"]}),
        ("RNN", {"clip": 0.5}),
        ("GRU", {"linear_before_reset": 1, "clip": 0.5}),
        (
            "GRU",
            {"activations": ["HardSigmoid", "LeakyRelu"], "activation_alpha": [0.3, 0.1], "activation_beta": [0.4]},
        ),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"activations": ["HardSigmoid", "Softsign", "Relu"]}),
    ],
    ids=str,
)
def test_activations_and_clipping(op: str, attributes: dict[str, Any]) -> None:
    check(op, operands(op), 2, hidden_size=SIZE, **attributes)


def test_an_activation_that_is_not_known_is_refused() -> None:
    names = ("x", "w", "r")
    rnn = Node("RNN", names, ("y",), {"hidden_size": SIZE, "activations": ["Swirl"]}, opset=17)
    with pytest.raises(ModelError, match="there is no activation Swirl"):
        run_fallback(rnn, operands("RNN")[:3])


@pytest.mark.parametrize(
    ("shape", "window", "length", "onesided"),
    [((2, 40), 8, 8, 1), ((2, 40, 1), None, 8, 0), ((2, 41, 1), 7, None, 1), ((2, 40, 2), 8, None, 0)],
)
def test_short_time_fourier_transforms(shape: Any, window: int | None, length: int | None, onesided: int) -> None:
    inputs = [
        random(shape),
        np.array(3),
        None if window is None else random((window,), 1),
        *([] if length is None else [np.array(length)]),
    ]
    check("STFT", inputs, 1, onesided=onesided)
