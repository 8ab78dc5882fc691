"""Copies of arrays: how many there are, what is in them, and which one a run uses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.conftest import AddressOf, KernelMaker
from tilewright import te
from tilewright.errors import KernelArgumentError, UsageError
from tilewright.runtime import Argument, Kernel, KernelSpec, PackSpec
from tilewright.runtime.build import build
from tilewright.runtime.copies import Copies, new_block
from tilewright.schedule import Schedule
from tilewright.te import Task

W = np.array([1, 2, 3], np.float32)
B = np.arange(5, dtype=np.float32)


@pytest.fixture
def note(make_kernel: KernelMaker) -> Kernel:
    inputs = (Argument("W", "float32", (3,), is_constant=True), Argument("b", "float32", (5,), is_constant=True))
    return make_kernel("note", inputs, (Argument("log", "int64", (9,)),))


def places(kernel: Kernel, *numbers: int) -> list[int]:
    """Where each run found W, in bytes from the first."""
    log = np.zeros(9, np.int64)
    for number in numbers:
        assert kernel.time(number=number, out=log) > 0
    found = [int(address) for address in log[1 : 1 + log[0]]]
    assert min(found) > 0
    return [address - found[0] for address in found]


def test_runs_read_the_copies_in_turn_and_go_on_where_the_last_ended(note: Kernel) -> None:
    copied = note.bind(W=W, b=B).with_copies(new_block(128 * 3 + 100))
    assert places(copied, 2, 1, 5) == [0, 128, 256, 0, 128, 256, 0, 128]


def test_a_block_that_holds_one_copy_or_less(note: Kernel) -> None:
    bound = note.bind(W=W, b=B)
    assert bound.bound_bytes == 128
    assert places(bound.with_copies(new_block(128)), 3) == [0, 0, 0]
    with pytest.raises(UsageError, match="the arrays need 128 bytes, and the block has 127; make it larger"):
        bound.with_copies(new_block(127))


def test_without_copies_the_place_is_one(note: Kernel) -> None:
    assert places(note.bind(W=W, b=B), 4) == [0, 0, 0, 0]


def test_a_constant_that_is_not_bound_is_not_copied(note: Kernel) -> None:
    copied = note.bind(b=B).with_copies(new_block(1024))
    log = np.zeros(9, np.int64)
    copied.time(W, number=3, out=log)
    assert log[1:4].tolist() == [W.ctypes.data] * 3
    assert note.bound_bytes == 0
    with pytest.raises(KernelArgumentError, match="kernel note: there is nothing to copy; bind its constants first"):
        note.with_copies(new_block(1024))


def test_every_copy_has_the_constants_as_the_kernel_reads_them(address_of: AddressOf) -> None:
    packed = PackSpec(address_of("pack"), (4, 3), "float32", 0, 0, nbytes=100)  # more than its elements need
    inputs = (
        Argument("X", "float32", (3,)),
        Argument("W", "float32", (3, 4), is_constant=True, packed=packed),
        Argument("b", "float32", (4,), is_constant=True),
    )
    spec = KernelSpec("dense", inputs, (Argument("Y", "float32", (4,)),), address_of("dense"), 0, 0, 1)
    w, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones(4, np.float32)
    block = new_block(5 * (128 + 64))
    copied = Kernel(spec).bind(W=w, b=b).with_copies(block)
    for copy in block.reshape(5, -1):
        np.testing.assert_array_equal(copy[:48].view(np.float32).reshape(4, 3), w.T)
        np.testing.assert_array_equal(copy[128 : 128 + 16].view(np.float32), b)
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(copied(x), x @ w + b)
    y = np.zeros(4, np.float32)
    copied.time(x, number=7, out=y)
    np.testing.assert_array_equal(y, x @ w + b)


def test_inputs_and_outputs_have_copies_of_their_own_number(make_kernel: KernelMaker) -> None:
    inputs = (Argument("W", "float32", (3,)), Argument("b", "float32", (5,), is_constant=True))
    note = make_kernel("note", inputs, (Argument("log", "int64", (9,)),))
    bound = note.bind(b=B).with_copies(new_block(64 * 2))
    given = Copies({"W": W}, new_block(64 * 3))
    log = np.zeros(9, np.int64)
    bound.time(given.first["W"], number=4, out=log, copies=given)
    bound.time(given.first["W"], number=2, out=log, copies=given)
    assert [int(place) - int(log[1]) for place in log[1:7]] == [0, 64, 128, 0, 64, 128]


def test_copies_of_outputs_are_written_in_turn(make_kernel: KernelMaker) -> None:
    inputs = (Argument("W", "float32", (3,)), Argument("b", "float32", (5,)))
    note = make_kernel("note", inputs, (Argument("log", "int64", (9,)),))
    block = new_block(128 * 3)
    block[:] = 0
    given = Copies({"log": np.zeros(9, np.int64)}, block)
    note.time(W, B, number=4, out=given.first["log"], copies=given)
    assert [int(copy[:8].view(np.int64)[0]) for copy in block.reshape(3, 128)] == [2, 1, 1]


@pytest.mark.parametrize("size", [1, 63, 64, 4096, 4097, 30_011])
def test_what_is_produced_keeps_its_values(size: int) -> None:
    """Whatever its size, and whatever the number of threads."""
    x = np.arange(size, dtype=np.float32)
    a = te.placeholder((size,), name="a")
    task = Task([a], [te.compute((size,), lambda i: a[i] * 2.0, name="b")])
    schedule = Schedule(task)
    schedule["b"].parallel(schedule["b"].loops[0])
    kernel = build(schedule, "llvm -mcpu=native", threads=3)
    copies = Copies({"a": x, "b": np.zeros_like(x)}, new_block(3 * 2 * (4 * size + 64)), produced=["a"])
    seconds = kernel.time(copies.first["a"], number=7, out=copies.first["b"], copies=copies)
    assert seconds > 0
    np.testing.assert_array_equal(copies.first["a"], x)
    np.testing.assert_array_equal(copies.first["b"], 2 * x)


def test_copies_begin_on_a_cache_line() -> None:
    copies = Copies({"W": W, "b": B}, new_block(1000))
    assert copies.count == 7
    assert copies.stride == 128
    assert all(array.ctypes.data % 64 == 0 for array in copies.first.values())


@pytest.mark.parametrize(
    ("turns", "error"),
    [
        ((0, ((2, 0, 0), (2, 0, 0))), ValueError),
        ((-1, ((2, 0, 0),) * 3), ValueError),
        ((0, ((0, 0, 0),) * 3), ValueError),
        ((0, ((2, 0, -1),) * 3), ValueError),
        ((0, (2, 2, 2)), ValueError),
        ((0, ((2, 0),) * 3), ValueError),
        ((0, 2), TypeError),
        (5, TypeError),
        ((0, (("a", 0, 0),) * 3), ValueError),
    ],
)
def test_turns_that_make_no_sense_are_refused(note: Kernel, turns: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        note._native.time((W, B, np.zeros(9, np.int64)), 1, turns)  # type: ignore[arg-type]
