"""Objectives: their values, and how they fall as networks become faster."""

from __future__ import annotations

import pytest

from tests.tuning.task_scheduler.curves import network_of
from tilewright.errors import UsageError
from tilewright.tuning.task_scheduler.objectives import find_objective, slopes

NETWORKS = [
    network_of("a", {8: 1}, required_latency_s=0.5, reference_latency_s=1.0),
    network_of("b", {8: 1}, required_latency_s=3.0, reference_latency_s=4.0),
]


@pytest.mark.parametrize(
    ("name", "value", "falls"),
    [
        ("f1", 3.0, [1.0, 1.0]),
        ("f2", 1.0 + 3.0, [1.0, 0.0]),  # the second is fast enough
        ("f3", -(2.0**0.5), [2**0.5 / 2, 2**0.5 / 4]),  # of sqrt(1/a * 4/b) at a = 1, b = 2
        ("f4", 3.0, [1.0, 1.0]),
    ],
)
def test_value_and_slopes(name: str, value: float, falls: list[float]) -> None:
    objective = find_objective(name, NETWORKS)
    assert objective([1.0, 2.0]) == pytest.approx(value)
    assert slopes(objective, [1.0, 2.0]) == pytest.approx(falls, rel=1e-3)


def test_a_users_function_is_taken_as_it_is() -> None:
    objective = find_objective(lambda latencies_s: latencies_s[0] + 10 * latencies_s[1] ** 2, NETWORKS)
    assert slopes(objective, [1.0, 2.0]) == pytest.approx([1.0, 40.0], rel=1e-3)


def test_a_network_without_latency_has_no_slope() -> None:
    assert slopes(find_objective("f1", NETWORKS), [0.0, 2.0]) == pytest.approx([0.0, 1.0])


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match="unknown objective 'f9'; use one of: f1, f2, f3, f4"):
        find_objective("f9", NETWORKS)
    with pytest.raises(UsageError, match="f2 needs the required_latency_s"):
        find_objective("f2", [network_of("a", {8: 1})])
    with pytest.raises(UsageError, match="f3 .* b has none"):
        find_objective("f3", [NETWORKS[0], network_of("b", {8: 1})])
    with pytest.raises(UsageError, match="required_latency_s of the network a is 0"):
        network_of("a", {8: 1}, required_latency_s=0.0)
