"""The thread pool: every iteration once, from any thread, after a fork, and at rest when there is nothing to do."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from tests.runtime.conftest import KernelMaker
from tilewright.runtime import Argument, Kernel, parallel_region_s
from tilewright.runtime._native import num_workers
from tilewright.target import default_threads


def count_kernel(make_kernel: KernelMaker, extent: int, num_threads: int) -> Kernel:
    inputs = (Argument("extent", "int64", (1,)),)
    return make_kernel("count", inputs, (Argument("counts", "int32", (extent,)),), num_threads=num_threads)


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("extent", [1, 2, 3, 7, 64, 1001])
def test_each_iteration_runs_exactly_once(make_kernel: KernelMaker, extent: int, num_threads: int) -> None:
    kernel = count_kernel(make_kernel, extent, num_threads)
    counts = np.zeros(extent, np.int32)
    for repeat in range(1, 51):
        kernel(np.array([extent]), out=counts)
        assert (counts == repeat).all()


def test_an_empty_range_runs_nothing(make_kernel: KernelMaker) -> None:
    counts = count_kernel(make_kernel, 4, 2)(np.array([0]), out=np.zeros(4, np.int32))
    assert (counts == 0).all()


def test_work_is_shared_among_threads(make_kernel: KernelMaker) -> None:
    kernel = make_kernel(
        "slow", (Argument("nanoseconds", "int64", (1,)),), (Argument("threads", "int64", (16,)),), num_threads=3
    )
    threads = kernel(np.array([5_000_000]))
    assert len(set(threads)) == 3
    assert threading.get_ident() in threads


def test_one_thread_is_the_caller(make_kernel: KernelMaker) -> None:
    kernel = make_kernel("slow", (Argument("nanoseconds", "int64", (1,)),), (Argument("threads", "int64", (16,)),))
    assert set(kernel(np.array([1000]))) == {threading.get_ident()}


def test_a_region_inside_a_region_stays_on_its_thread(make_kernel: KernelMaker) -> None:
    kernel = make_kernel("nested", (), (Argument("counts", "int32", (8, 8)),), num_threads=2)
    for _ in range(100):
        assert (kernel(out=np.zeros((8, 8), np.int32)) == 1).all()


def test_several_python_threads_call_at_once(make_kernel: KernelMaker) -> None:
    extent = 501
    kernel = count_kernel(make_kernel, extent, 2)
    results: list[bool] = []

    def call_often() -> None:
        counts = np.zeros(extent, np.int32)
        for _ in range(300):
            kernel(np.array([extent]), out=counts)
        results.append(bool((counts == 300).all()))

    threads = [threading.Thread(target=call_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_a_busy_pool_does_not_hold_up_another_caller(make_kernel: KernelMaker) -> None:
    slow = make_kernel(
        "slow", (Argument("nanoseconds", "int64", (1,)),), (Argument("threads", "int64", (16,)),), num_threads=2
    )
    long_call = threading.Thread(target=slow, args=(np.array([50_000_000]),))
    long_call.start()
    time.sleep(0.05)
    threads = slow(np.array([1000]))
    assert long_call.is_alive()
    assert set(threads) == {threading.get_ident()}
    long_call.join()


def test_idle_workers_use_no_processor_time(make_kernel: KernelMaker) -> None:
    count_kernel(make_kernel, 64, 4)(np.array([64]), out=np.zeros(64, np.int32))
    assert num_workers() >= 3
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used_s < 0.05


def test_workers_are_started_when_needed(run_python: Callable[[str], str]) -> None:
    program = """
from tilewright.runtime._native import num_workers
found = [num_workers()]
for extent, num_threads in [(64, 1), (1, 4), (3, 4), (64, 2), (64, 6)]:
    assert count(extent, num_threads)
    found.append(num_workers())
print(found)
"""
    assert run_python(program) == "[0, 0, 0, 2, 2, 5]\n"


def test_a_forked_child_has_a_pool_of_its_own(run_python: Callable[[str], str]) -> None:
    program = """
from tilewright.runtime._native import num_workers
assert count(1001, 3)
child = os.fork()
if child == 0:
    is_right = num_workers() == 0 and all(count(1001, 3) for _ in range(100)) and num_workers() == 2
    os._exit(0 if is_right else 1)
assert os.waitpid(child, 0)[1] == 0
assert count(1001, 3)
print("ok")
"""
    assert run_python(program) == "ok\n"


def test_a_fork_while_another_thread_is_inside_a_region(run_python: Callable[[str], str]) -> None:
    program = """
stop = threading.Event()
def call_until_stopped():
    while not stop.is_set():
        assert count(1001, 2)
caller = threading.Thread(target=call_until_stopped)
caller.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if count(1001, 2) else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
caller.join()
print("ok")
"""
    assert run_python(program) == "ok\n"


def test_the_interpreter_exits_while_a_daemon_thread_calls(run_python: Callable[[str], str]) -> None:
    program = """
def call_for_ever():
    while True:
        count(1001, 2)
threading.Thread(target=call_for_ever, daemon=True).start()
time.sleep(0.05)
print("ok")
"""
    assert run_python(program) == "ok\n"


def test_an_empty_region_takes_microseconds() -> None:
    # The target is 5 us; the bound here leaves room for a machine that does other work too.
    assert min(parallel_region_s(2) for _ in range(20)) < 50e-6


def test_default_threads_is_what_the_process_may_use() -> None:
    assert default_threads() >= 1
