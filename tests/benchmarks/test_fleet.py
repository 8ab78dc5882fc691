"""The benchmark of the fleet: what it tells, and how that is judged."""

from __future__ import annotations

import json

import pytest

from benchmarks import fleet
from benchmarks.fleet import Memory, Overhead, Scale


@pytest.mark.parametrize(
    ("scale", "is_passed"),
    [(Scale(64, 90.0, 100.0), True), (Scale(64, 89.0, 100.0), False), (Scale(256, 10.0, 100.0), True)],
)
def test_it_must_be_linear_to_64_devices(scale: Scale, is_passed: bool) -> None:
    assert scale.is_passed is is_passed


def test_the_overhead_is_what_is_missing_to_the_local_rate() -> None:
    assert Overhead(9.5, 10.0).share == pytest.approx(0.05)
    assert Overhead(9.5, 10.0).is_passed
    assert not Overhead(8.9, 10.0).is_passed


def test_tables_and_json_have_all_that_was_measured() -> None:
    found = [Scale(4, 39.0, 40.0)], [Overhead(8.0, 10.0)], [Memory(1000, 200.0, 60.0)]
    text = fleet.as_table(*found)
    assert all(word in text for word in ("0.97", "20.0 %", "FAIL", "1,000", "200 MB"))
    content = json.loads(fleet.as_json(*found))
    assert content["scales"][0]["status"] == "pass"
    assert content["overheads"][0]["status"] == "fail"
    assert content["memories"][0]["num_trials"] == 1000
