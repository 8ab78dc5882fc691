"""Einsum against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.operators.nodes import check, run, uniform
from tilewright.operators import NotCompilableError

EXTENTS = {"i": 3, "j": 4, "k": 5, "b": 2, "h": 2, "n": 3}


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk->ik",
        "ij,jk",
        "ij->ji",
        "ij->i",
        "ij->",
        "ii->i",
        "ii",
        "i,i->",
        "i,j->ij",
        "bij,bjk->bik",
        "b i j , b j k -> b i k",
        "bhik,bhjk->bhij",
        "ij,jk,k->i",
        "bji,bjk->kib",
    ],
)
def test_sums_of_products_agree_with_numpy(equation: str) -> None:
    rng = np.random.default_rng(0)
    terms = equation.replace(" ", "").split("->")[0].split(",")
    inputs = [uniform(rng, *(EXTENTS[label] for label in term)) for term in terms]
    check(run("Einsum", inputs, equation=equation), np.asarray(np.einsum(equation, *inputs)))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 5)]),
        ("...ij,jk", [(2, 2, 3, 4), (4, 5)]),
        ("i...->...", [(3, 4, 2)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("i...,i...->i", [(3, 4), (3, 1)]),
    ],
)
def test_ellipses_broadcast_as_in_numpy(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    inputs = [uniform(rng, *shape) for shape in shapes]
    if equation.endswith("->i"):
        expected = (inputs[0] * inputs[1]).sum(axis=1)  # NumPy takes no output without the ellipsis
    else:
        expected = np.einsum(equation, *inputs)
    check(run("Einsum", inputs, equation=equation), expected)


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij->ij", "2 inputs for the 1 terms"),
        ("ijk,jk->i", "an input of 2 dimensions for the term 'ijk'"),
        ("ij,jk->iz", "cannot give the output 'iz'"),
        ("ij,jk->ii", "cannot give the output 'ii'"),
        ("ij,ki->ij", "extents 2 and 3 for 'i'"),
    ],
)
def test_equations_that_do_not_fit_are_not_compiled(equation: str, message: str) -> None:
    inputs = [np.zeros((2, 3), "float32"), np.zeros((3, 3), "float32")]
    with pytest.raises(NotCompilableError, match=message):
        run("Einsum", inputs, equation=equation)
