"""Examples: labels by task, programs of different lengths, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import UsageError
from tilewright.cost_model import Examples


def features(*num_statements: int) -> list[np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    """Programs whose statements are numbered through."""
    starts = np.cumsum([0, *num_statements])
    return [
        np.repeat(np.arange(start, start + num, dtype=np.float32)[:, np.newaxis], 2, axis=1)
        for start, num in zip(starts[:-1], num_statements, strict=True)
    ]


def test_labels_are_relative_to_the_best_of_each_task() -> None:
    examples = Examples.build(features(1, 2, 1, 3, 1), [2.0, 4.0, None, 10.0, 5.0], ["a", "a", "a", "b", "b"])
    np.testing.assert_array_equal(examples.labels, [1.0, 0.5, 0.0, 0.5, 1.0])
    np.testing.assert_array_equal(examples.tasks, [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(examples.num_statements, [1, 2, 1, 3, 1])
    assert len(examples) == 5
    assert examples.num_features == 2


def test_a_task_of_failures_has_labels_of_zero() -> None:
    assert Examples.build(features(1, 1), [None, None], ["a", "a"]).labels.tolist() == [0.0, 0.0]


def test_select_keeps_the_rows_of_each_program_together() -> None:
    examples = Examples.build(features(2, 1, 3), [1.0, 2.0, 4.0], ["a", "a", "a"]).select(np.array([2, 0]))
    np.testing.assert_array_equal(examples.values[:, 0], [3, 4, 5, 0, 1])
    np.testing.assert_array_equal(examples.offsets, [0, 3, 5])
    np.testing.assert_array_equal(examples.labels, [0.25, 1.0])


def test_programs_know_the_devices_they_were_measured_on() -> None:
    here = Examples.build(features(1, 2), [1.0, 2.0], ["a", "a"])
    assert (here.devices.tolist(), here.device_names) == ([0, 0], ("",))
    both = Examples.build(features(1, 2, 1), [1.0, 2.0, 3.0], ["a", "a on b", "a"], ["one", "two", "one"])
    assert (both.devices.tolist(), both.device_names) == ([0, 1, 0], ("one", "two"))
    chosen = both.select(np.array([1]))
    assert (chosen.devices.tolist(), chosen.device_names) == ([1], ("one", "two"))


def test_programs_without_numbers_are_programs() -> None:
    """The choices of a sketch that has no knobs."""
    examples = Examples.of_groups([np.zeros((3, 1, 0), np.float32)], [np.array([1.0, 2.0, np.inf])], ["a"])
    assert (len(examples), examples.num_features) == (3, 0)
    assert examples.labels.tolist() == [1.0, 0.5, 0.0]
    assert examples.select(np.array([1])).labels.tolist() == [0.5]


def test_programs_with_other_columns_are_refused() -> None:
    """The choices of two sketches: NumPy could not put them into one array."""
    two, three = np.zeros((1, 1, 2), np.float32), np.zeros((1, 1, 3), np.float32)
    with pytest.raises(UsageError, match=r"same columns for all programs, got some of \[2, 3\] columns"):
        Examples.of_groups([two, three], [np.ones(1), np.ones(1)], ["a", "a"])
    with pytest.raises(UsageError, match="encoder whose columns are the same for all, such as knobs"):
        Examples.build([two[0], three[0]], [1.0, 1.0], ["a", "a"])


def test_programs_are_padded_to_the_longest_of_those_asked_for() -> None:
    features = [np.full((rows, 2), rows, np.float32) for rows in (3, 1, 5, 2)]
    examples = Examples.build(features, [1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"])
    values, mask = examples.padded(np.array([3, 0, 1]))
    assert values.shape == (3, 3, 2)
    assert mask.sum(axis=1).tolist() == [2, 3, 1]
    assert values[:, :, 0].tolist() == [[2, 2, 0], [3, 3, 3], [1, 0, 0]]
    none, no_mask = examples.padded(np.zeros(0, np.int64))
    assert none.shape == (0, 0, 2)
    assert no_mask.shape == (0, 0)


def test_errors() -> None:
    with pytest.raises(UsageError, match="each program has features, a latency and a task; got 2, 1 and 2"):
        Examples.build(features(1, 1), [1.0], ["a", "a"])
    with pytest.raises(UsageError, match="a latency is above 0, got 0.0; give None for a failure"):
        Examples.build(features(1), [0.0], ["a"])
    with pytest.raises(UsageError, match="at least one row a program"):
        Examples.build(features(1, 0), [1.0, 1.0], ["a", "a"])
    with pytest.raises(UsageError, match="features are finite numbers, got nan in row 1, column 0"):
        Examples.build([np.array([[1.0], [np.nan]], np.float32)], [1.0], ["a"])
    with pytest.raises(UsageError, match="labels are finite numbers, got nan for program 1; leave it out"):
        Examples(np.zeros((2, 1), np.float32), np.arange(3), np.array([1.0, np.nan]), np.zeros(2, np.int64))
    with pytest.raises(UsageError, match="got 2 tasks, 2 offsets"):
        Examples(np.zeros((1, 1), np.float32), np.array([0, 1]), np.zeros(1), np.zeros(2, np.int64))
    with pytest.raises(UsageError, match=r"of the 1 programs is the number of one of the 1 names, got \[1\]"):
        Examples(
            np.zeros((1, 1), np.float32), np.array([0, 1]), np.zeros(1), np.zeros(1, np.int64), np.ones(1, np.int64)
        )
