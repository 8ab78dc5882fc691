"""Building expressions: the types they get, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from tilewright import ExpressionError, te

F = te.placeholder((4, 8), name="F")
H = te.placeholder((4, 8), "float16", name="H")
N = te.placeholder((4, 8), "int32", name="N")
S = te.placeholder((4, 8), "int8", name="S")
M = te.placeholder((4, 8), "bool", name="M")
i = te.reduce_axis(4, name="i")
j = te.reduce_axis(8, name="j")
f, h, n, s, m = F[i, j], H[i, j], N[i, j], S[i, j], M[i, j]

TYPES: list[tuple[Callable[[], te.Expr], str]] = [
    (lambda: f + 1, "float32"),
    (lambda: 1 - f, "float32"),
    (lambda: h * 2.5, "float16"),
    (lambda: h * f, "float32"),
    (lambda: n + 1, "int32"),
    (lambda: n + 1.5, "float32"),
    (lambda: n + i, "int64"),
    (lambda: n + True, "int32"),
    (lambda: s + n, "int32"),
    (lambda: n * h, "float16"),
    (lambda: 2 / f, "float32"),
    (lambda: 2.0**f, "float32"),
    (lambda: 7 // n, "int32"),
    (lambda: 7 % n, "int32"),
    (lambda: -n, "int32"),
    (lambda: abs(s), "int8"),
    (lambda: te.abs(f), "float32"),
    (lambda: f < n, "bool"),
    (lambda: n >= 0, "bool"),
    (lambda: te.equal(n, 3), "bool"),
    (lambda: te.not_equal(m, True), "bool"),
    (lambda: (f > 0) & m, "bool"),
    (lambda: True | m, "bool"),
    (lambda: ~m, "bool"),
    (lambda: te.logical_not(m), "bool"),
    (lambda: te.logical_and(m, f > 0, n < 3), "bool"),
    (lambda: te.logical_or(m), "bool"),
    (lambda: te.maximum(f, 0), "float32"),
    (lambda: te.minimum(3, n), "int32"),
    (lambda: te.floordiv(n, 2), "int32"),
    (lambda: te.floormod(i, 2), "int64"),
    (lambda: te.pow(f, 2), "float32"),
    (lambda: te.exp(2.0), "float32"),
    (lambda: te.exp(h), "float16"),
    (lambda: te.select(m, f, 0), "float32"),
    (lambda: te.select(m, 1, 2), "int64"),
    (lambda: te.select(m, n, f), "float32"),
    (lambda: te.cast(f, "int8"), "int8"),
    (lambda: te.cast(3, "uint8"), "uint8"),
    (lambda: f + np.float64(0.5), "float32"),
    (lambda: n + np.int64(5), "int32"),  # type: ignore[operator]
    (lambda: te.sum(f, axis=j), "float32"),
    (lambda: te.max(m, axis=[i, j]), "bool"),
    (lambda: te.argmax(f, axis=(i, j)), "int64"),
    (lambda: te.argmin(n, axis=i), "int64"),
]


@pytest.mark.parametrize(("build", "dtype"), TYPES)
def test_an_expression_has_the_promoted_type(build: Callable[[], te.Expr], dtype: str) -> None:
    assert build().dtype == dtype


@pytest.mark.parametrize("name", te.FLOAT_FUNCTIONS)
def test_float_functions_keep_the_type_and_refuse_integers(name: str) -> None:
    function = getattr(te, name)
    assert function(f).dtype == "float32"
    with pytest.raises(ExpressionError, match=rf"{name} needs a float, got int32 in `N\[i, j\]`; use te.cast"):
        function(n)


ERRORS: list[tuple[Callable[[], object], str]] = [
    (lambda: bool(f > 0), r"`F\[i, j\] > 0.0` has no truth value"),
    (lambda: f + "x", "cannot use 'x' of type str"),  # type: ignore[operator]
    (lambda: f + F, "of type Tensor in an expression"),  # type: ignore[operator]
    (lambda: s + 300, r"constant 300 does not fit int8 \(-128 to 127\)"),
    (lambda: m + m, "arithmetic on bools"),
    (lambda: n / 2, "div of .* needs floats, got int32; use // or te.cast"),
    (lambda: n**2, "pow of .* needs floats, got int32"),
    (lambda: f // 2, "floordiv of .* needs integers, got float32; use te.floor"),
    (lambda: f % 2.0, "mod of .* needs integers, got float32"),
    (lambda: n & n, "& and | need bools, got int32"),
    (lambda: te.logical_or(n, m), "logical_or needs bools, got int32"),
    (lambda: ~n, "~ needs a bool, got int32"),
    (lambda: -m, "neg of the bool `M"),
    (lambda: te.abs(m), "abs of the bool `M"),
    (lambda: te.select(n, f, f), "condition of select must be a bool, got int32"),
    (lambda: te.cast(f, "float8"), "unknown dtype 'float8'"),
    (lambda: te.cast(2.5, "int32"), "2.5 is not a whole number"),
    (lambda: te.constant(float("nan"), "int32"), "nan is not a whole number"),
    (lambda: te.constant(1, "int3"), "unknown dtype 'int3'"),
    (lambda: te.sum(m, axis=j), "te.sum of a bool"),
    (lambda: te.sum(f, axis=[]), "te.sum needs at least one reduce axis"),
    (lambda: te.sum(f, axis=[j, j]), "te.sum over j, j names the same reduce axis twice"),
    (lambda: te.max(f, 0.0), r"te.max reduces over reduce axes, got `0.0`; .* te.maximum\(a, b\)"),  # type: ignore[arg-type]
    (lambda: te.max(f, n), r"te.max reduces over reduce axes, got `N\[i, j\]`"),  # type: ignore[arg-type]
    (lambda: te.argmax(f, []), "te.argmax needs at least one reduce axis"),
]


@pytest.mark.parametrize(("build", "message"), ERRORS)
def test_meaningless_expressions_are_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        build()


def test_nodes_are_immutable_and_compare_by_identity() -> None:
    with pytest.raises(AttributeError):
        f.dtype = "int8"  # type: ignore[misc]
    assert F[i, j] != F[i, j]
    assert len({f, f}) == 1


def test_argmax_over_several_axes_keeps_a_row_major_index() -> None:
    reduction = te.argmax(f, axis=[i, j])
    assert isinstance(reduction, te.Reduce)
    assert str(reduction.values[1]) == "i * 8 + j"


def test_nodes_survive_pickling() -> None:
    copy = pickle.loads(pickle.dumps(te.sum(f * 2.0, axis=j)))
    assert str(copy) == "sum(F[i, j] * 2.0, axis=[j])"
    assert copy.axes[0] is copy.values[0].a.indices[1]


def test_repr_is_short() -> None:
    assert repr(f + 1) == "<Binary float32: F[i, j] + 1.0>"
    assert repr(F) == "<Tensor F: float32[4, 8]>"
