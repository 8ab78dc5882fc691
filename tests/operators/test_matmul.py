"""Matrix products against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.operators.nodes import check, reference, run, uniform
from tilewright.operators import NotCompilableError


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((2, 1, 3, 4), (5, 4, 6)),
        ((1, 3, 1), (2, 1, 1)),
    ],
)
def test_products_broadcast_as_in_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = uniform(rng, *a), uniform(rng, *b)
    check(run("MatMul", [x, y]), np.asarray(np.matmul(x, y)))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_products_of_other_types_are_exact(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-1000, 1000, shape).astype(dtype) for shape in ((3, 40), (40, 5)))
    check(run("MatMul", [x, y]), x @ y, rtol=0, atol=0)


def test_products_of_half_floats_are_summed_in_float32() -> None:
    x, y = np.full((2, 4000), 0.1, "float16"), np.full((4000, 2), 0.1, "float16")
    exact = (x.astype("float64") @ y.astype("float64")).astype("float16")
    check(run("MatMul", [x, y]), exact, rtol=1e-3)


def test_operands_that_do_not_fit_are_not_compiled() -> None:
    with pytest.raises(NotCompilableError, match=r"cannot multiply the shapes \(2, 3\) and \(4, 5\)"):
        run("MatMul", [np.zeros((2, 3), "float32"), np.zeros((4, 5), "float32")])


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"transA": 1},
        {"transB": 1},
        {"transA": 1, "transB": 1, "alpha": 0.5},
        {"alpha": 2.0, "beta": 0.25},
        {"beta": 0.0},
    ],
)
@pytest.mark.parametrize("c", [None, (), (1,), (5,), (3, 1), (1, 5), (3, 5)])
def test_gemm_agrees_with_onnx(attributes: dict[str, Any], c: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(0)
    inputs = [
        uniform(rng, 4, 3) if attributes.get("transA") else uniform(rng, 3, 4),
        uniform(rng, 5, 4) if attributes.get("transB") else uniform(rng, 4, 5),
    ]
    inputs += [] if c is None else [np.asarray(uniform(rng, *c))]
    check(run("Gemm", inputs, **attributes), *reference("Gemm", inputs, **attributes))


def test_gemm_of_integers_takes_whole_factors_only() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-9, 9, shape).astype("int32") for shape in ((3, 4), (4, 5), (5,)))
    check(run("Gemm", [a, b, c], alpha=2.0, beta=3.0), (a @ b) * 2 + c * 3)
    with pytest.raises(NotCompilableError, match="Gemm of int32 with a factor of 0.5"):
        run("Gemm", [a, b], alpha=0.5)
