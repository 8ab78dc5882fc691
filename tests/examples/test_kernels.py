"""The example kernels compute what NumPy does, and a wrong result is found."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from examples import conv2d, gemm, kernels
from examples.conv2d import conv2d_numpy, conv2d_schedule, conv2d_task
from examples.gemm import gemm_schedule, gemm_task
from examples.kernels import Example

SMALL = [
    Example("small product", partial(gemm_task, 37, 50, 20), gemm_schedule, np.matmul),
    Example("small convolution", partial(conv2d_task, 9, 11, 8, 40), conv2d_schedule, conv2d_numpy),
]


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "ROUNDS", 1)
    monkeypatch.setattr(kernels, "BUILDS", 1)
    monkeypatch.setattr(kernels, "EXAMPLES", SMALL)


def test_results_are_checked_and_speeds_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert kernels.main() == 0
    printed = capsys.readouterr().out
    assert "unroll i.1" in printed
    for example in SMALL:
        assert f"\n{example.title}\n  compiled in " in printed
    assert printed.count("1 core: result as NumPy's, tilewright ") == len(SMALL)


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = Example("wrong", SMALL[0].make_task, gemm_schedule, lambda a, b: 1.01 * (a @ b))
    monkeypatch.setattr(kernels, "EXAMPLES", [wrong])
    assert kernels.main() == 1
    assert "kernels: gemm on 1 threads gives a wrong result" in capsys.readouterr().err


@pytest.mark.parametrize("example", [gemm, conv2d])
def test_each_example_runs_alone(example: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main() == 0  # type: ignore[attr-defined]
    assert "largest difference from NumPy: " in capsys.readouterr().out
