"""The right answers: by NumPy, by a plain kernel, and through memory that processes share."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tilewright import te
from tilewright.measure.local import reference
from tilewright.measure.local.reference import ReferenceShelf, ReferenceStore, reference_outputs
from tilewright.target import Target
from tilewright.te import Task, assert_matches, evaluate, random_inputs


def row_norms(m: int, n: int) -> Task:
    a = te.placeholder((m, n), name="A")
    r = te.reduce_axis(n, name="r")
    s = te.compute((m,), lambda i: te.sum(a[i, r] * a[i, r], axis=r), name="S")
    return Task([a], [s, te.compute((m,), lambda i: te.sqrt(s[i]), name="N")])


def test_a_large_task_is_left_to_the_plain_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(task: Task, *arrays: object) -> None:
        raise AssertionError("NumPy would take too long")

    monkeypatch.setattr(reference, "_LARGEST_FOR_NUMPY", 100)
    monkeypatch.setattr(reference, "evaluate", too_slow)
    task = row_norms(9, 50)
    inputs = random_inputs(task, np.random.default_rng(0))
    outputs = reference_outputs(task, inputs, Target.native(), 2)
    for actual, expected in zip(outputs, evaluate(task, *inputs), strict=True):
        assert_matches(actual, expected, "float32", 50)


def test_what_is_saved_can_be_loaded_and_not_changed() -> None:
    store = ReferenceStore(row_norms(3, 4))
    assert not store.is_filled()
    saved = [np.arange(3, dtype=np.float32), np.arange(3, 6, dtype=np.float32)]
    store.save(saved)
    assert store.is_filled()
    loaded = store.load()
    for actual, expected in zip(loaded, saved, strict=True):
        np.testing.assert_array_equal(actual, expected)
    with pytest.raises(ValueError, match="read-only"):
        loaded[0][0] = 1


def test_the_shelf_keeps_what_was_used_last_as_long_as_there_is_room() -> None:
    tasks = [row_norms(rows, 4) for rows in (100, 101, 102)]  # two outputs of 4 bytes a row
    shelf = ReferenceShelf(max_bytes=2 * 8 * 102)
    num_files = len(os.listdir("/proc/self/fd"))
    first, second = shelf.of(tasks[0]), shelf.of(tasks[1])
    assert shelf.of(row_norms(100, 4)) is first
    shelf.of(tasks[2])
    assert shelf.of(tasks[0]) is first
    assert shelf.of(tasks[1]) is not second
    assert len(os.listdir("/proc/self/fd")) == num_files + 2
