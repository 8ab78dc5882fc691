"""The tuned network is taken unless it is clearly slower than the untuned one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.deploy.choice import Choice, compare
from tilewright.runtime import Timing


@pytest.mark.parametrize(
    ("untuned", "tuned", "takes_tuned"),
    [
        ((2.0, 2.0, 2.0), (1.0, 1.0, 1.0), True),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), True),
        ((1.0, 1.0, 1.0), (1.02, 1.02, 1.02), True),
        ((1.0, 1.0, 1.0), (1.04, 1.04, 1.04), False),
        ((1.0, 5.0, 1.0), (1.1, 5.5, 1.1), False),
        ((1.0, 1.0, 9.0), (1.1, 1.1, 1.1), False),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 9.0), True),
    ],
    ids=["faster", "equal", "noise", "slower", "slow spell of both", "slow spell of one", "slow spell of the other"],
)
def test_only_a_clear_loss_in_most_turns_counts(
    untuned: tuple[float, ...], tuned: tuple[float, ...], takes_tuned: bool
) -> None:
    assert Choice(Timing(1, untuned), Timing(1, tuned)).takes_tuned is takes_tuned


def test_both_networks_run_in_turns() -> None:
    text = '<ir_version: 8, opset_import: ["" : 20]> net (float[3] x) => (float[3] y) { y = Relu(x) }'
    sessions = [tw.InferenceSession(onnx.parser.parse_model(text), threads=1) for _ in range(2)]
    choice = compare(sessions[0], sessions[1], {"x": np.ones(3, np.float32)})
    assert choice.untuned.repeats == choice.tuned.repeats > 1
