"""Whether contestants computed the same, and the table of their times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.cli.comparison import Row, check_agreement, rows_of, table
from tilewright.errors import TilewrightError
from tilewright.runtime import Timing


@pytest.mark.parametrize(
    ("theirs", "message"),
    [([1.0, 2.01], "differ by 0.005 of"), ([1.0, np.nan], "differ by nan"), ([1.0], "have the shapes")],
)
def test_differences_are_found(theirs: list[float], message: str) -> None:
    check_agreement("torch", "y", np.array([1.0, 2.0]), np.array([1.0005, 2.0]))
    with pytest.raises(TilewrightError, match=f"tilewright and torch must .* their outputs y {message}"):
        check_agreement("torch", "y", np.array([1.0, 2.0]), np.array(theirs))


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (np.array(["a", "b"]), np.array(["a", "c"], object), "are different strings"),
        ([np.ones(2), np.ones(3)], [np.ones(2)], "are sequences of 2 and 1 elements"),
        ([np.ones(2), np.ones(3)], [np.ones(2), np.zeros(3)], "differ by"),
    ],
)
def test_strings_and_sequences_are_compared(ours: Any, theirs: Any, message: str) -> None:
    check_agreement("torch", "y", ours, ours)
    with pytest.raises(TilewrightError, match=message):
        check_agreement("torch", "y", ours, theirs)


def test_equal_infinities_and_nothing_at_all_agree() -> None:
    masked = np.array([-np.inf, 1.0, 2.0])
    check_agreement("torch", "y", masked, masked)
    for other in ([-np.inf, 1.0, 2.1], [1.0, 1.0, 2.0], [np.inf, 1.0, 2.0]):
        with pytest.raises(TilewrightError, match="differ by"):
            check_agreement("torch", "y", masked, np.array(other))
    check_agreement("torch", "y", np.zeros((0, 3)), np.zeros((0, 3)))


def test_rows_are_medians_next_to_ours() -> None:
    timings = {"tilewright": Timing(1, (2e-3, 9e-3, 1e-3)), "torch": Timing(1, (3e-3,))}
    assert rows_of(timings) == [Row("tilewright", 2.0, 1.0), Row("torch", 3.0, 1.5)]
    assert [row.gflops for row in rows_of(timings, flop=6e6)] == [3.0, 2.0]


def test_the_speed_has_a_column_where_it_is_known() -> None:
    rows = [Row("tilewright", 2.0, 1.0), Row("torch", 3.0, 1.5)]
    assert table(rows).splitlines() == [
        "            latency  time by ours",
        "tilewright     2 ms          1.00",
        "torch          3 ms          1.50",
    ]
    assert table([Row("tilewright", 2.0, 1.0, 3.0)]).splitlines()[-1] == "tilewright     2 ms      3.0          1.00"
    assert rows[0].to_json() == {"name": "tilewright", "latency_ms": 2.0, "ratio": 1.0}
