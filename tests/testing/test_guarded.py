"""Guards around arrays: what leaves them is noticed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tilewright.testing.guarded import SentinelArray, before_guard_page


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (1024,), (4096, 3)])
def test_guarded_copy_is_equal(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).random(shape).astype(np.float32)
    copy = before_guard_page(array)
    assert np.array_equal(copy, array)
    assert copy.flags.c_contiguous
    assert (copy.ctypes.data + copy.nbytes) % 4096 == 0


def test_read_past_the_end_is_a_segmentation_fault() -> None:
    script = (
        "import ctypes, numpy as np\n"
        "from tilewright.testing.guarded import before_guard_page\n"
        "a = before_guard_page(np.zeros(5, np.float32))\n"
        "ctypes.c_float.from_address(a.ctypes.data + 16).value\n"
        "print('inside', flush=True)\n"
        "ctypes.c_float.from_address(a.ctypes.data + 20).value\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout == "inside\n"
    assert result.returncode == -11


def test_writes_outside_are_noticed() -> None:
    guard = SentinelArray("C", (4,), np.dtype(np.float32))
    guard.array[:] = 1.0
    guard.check()
    beyond = np.ndarray((5,), np.float32, guard._zone.data, offset=256)
    beyond[4] = 1.0
    with pytest.raises(AssertionError, match="wrote 4 bytes outside of C, first after it"):
        guard.check()


def test_writes_before_are_noticed() -> None:
    guard = SentinelArray("C", (4,), np.dtype(np.float32))
    guard._zone[250] = 0
    with pytest.raises(AssertionError, match="wrote 1 bytes outside of C, first 6 bytes before it"):
        guard.check()
