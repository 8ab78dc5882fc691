"""Building expressions: the types they get, and what is refused."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

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
    (lambda: te.unary("melt", f), "unknown operator 'melt'; use one of: abs, acos"),
    (lambda: te.binary("sum", f, f), "unknown operator 'sum'; use one of: add, and"),
    (lambda: te.reduce("add", (f,), j), "unknown operator 'add'; use one of: argmax"),
    (lambda: te.reduce("max", (f, f), j), "te.max reduces 1 value, got 2"),
    (lambda: te.reduce("argmax", (f,), j), "te.argmax reduces 2 values, got 1"),
    (lambda: te.reduce("argmax", (f, n), j), "keeps an index, which must be an int64, got int32"),
    (lambda: bool(f > 0), r"`F\[i, j\] > 0.0` has no truth value"),
    (lambda: f + "x", "cannot use 'x' of type str"),  # type: ignore[operator]
    (lambda: f + F, "of type Tensor in an expression"),
    (lambda: s + 300, r"constant 300 does not fit int8 \(-128 to 127\)"),
    (lambda: n + 10**400, "constant of 1329 bits does not fit int32"),
    (lambda: f * 10**5000, "constant of 16610 bits is too large for a number of type float32"),
    (lambda: te.constant(float("inf"), "int32"), "constant inf is not a whole number"),
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


# Of no type, so that they can be used as nothing else is.
anything: Any = f
mask: Any = m
row: Any = i
axis: Any = j
tensor: Any = te.placeholder((8,), name="V")

MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: np.exp(anything), r"`F\[i, j\]` cannot be given to np.exp; use te.exp of an element"),
    (lambda: np.arctan(anything), "np.arctan; use te.atan of"),
    (lambda: np.maximum(anything, 0), "np.maximum; use te.maximum of"),
    (lambda: np.cbrt(anything), "np.cbrt; write it with what te has: .* exp, log,"),
    (lambda: np.sum(anything), r"np.add.reduce; use te.sum\(x, axis=k\)"),
    (lambda: np.max(tensor), r"tensor V cannot be given to np.maximum.reduce; use te.max\(x, axis=k\)"),
    (lambda: np.sin(tensor), r"tensor V cannot be given to np.sin; use te.sin of an element, as in te.compute"),
    (lambda: np.where(anything > 0, anything, 0), "cannot become an array .* te.select for np.where"),
    (lambda: np.ones(3) * anything, "cannot use array"),
    (lambda: math.exp(anything), "has no value while it is being built, .*; use te.exp"),
    (lambda: math.floor(anything), "has no value while it is being built"),
    (lambda: float(anything), "has no value .* te.cast for another type"),
    (lambda: int(anything), "has no value"),
    (lambda: range(axis), "`j` has no value"),
    (lambda: [1, 2, 3][axis], "`j` has no value"),
    (lambda: float(tensor), "tensor V has no value"),
    (lambda: anything and anything, r"no truth value .* & \| ~ for and, or, not"),
    (lambda: 1 if anything > 0 else 2, r"no truth value .* use te.select\(cond, a, b\) for if"),
    (lambda: max(anything, 0), "no truth value .* te.maximum and te.minimum for max and min"),
    (lambda: 0 < anything < 1, "no truth value"),
    (lambda: anything[j], "is one element and has no index; give all indices together"),
    (lambda: F[i], r"has 2 dimensions \(4, 8\), but 1 indices were given; give one for each, as in F\[i, j\]"),
    (lambda: len(anything), "has no len"),
    (lambda: list(anything), "cannot be iterated"),
    (lambda: len(tensor), "tensor V has no len; sizes are in the shape"),
    (lambda: list(tensor), "tensor V cannot be iterated; te.compute goes over elements"),
    (lambda: sum(tensor), "tensor V cannot be iterated; .* te.reduce_axis makes an axis to sum over"),
    (lambda: 3 in tensor, "tensor V cannot be iterated"),
    (lambda: tensor.__setitem__(0, 1.0), "tensor V cannot be written to"),
    (lambda: tensor + 1, r"tensor V has no arithmetic .* te.compute\(\(8,\), lambda i: V\[i\] ...\)"),
    (lambda: 2 * tensor, "tensor V has no arithmetic"),
    (lambda: np.float32(2) * tensor, "tensor V cannot be given to np.multiply"),
    (lambda: -tensor, "tensor V has no arithmetic"),
    (lambda: tensor @ tensor, "tensor V has no arithmetic"),
    (lambda: tensor > 0, "tensor V has no arithmetic"),
    (lambda: axis << 1, "none of the operators << >>"),
    (lambda: round(anything), "nor round and divmod"),
    (lambda: te.cast(tensor, "float64"), "a constant is a number, got <Tensor V"),
    (lambda: te.constant("x", "float32"), "a constant is a number, got 'x'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "message"), MISTAKES)
def test_what_a_number_or_an_array_can_do_is_refused_with_what_to_write(
    build: Callable[[], object], message: str
) -> None:
    with pytest.raises(ExpressionError, match=message):
        build()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.float32(2) * anything, "2.0 * F[i, j]"),
        (anything * np.float64(2), "F[i, j] * 2.0"),
        (np.int64(2) + row, "2 + i"),
        (np.float32(2) - anything, "2.0 - F[i, j]"),
        (np.float32(1) / anything, "1.0 / F[i, j]"),
        (np.float32(2) ** anything, "pow(2.0, F[i, j])"),
        (np.int64(9) // row, "9 // i"),
        (np.int64(9) % row, "9 % i"),
        (np.float32(2) < anything, "2.0 < F[i, j]"),
        (np.float32(2) >= anything, "2.0 >= F[i, j]"),
        (anything <= np.float32(2), "F[i, j] <= 2.0"),
        (np.bool_(True) & mask, "True & M[i, j]"),
        (np.array(2.0) * anything, "2.0 * F[i, j]"),
    ],
    ids=str,
)
def test_numpy_numbers_are_operands_on_either_side(left: te.Expr, right: str) -> None:
    assert str(left) == right


def test_nodes_and_numpy_numbers_compare_as_objects() -> None:
    assert (f == np.float32(2)) is False
    assert (np.float32(2) != f) is True


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
