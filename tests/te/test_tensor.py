"""Making tensors: shapes, names and bodies, and the errors that name the tensor and the axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright import ExpressionError, te

A = te.placeholder((4, 8), name="A")
V = te.placeholder((8,), name="V")
I = te.placeholder((4,), "int32", name="I")  # noqa: E741
k = te.reduce_axis(8, name="k")


def test_a_compute_takes_shape_type_and_axes_from_its_function() -> None:
    C = te.compute((2, 3), lambda y, x: te.cast(y * 3 + x, "float32"), name="C")
    assert (C.shape, C.dtype, C.ndim, C.is_placeholder) == ((2, 3), "float32", 2, False)
    assert [(a.name, a.extent) for a in C.axes] == [("y", 2), ("x", 3)]


def test_a_variadic_function_gets_numbered_axes() -> None:
    assert str(te.compute((4, 8), lambda *i: A[i] + 1.0, name="C")) == "C[i0, i1] = A[i0, i1] + 1.0"


def test_dtype_casts_the_body() -> None:
    assert str(te.compute(4, lambda i: I[i] * 2, name="C", dtype="float32")) == "C[i] = float32(I[i] * 2)"
    assert str(te.compute(4, lambda i: 1, name="C", dtype="float32")) == "C[i] = 1.0"


def test_a_tensor_may_have_no_dimensions() -> None:
    S = te.compute((), lambda: te.sum(V[k], axis=k), name="S")
    assert S.shape == ()
    assert str(te.compute(4, lambda i: S[()] + 1.0, name="T")) == "T[i] = S[()] + 1.0"


def _compute(function: Callable[..., te.ExprLike], extent: int = 4) -> Callable[[], te.Tensor]:
    return lambda: te.compute((extent,), function, name="C")


other = te.compute((4,), lambda q: V[q], name="other").axes[0]
k_twin = te.reduce_axis(8, name="k")
named_i = te.reduce_axis(8, name="i")
loose = te.Var("int64", "v")


def _chain(e: te.Expr, length: int) -> te.Expr:
    for _ in range(length):
        e = e + 1
    return e


ERRORS: list[tuple[Callable[[], object], str]] = [
    (lambda: te.placeholder((4, 0), name="A"), "dimension 1 of A is 0; an extent must be at least 1"),
    (lambda: te.placeholder((4, 2.5), name="A"), "dimension 1 of A is 2.5"),  # type: ignore[arg-type]
    (lambda: te.placeholder((True,), name="A"), "dimension 0 of A is True"),
    (lambda: te.placeholder((2**31,), name="A"), "below 2\\*\\*31"),
    (lambda: te.placeholder((2**30, 2**30), "float64", name="A"), "less than 2\\*\\*63 bytes, .*; A is float64"),
    (lambda: te.compute((2**30, 2**30, 2**3), lambda i, j, m: i, name="C"), "C is int64"),
    (_compute(lambda i: te.sum(V[i], axis=[te.reduce_axis(2**30, name=n) for n in "kmn"])), "reduced over"),
    (lambda: te.placeholder((1,) * 65, name="A"), "64 dimensions and reduce axes at most, got 65 of A"),
    (
        _compute(lambda i: _chain(V[i], 400)),
        "of compute C must be at most 400 deep; give a part of it a compute of its own",
    ),
    (_compute(lambda i: V[_chain(i, 390) % 8]), "of compute C is nested too deeply; give a part of it a compute"),
    (lambda: te.placeholder((4,), name="A B"), "name 'A B' is not an identifier"),
    (lambda: te.placeholder((4,), name=3), "name 3 is not an identifier"),  # type: ignore[arg-type]
    (lambda: te.placeholder((4,), "float", name="A"), "unknown dtype 'float'"),
    (lambda: te.reduce_axis(0), "reduce axis k is 0"),
    (lambda: te.reduce_axis((1, 4)), "reduce axis k starts at 1; axes start at 0"),
    (lambda: A[0], r"tensor A has 2 dimensions \(4, 8\), but 1 indices were given"),
    (lambda: A[0, 8], r"index 1 of tensor A is 8, outside 0..7"),
    (lambda: A[-1, 0], r"index 0 of tensor A is -1, outside 0..3"),
    (lambda: A[0, 1.0], "index 1 of tensor A is `1.0` of type float32; an index must be an integer"),
    (lambda: list(A), "tensor A cannot be iterated"),
    (lambda: te.compute((4, 4), lambda i: V[i], name="C"), "compute C has 2 dimensions, but its function takes 1 axes"),
    (lambda: te.compute(4, lambda *, i: V[i], name="C"), "compute C gives its function the axes by position"),
    (lambda: te.placeholder({8, 4}, name="X"), "the shape of X is {8, 4}; it must be"),  # type: ignore[arg-type]
    (lambda: te.placeholder(b"ab", name="X"), "the shape of X is b.ab.; it must be"),
    (_compute(lambda i: V[i], extent=9), r"index `i` of dimension 0 of tensor V reaches 0..8, .* extent 8 \(0..7\)"),
    (_compute(lambda i: A[i, i + 5]), r"index `i \+ 5` of dimension 1 of tensor A reaches 5..8"),
    (_compute(lambda i: V[i - 1]), r"`i - 1` of dimension 0 of tensor V reaches -1..2"),
    (_compute(lambda i: te.sum(V[i * 2 + k], axis=k)), r"`i \* 2 \+ k` .* tensor V reaches 0..13"),
    (_compute(lambda i: V[-i]), r"`-i` .* tensor V reaches -3..0"),
    (_compute(lambda i: te.select(V[i + 6] > 0, 1.0, 0.0)), r"tensor V reaches 6..9"),
    (_compute(lambda i: A[i - i % 2, i // 2 * 8]), r"`i // 2 \* 8` .* tensor A reaches 0..8"),
    (_compute(lambda i: te.sum(V[k], axis=k) + 1.0), r"uses the reduction `sum\(V\[k\], axis=\[k\]\)` inside"),
    (_compute(lambda i: te.max(te.sum(V[k], axis=k), axis=k)), "inside a larger expression"),
    (
        lambda: te.compute((4,), lambda i: te.sum(V[k], axis=k), name="C", dtype="float64"),
        r"casts its reduction .* te.sum\(te.cast\(x, 'float64'\), axis=...\)",
    ),
    (_compute(lambda i: V[k]), r"reads `V\[k\]`: the index of tensor V uses k, a reduce axis outside its reduction"),
    (_compute(lambda i: te.cast(k, "float32")), "compute C uses `k`.* a reduce axis outside its reduction"),
    (_compute(lambda i: V[other]), r"reads `V\[q\]`: the index of tensor V uses q, an axis of another compute"),
    (_compute(lambda i: V[loose]), "uses v, which is not an axis"),
    (_compute(lambda i: te.sum(V[k] * V[k_twin], axis=[k, k_twin])), "compute C has two reduce axes called k"),
    (_compute(lambda i: te.sum(V[named_i], axis=named_i)), "compute C has an axis and a reduce axis called i"),
]


@pytest.mark.parametrize(("build", "message"), ERRORS)
def test_errors_name_the_tensor_and_the_axis(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        build()


ALLOWED: list[Callable[[te.Axis], te.ExprLike]] = [
    lambda i: te.select(i >= 1, V[i - 1], 0.0),
    lambda i: te.select(i < 2, A[0, i], V[i + 6]),
    lambda i: V[I[i]],
    lambda i: V[te.select(i < 2, i, 7 - i)],
    lambda i: V[i - i % 2],
    lambda i: V[i * 3 - i],
    lambda i: V[te.minimum(i * 5, 7)],
    lambda i: V[te.maximum(i - 2, 0)],
    lambda i: V[te.cast(te.cast(i, "int8") * 2, "int32")],
    lambda i: V[(i * 7 + 3) % 8],
    lambda i: V[i // 4 + 7],
]


@pytest.mark.parametrize("function", ALLOWED)
def test_reads_that_stay_within_or_are_guarded_are_allowed(function: Callable[[te.Axis], te.ExprLike]) -> None:
    te.compute((4,), lambda i: function(i), name="C")


def test_a_read_shared_by_a_guarded_and_an_open_place_is_checked_in_the_open_one() -> None:
    def body(i: te.Axis) -> te.Expr:
        read = V[i + 5]
        return te.select(i < 3, read, 0.0) + read

    with pytest.raises(ExpressionError, match="tensor V reaches 5..8"):
        te.compute((4,), body, name="C")


def test_extents_may_be_numpy_integers() -> None:
    assert te.placeholder(np.array([2, 3]), name="A").shape == (2, 3)  # type: ignore[arg-type]
