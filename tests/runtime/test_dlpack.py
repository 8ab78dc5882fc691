"""Arguments that come by DLPack: torch tensors, and producers of every version of the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.runtime.conftest import KernelMaker
from tilewright.errors import KernelArgumentError
from tilewright.runtime import Argument, Kernel

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


class Producer:
    """An array that shows nothing but DLPack, as a library that knows versions up to `max_known`."""

    def __init__(self, array: npt.NDArray[Any], knows_versions: bool = True, device: Any = (1, 0)) -> None:
        self.array = array
        self.knows_versions = knows_versions
        self.device = device

    def __dlpack__(self, **options: Any) -> Any:
        if options and not self.knows_versions:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.device


def ones(*shape: int) -> npt.NDArray[np.float32]:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("knows_versions", [True, False])
def test_both_versions_of_the_protocol_are_understood(add: Kernel, knows_versions: bool) -> None:
    c = ones(4, 6)
    add(Producer(ones(4, 6), knows_versions), Producer(ones(4, 6), knows_versions), out=Producer(c, knows_versions))
    assert (c == 2).all()


@pytest.mark.parametrize("knows_versions", [True, False])
def test_tensors_are_given_back_after_a_call(add: Kernel, knows_versions: bool) -> None:
    memory = bytearray(96)
    a = np.frombuffer(memory, np.float32).reshape(4, 6)
    add(Producer(a, knows_versions), ones(4, 6))
    with pytest.raises(KernelArgumentError):
        add(Producer(a, knows_versions), ones(3))
    with pytest.raises(KernelArgumentError):
        add(Producer(a.reshape(6, 4), knows_versions), ones(4, 6))
    del a
    memory.extend(b"refused while anything still holds the buffer")


def test_a_read_only_tensor_is_no_output(add: Kernel) -> None:
    c = ones(4, 6)
    c.flags.writeable = False
    assert (add(Producer(c), Producer(c)) == 2).all()
    with pytest.raises(KernelArgumentError, match="output C must be writable, got a read-only array"):
        add(ones(4, 6), ones(4, 6), out=Producer(c))


def test_memory_of_another_device_is_refused(add: Kernel) -> None:
    rule = r"^kernel add: input A must share its memory by DLPack, but its library refuses: it is not in CPU memory"
    with pytest.raises(KernelArgumentError, match=rule):
        add(Producer(ones(4, 6), device=(2, 0)), ones(4, 6))


def test_strides_and_shape_of_a_tensor_are_checked(add: Kernel) -> None:
    with pytest.raises(KernelArgumentError, match=r"input A must be C-contiguous, got strides of \(4, 16\) bytes"):
        add(Producer(ones(6, 4).T), ones(4, 6))
    with pytest.raises(KernelArgumentError, match=r"input A must have shape \(4, 6\), got \(6, 4\)"):
        add(Producer(ones(6, 4)), ones(4, 6))


@pytest.mark.parametrize("device", [None, (1,), ("cpu", 0)])
def test_a_broken_device_is_refused(add: Kernel, device: Any) -> None:
    with pytest.raises(KernelArgumentError, match="__dlpack_device__"):
        add(Producer(ones(4, 6), device=device), ones(4, 6))


def test_something_else_than_a_capsule_is_refused(add: Kernel) -> None:
    class Broken(Producer):
        def __dlpack__(self, **options: Any) -> Any:
            return "not a capsule"

    with pytest.raises(KernelArgumentError, match="returned 'not a capsule', which is not a DLPack capsule"):
        add(Broken(ones(4, 6)), ones(4, 6))


def test_an_unexpected_exception_of_a_producer_passes_through(add: Kernel) -> None:
    class Interrupted(Producer):
        def __dlpack__(self, **options: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add(Interrupted(ones(4, 6)), ones(4, 6))


def test_the_refusal_of_a_producer_is_the_cause(add: Kernel) -> None:
    class Refusing(Producer):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("this one is lent out")

    with pytest.raises(KernelArgumentError, match="its library refuses: this one is lent out; ") as error:
        add(Refusing(ones(4, 6)), ones(4, 6))
    assert isinstance(error.value.__cause__, BufferError)


# ---- torch -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    import torch

    return torch


@pytest.mark.parametrize("dtype", sorted(BYTES))
def test_torch_tensors_of_every_dtype(torch: Any, make_kernel: KernelMaker, dtype: str) -> None:
    kernel = make_kernel(f"copy{BYTES[dtype]}", (Argument("X", dtype, (2, 3)),), (Argument("Y", dtype, (2, 3)),))
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    y = torch.zeros_like(x)
    assert kernel(x, out=y) is y
    assert torch.equal(x, y)


def test_torch_and_numpy_mix(torch: Any, add: Kernel) -> None:
    c = add(torch.ones(4, 6), ones(4, 6))
    assert (c == 2).all()


def test_a_part_of_a_torch_tensor_is_read_where_it_is(torch: Any, add: Kernel) -> None:
    whole = torch.arange(72, dtype=torch.float32).reshape(3, 4, 6)
    add(whole[0], whole[2], out=whole[1])
    assert torch.equal(whole[1], whole[0] + whole[2])


def test_torch_tensors_follow_the_same_rules(torch: Any, add: Kernel) -> None:
    a = torch.ones(4, 6)
    cases = [
        (torch.ones(6, 4).T, r"input A must be C-contiguous, got strides of \(4, 16\) bytes"),
        (torch.ones(6, 4), r"input A must have shape \(4, 6\), got \(6, 4\)"),
        (torch.ones(4, 6, dtype=torch.float64), r"input A must be of type float32, got torch.float64"),
        (
            torch.ones(4, 6, requires_grad=True),
            r"use tensor.detach\(\); pass a plain CPU tensor, such as x.detach\(\).cpu\(\)",
        ),
        (torch.ones(4, 6, device="meta"), r"input A must share its memory by DLPack, but its library refuses"),
        (torch.eye(4, 6).to_sparse(), r"input A must share its memory by DLPack, but its library refuses"),
    ]
    for wrong, rule in cases:
        with pytest.raises(KernelArgumentError, match=rule):
            add(wrong, a)
    with pytest.raises(KernelArgumentError, match="output C must not share memory .* overlaps input A"):
        add(a, torch.ones(4, 6), out=a)


def test_torch_parameters_without_gradient_are_tensors(torch: Any, add: Kernel) -> None:
    parameter = torch.nn.Parameter(torch.ones(4, 6), requires_grad=False)
    assert (add(parameter, parameter) == 2).all()
