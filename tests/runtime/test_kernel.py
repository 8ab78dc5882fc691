"""Calling kernels: inputs by position and name, outputs, constants bound and packed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.runtime.conftest import AddressOf, KernelMaker
from tilewright.errors import KernelArgumentError
from tilewright.runtime import Argument, Kernel, KernelSpec, PackSpec

X = np.array([1, 2, 3], np.float32)
W = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.array([10, 20, 30, 40], np.float32)


def ones(*shape: int) -> npt.NDArray[np.float32]:
    return np.ones(shape, np.float32)


@pytest.fixture
def dense(address_of: AddressOf) -> Kernel:
    """Y = X W + b with constant W, packed, and constant b, as it comes."""
    packed = PackSpec(address_of("pack"), (4, 3), "float32", 0, 0, nbytes=48)
    inputs = (
        Argument("X", "float32", (3,)),
        Argument("W", "float32", (3, 4), is_constant=True, packed=packed),
        Argument("b", "float32", (4,), is_constant=True),
    )
    return Kernel(KernelSpec("dense", inputs, (Argument("Y", "float32", (4,)),), address_of("dense"), 0, 0, 1))


@pytest.fixture
def halves(make_kernel: KernelMaker) -> Kernel:
    outputs = (Argument("low", "float32", (3,)), Argument("high", "float32", (3,)))
    return make_kernel("halves", (Argument("X", "float32", (6,)),), outputs)


def test_inputs_are_given_by_position_or_name(make_kernel: KernelMaker, dense: Kernel) -> None:
    expected = X @ W + B
    for y in [dense(X, W, B), dense(X, W, b=B), dense(b=B, X=X, W=W)]:
        assert np.array_equal(y, expected)


@pytest.mark.parametrize(
    ("inputs", "named", "message"),
    [
        ((X, W), {}, "kernel dense: input b was not given; it takes 3 inputs: X, W, b"),
        ((X, W, B, B), {}, "kernel dense: got 4 inputs by position; it takes 3 inputs: X, W, b"),
        ((X, W), {"X": X}, "kernel dense: input X was given by position and name; it takes 3 inputs: X, W, b"),
        ((X, W), {"bias": B}, "kernel dense: there is no input bias; it takes 3 inputs: X, W, b"),
    ],
)
def test_wrong_sets_of_inputs_are_explained(dense: Kernel, inputs: Any, named: Any, message: str) -> None:
    with pytest.raises(KernelArgumentError) as error:
        dense(*inputs, **named)
    assert str(error.value) == message


def test_out_is_written_and_returned(add: Kernel) -> None:
    c = np.zeros((4, 6), np.float32)
    assert add(ones(4, 6), ones(4, 6), out=c) is c
    assert (c == 2).all()


def test_several_outputs_are_a_tuple(halves: Kernel) -> None:
    x = np.arange(6, dtype=np.float32)
    low, high = halves(x)
    assert low.tolist() == [0, 1, 2]
    assert high.tolist() == [3, 4, 5]
    mine = (np.zeros(3, np.float32), np.zeros(3, np.float32))
    returned = halves(x, out=mine)
    assert returned[0] is mine[0]
    assert returned[1] is mine[1]
    assert mine[1].tolist() == [3, 4, 5]


def test_the_wrong_number_of_outputs_is_explained(halves: Kernel) -> None:
    message = r"kernel halves: out must be 2 arrays, got 1; pass them as a tuple, in this order: low, high"
    with pytest.raises(KernelArgumentError, match=message):
        halves(ones(6), out=ones(3))


def test_bind_leaves_a_kernel_of_the_remaining_inputs(dense: Kernel) -> None:
    bound = dense.bind(W=W)
    assert [a.name for a in bound.inputs] == ["X", "b"]
    assert [a.name for a in dense.inputs] == ["X", "W", "b"]
    assert np.array_equal(bound(X, B), X @ W + B)
    bound_further = bound.bind(b=B)
    assert np.array_equal(bound_further(X), X @ W + B)
    assert np.array_equal(dense.bind(b=B, W=W)(X=X), X @ W + B)


def test_a_packed_constant_is_a_copy_and_a_plain_one_a_reference(dense: Kernel) -> None:
    w, b = W.copy(), B.copy()
    bound = dense.bind(W=w, b=b)
    w[:] = 0
    b[:] = 1
    assert np.array_equal(bound(X), X @ W + 1)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"Q": W}, "kernel dense: cannot bind Q: there is no such input; bind one of: W, b"),
        (
            {"X": X},
            "kernel dense: cannot bind X: it is not a constant; declare it with te.placeholder(..., constant=True); ",
        ),
        ({"W": W.T}, "kernel dense: input W must have shape (3, 4), got (4, 3); "),
        ({"W": W.astype(np.float64)}, "kernel dense: input W must be of type float32, got float64; "),
        ({"b": X}, "kernel dense: input b must have shape (4,), got (3,); "),
        (
            {"b": [1, 2, 3, 4]},
            "kernel dense: input b must be a NumPy array or have __dlpack__, got [1, 2, 3, 4] of type list",
        ),
    ],
)
def test_wrong_constants_are_explained(dense: Kernel, constants: Any, message: str) -> None:
    with pytest.raises(KernelArgumentError) as error:
        dense.bind(**constants)
    assert str(error.value).startswith(message)


def test_a_constant_is_bound_once(dense: Kernel) -> None:
    bound = dense.bind(W=W, b=B)
    message = "kernel dense: cannot bind W: it is bound already; this kernel has no constants left to bind"
    with pytest.raises(KernelArgumentError, match=message):
        bound.bind(W=W)
    with pytest.raises(KernelArgumentError, match="kernel dense: got 2 inputs by position; it takes 1 inputs: X"):
        bound(X, W)


def test_an_output_must_not_overlap_a_bound_constant(dense: Kernel) -> None:
    b = B.copy()
    with pytest.raises(KernelArgumentError, match="output Y must not share memory .* overlaps input b"):
        dense.bind(W=W, b=b)(X, out=b)


def test_time_counts_the_runs_and_writes_the_output(make_kernel: KernelMaker, dense: Kernel) -> None:
    counts = np.zeros(9, np.int32)
    kernel = make_kernel("count", (Argument("extent", "int64", (1,)),), (Argument("counts", "int32", (9,)),))
    assert 0 < kernel.time(np.array([9]), out=counts, number=25) < 1
    assert (counts == 25).all()
    assert dense.time(X, W, B, number=3) > 0
    assert dense.bind(W=W).time(X, b=B, number=3) > 0


def test_time_checks_what_a_call_checks(add: Kernel) -> None:
    with pytest.raises(KernelArgumentError, match="kernel add: input A must have shape"):
        add.time(ones(4), ones(4, 6), number=1)
    with pytest.raises(ValueError, match="number must be at least 1, got 0"):
        add.time(ones(4, 6), ones(4, 6), number=0)


def test_repr_shows_the_signature(dense: Kernel) -> None:
    assert repr(dense.bind(W=W)) == "<Kernel dense(X: float32[3], b: float32[4]) -> Y: float32[4]>"


def test_the_code_lives_as_long_as_its_kernels(address_of: AddressOf) -> None:
    class Code:
        pass

    code = Code()
    is_alive = weakref.ref(code)
    x, y = Argument("X", "float32", (6,), is_constant=True), Argument("Y", "float32", (6,))
    kernel = Kernel(KernelSpec("copy", (x,), (y,), address_of("copy4"), 0, 0, 1, keepalive=code))
    bound = kernel.bind(X=ones(6))
    del code, kernel
    gc.collect()
    assert is_alive() is not None
    assert (bound() == 1).all()
    del bound
    gc.collect()
    assert is_alive() is None


def test_more_arguments_than_fit_on_the_stack(make_kernel: KernelMaker) -> None:
    inputs = tuple(Argument(f"X{i}", "float32", (6,)) for i in range(40))
    kernel = make_kernel("fail", inputs, (Argument("Y", "float32", (6,)),))
    with pytest.raises(KernelArgumentError, match=r"input X39 must have shape \(6,\), got \(5,\)"):
        kernel(*[ones(6)] * 39, ones(5))
