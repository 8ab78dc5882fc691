"""What a kernel accepts as an argument, and what it says about what it does not."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.runtime.conftest import KernelMaker
from tilewright.errors import KernelArgumentError, TilewrightError
from tilewright.runtime import Argument, Kernel
from tilewright.runtime._native import NativeKernel

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
BYTES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
STORAGE = {name: "uint16" if name == "bfloat16" else name for name in DTYPES}


def ones(*shape: int) -> npt.NDArray[np.float32]:
    return np.ones(shape, np.float32)


def unaligned(shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    count = int(np.prod(shape))
    return np.zeros(4 * count + 1, np.uint8)[1:].view(np.float32).reshape(shape)


def copy_kernel(make_kernel: KernelMaker, dtype: str, shape: tuple[int, ...] = (2, 3)) -> Kernel:
    return make_kernel(f"copy{BYTES[dtype]}", (Argument("X", dtype, shape),), (Argument("Y", dtype, shape),))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_passed_as_it_is(make_kernel: KernelMaker, dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(STORAGE[dtype])
    y = copy_kernel(make_kernel, dtype)(x)
    assert y.dtype == x.dtype
    assert (y == x).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "other", [*DTYPES, "int16", "uint32", "uint64", "complex64", "S4", "datetime64[s]", "O", ">f4", ">i8"]
)
def test_no_other_dtype_is_accepted(make_kernel: KernelMaker, dtype: str, other: str) -> None:
    if other in (dtype, STORAGE[dtype]):
        return
    # The bits of bfloat16 are told by their storage.
    wrong = np.zeros((2, 3), STORAGE.get(other, other))
    with pytest.raises(KernelArgumentError, match=f"^kernel copy.: input X must be of type {dtype}, got ") as error:
        copy_kernel(make_kernel, dtype)(wrong)
    assert f"got {wrong.dtype};" in str(error.value)


def test_long_long_is_int64(make_kernel: KernelMaker) -> None:
    x = np.arange(6, dtype=np.longlong).reshape(2, 3)
    assert (copy_kernel(make_kernel, "int64")(x) == x).all()


def test_ml_dtypes_bfloat16_is_bfloat16(make_kernel: KernelMaker) -> None:
    import ml_dtypes

    x = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    y = np.zeros((2, 3), ml_dtypes.bfloat16)
    assert copy_kernel(make_kernel, "bfloat16")(x, out=y) is y
    assert (y == x).all()
    with pytest.raises(KernelArgumentError, match=r"input X must be of type float32, got bfloat16; "):
        copy_kernel(make_kernel, "float32")(x)
    with pytest.raises(KernelArgumentError, match=r"input X must be C-contiguous"):
        copy_kernel(make_kernel, "bfloat16")(np.ones((3, 2), ml_dtypes.bfloat16).T)
    with pytest.raises(KernelArgumentError, match=r"got float8_e5m2; "):
        copy_kernel(make_kernel, "bfloat16")(np.ones((2, 3), ml_dtypes.float8_e5m2))


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (
            ones(6, 4),
            "kernel add: input A must have shape (4, 6), got (6, 4); kernels are built for one shape: reshape ",
        ),
        (ones(24), "kernel add: input A must have shape (4, 6), got (24,); "),
        (ones(1, 4, 6), "kernel add: input A must have shape (4, 6), got (1, 4, 6); "),
        (np.float32(3), "kernel add: input A must have shape (4, 6), got (); "),
        (
            np.ones((4, 6)),
            "kernel add: input A must be of type float32, got float64; convert it first, with x.astype('float32')",
        ),
        (b"abc", "kernel add: input A must be of type float32, got the elements of a bytes; "),
        (
            ones(6, 4).T,
            "kernel add: input A must be C-contiguous, got strides of (4, 16) bytes for shape (4, 6); pass np.asc",
        ),
        (
            ones(4, 12)[:, ::2],
            "kernel add: input A must be C-contiguous, got strides of (48, 8) bytes for shape (4, 6); ",
        ),
        (
            ones(4, 6)[::-1],
            "kernel add: input A must be C-contiguous, got strides of (-24, 4) bytes for shape (4, 6); ",
        ),
        (
            np.broadcast_to(ones(1, 6), (4, 6)),
            "kernel add: input A must be C-contiguous, got strides of (0, 4) bytes for shape (4, 6); ",
        ),
        (unaligned((4, 6)), "kernel add: input A must be aligned to its element size of 4 bytes, got the address 0x"),
        (
            2.5,
            "kernel add: input A must be a NumPy array or have __dlpack__, got 2.5 of type float; pass np.asarray(x, ",
        ),
        ([1.0, 2.0], "kernel add: input A must be a NumPy array or have __dlpack__, got [1.0, 2.0] of type list; "),
        (None, "kernel add: input A must be a NumPy array or have __dlpack__, got None of type NoneType; "),
    ],
)
def test_a_wrong_input_is_named_with_rule_value_and_remedy(add: Kernel, a: Any, message: str) -> None:
    with pytest.raises(KernelArgumentError) as error:
        add(a, ones(4, 6))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (ones(4, 5), "kernel add: output C must have shape (4, 6), got (4, 5); "),
        (np.ones((4, 6)), "kernel add: output C must be of type float32, got float64; pass an array of that type"),
        (
            ones(6, 4).T,
            "kernel add: output C must be C-contiguous, got strides of (4, 16) bytes for shape (4, 6); pass a new ",
        ),
        (unaligned((4, 6)), "kernel add: output C must be aligned to its element size of 4 bytes, got the address 0x"),
        (
            np.frombuffer(bytes(96), np.float32).reshape(4, 6),
            "kernel add: output C must be writable, got a read-only array; pass a writable one, such as np.empty(",
        ),
        (3.0, "kernel add: output C must be a NumPy array or have __dlpack__, got 3.0 of type float; "),
    ],
)
def test_a_wrong_output_is_named_with_rule_value_and_remedy(add: Kernel, out: Any, message: str) -> None:
    with pytest.raises(KernelArgumentError) as error:
        add(ones(4, 6), ones(4, 6), out=out)
    assert str(error.value).startswith(message)


def test_a_read_only_input_is_accepted(add: Kernel) -> None:
    a = ones(4, 6)
    a.flags.writeable = False
    assert (add(a, a) == 2).all()


def test_the_second_argument_is_named_too(add: Kernel) -> None:
    with pytest.raises(KernelArgumentError, match="^kernel add: input B must have shape"):
        add(ones(4, 6), ones(4))


def test_inputs_may_share_memory(add: Kernel) -> None:
    a = ones(4, 6)
    assert (add(a, a) == 2).all()


@pytest.mark.parametrize("offset", [0, 1, 23])
def test_an_output_must_not_overlap_an_input(add: Kernel, offset: int) -> None:
    memory = ones(100)
    b = memory[:24].reshape(4, 6)
    out = memory[offset : offset + 24].reshape(4, 6)
    rule = "^kernel add: output C must not share memory with another argument, but overlaps input B; pass an array of "
    with pytest.raises(KernelArgumentError, match=rule):
        add(ones(4, 6), b, out=out)


def test_neighbours_in_memory_do_not_overlap(add: Kernel) -> None:
    memory = ones(72).reshape(3, 4, 6)
    add(memory[0], memory[2], out=memory[1])
    assert (memory[1] == 2).all()


def test_outputs_must_not_overlap_each_other(make_kernel: KernelMaker) -> None:
    outputs = (Argument("low", "float32", (3,)), Argument("high", "float32", (3,)))
    halves = make_kernel("halves", (Argument("X", "float32", (6,)),), outputs)
    memory = ones(5)
    with pytest.raises(KernelArgumentError, match="output high must not share memory .* but overlaps output low"):
        halves(ones(6), out=(memory[:3], memory[2:]))


def test_strides_of_single_elements_do_not_matter(make_kernel: KernelMaker) -> None:
    kernel = copy_kernel(make_kernel, "float32", (1, 6, 1))
    x = np.lib.stride_tricks.as_strided(ones(6), (1, 6, 1), (999, 4, 13))
    assert (kernel(x) == 1).all()


def test_zero_dimensional_arrays_are_arrays(address_of: Any) -> None:
    description = (("X", "float32", (), False), ("Y", "float32", (), True))
    kernel = NativeKernel("identity", address_of("fail"), description, 0, 0, 1, None)
    with pytest.raises(TilewrightError, match=r"^kernel identity: the compiled code returned status 7 instead of 0$"):
        kernel(np.float32(3), np.zeros((), np.float32))
    with pytest.raises(KernelArgumentError, match=r"input X must have shape \(\), got \(1,\)"):
        kernel(ones(1), np.zeros((), np.float32))


def test_other_buffers_are_accepted(make_kernel: KernelMaker) -> None:
    kernel = copy_kernel(make_kernel, "int32", (6,))
    assert list(kernel(array.array("i", range(6)))) == [0, 1, 2, 3, 4, 5]
    assert list(kernel((ctypes.c_int32 * 6)(*range(6)))) == [0, 1, 2, 3, 4, 5]
    assert list(kernel(np.arange(6, dtype=np.int32).data)) == [0, 1, 2, 3, 4, 5]


def test_arrays_are_not_kept_after_a_call(add: Kernel) -> None:
    memory = bytearray(96)
    add(np.frombuffer(memory, np.float32).reshape(4, 6), ones(4, 6))
    with pytest.raises(KernelArgumentError):
        add(np.frombuffer(memory, np.float32).reshape(4, 6), ones(3))
    memory.extend(b"refused while anything still holds the buffer")


def test_the_native_kernel_counts_its_arrays(add: Kernel, address_of: Any) -> None:
    native = NativeKernel("copy", address_of("copy4"), (("X", "float32", (6,), False),), 0, 0, 1, None)
    with pytest.raises(
        KernelArgumentError, match="^kernel copy: it takes 1 arrays, its inputs and then its outputs, got 2"
    ):
        native(ones(6), ones(6))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entry_address": 0}, "entry_address=0"),
        ({"num_threads": 0}, "num_threads=0"),
        ({"workspace_bytes": -1}, "workspace_bytes=-1"),
        ({"arguments": (("X", "float99", (6,), False),)}, "argument X has the unknown dtype 'float99'"),
        ({"arguments": (("X", "float32", (6, -1), False),)}, r"argument X has the impossible shape \(6, -1\)"),
        ({"arguments": (("X", "float32", (1 << 40, 1 << 40), False),)}, "impossible shape"),
    ],
)
def test_a_native_kernel_is_described_correctly(changes: dict[str, Any], message: str) -> None:
    description: dict[str, Any] = {
        "name": "k", "entry_address": 1, "arguments": (), "workspace_bytes": 0, "scratch_bytes": 0, "num_threads": 1,
        "keepalive": None,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        NativeKernel(**(description | changes))
