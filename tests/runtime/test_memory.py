"""Workspace and scratch memory of kernel calls."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.runtime.conftest import KernelMaker
from tilewright.runtime import Argument, Kernel


def call_back_kernel(make_kernel: KernelMaker) -> Kernel:
    return make_kernel(
        "call_back",
        (Argument("callback", "int64", (1,)),),
        (Argument("ok", "int32", (1,)),),
        workspace_bytes=1024,
        scratch_bytes=64,
    )


def test_each_thread_has_scratch_of_its_own(make_kernel: KernelMaker) -> None:
    kernel = make_kernel("scratch", (), (Argument("ok", "int32", (32,)),), scratch_bytes=4096, num_threads=3)
    for _ in range(5):
        assert (kernel() == 1).all()


def test_a_kernel_may_be_called_from_inside_another(make_kernel: KernelMaker) -> None:
    kernel = call_back_kernel(make_kernel)
    depth = 0
    inner_results: list[int] = []

    def call_inner() -> None:
        nonlocal depth
        depth += 1
        if depth < 4:
            inner_results.append(int(kernel(address)[0]))

    callback = ctypes.CFUNCTYPE(None)(call_inner)
    address = np.array([ctypes.cast(callback, ctypes.c_void_p).value])
    assert kernel(address)[0] == 1
    assert inner_results == [1, 1, 1]


def test_calls_on_several_threads_do_not_share_memory(make_kernel: KernelMaker) -> None:
    kernel = call_back_kernel(make_kernel)
    barrier = threading.Barrier(3, timeout=10)
    callback = ctypes.CFUNCTYPE(None)(barrier.wait)
    address = np.array([ctypes.cast(callback, ctypes.c_void_p).value])
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(int(kernel(address)[0]))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1, 1, 1]


@pytest.mark.parametrize("memory", ["workspace_bytes", "scratch_bytes"])
def test_too_little_memory_is_a_memory_error(make_kernel: KernelMaker, memory: str) -> None:
    x = Argument("X", "float32", (6,))
    y = Argument("Y", "float32", (6,))
    kernel = make_kernel("copy4", (x,), (y,), **{memory: 1 << 60})
    with pytest.raises(MemoryError):
        kernel(np.zeros(6, np.float32))
    assert (make_kernel("copy4", (x,), (y,))(np.ones(6, np.float32)) == 1).all()


def test_a_worker_without_memory_leaves_its_share_to_the_others(run_python: Callable[[str], str]) -> None:
    program = """
import pathlib, resource
assert count(1001, 2)
used_bytes = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used_bytes + (300 << 20),) * 2)
print(all(count(1001, 2, scratch_bytes=200 << 20) for _ in range(100)))
"""
    assert run_python(program) == "True\n"


def test_new_outputs_start_on_a_cache_line(add: Kernel) -> None:
    ones = np.ones((4, 6), np.float32)
    results = [add(ones, ones) for _ in range(20)]
    assert all(c.ctypes.data % 64 == 0 and c.flags.writeable for c in results)
    assert all((c == 2).all() for c in results)
