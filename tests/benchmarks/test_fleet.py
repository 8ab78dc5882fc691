"""The benchmark of the fleet: what it tells, and how that is judged."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import fleet
from benchmarks.fleet import Found, Memory, Overhead, Scale
from benchmarks.fleet_faults import Fault, faults
from benchmarks.fleet_networks import Foreign, Together


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


@pytest.mark.parametrize(
    ("fault", "is_passed"),
    [
        (Fault("a", 10, 10, 480, 0, 0, 0, 3, 10), True),
        (Fault("a", 10, 10, 480, 1, 0, 0, 3, 10), False),
        (Fault("a", 10, 10, 480, 0, 1, 0, 3, 10), False),
        (Fault("a", 10, 10, 480, 0, 0, 0, 3, 9), False),
        (Fault("a", 10, 9, 480, 0, 0, 0, 3, 10), False),  # once there was nobody to hit
        (Fault("a"), False),  # not injected yet
    ],
)
def test_of_a_fault_nothing_is_lost_and_all_ends(fault: Fault, is_passed: bool) -> None:
    assert fault.is_passed is is_passed


def test_runs_of_faults_that_were_made_in_pieces_add_up(tmp_path: Path) -> None:
    """No cluster is started for what is there already."""
    path = tmp_path / "faults.jsonl"
    runs = [Fault("actor killed", 1, 1, 48, 0, 0, 1, 2, 1, 5.0, ("RUN_ERROR: gone",)), Fault("actor killed", 1, 2, 56)]
    path.write_text("".join(json.dumps(asdict(run)) + "\n" for run in runs))
    (found,) = faults(2, ["actor"], str(path))
    assert found == Fault("actor killed", 2, 3, 104, 0, 0, 1, 2, 1, 5.0, ("RUN_ERROR: gone",))
    assert not found.is_passed


def test_devices_that_are_tuned_together_are_five_percent_slower_at_most() -> None:
    assert Together("a", 150, 30.0, 20.9, 20.0).is_passed
    assert not Together("a", 150, 30.0, 21.1, 20.0).is_passed


def test_tables_and_json_have_all_that_was_measured() -> None:
    found = Found(
        scales=[Scale(4, 39.0, 40.0)],
        overheads=[Overhead(8.0, 10.0)],
        memories=[Memory(1000, 200.0, 60.0)],
        togethers=[Together("haswell", 150, 30.0, 20.0, 20.0)],
        foreigns=[Foreign("zoo:resnet18", 0, 0, 1.0, "qemu-aarch64 not installed")],
        faults=[Fault("node killed", 10, 90, 480, 0, 0, 0, 3, 10, 12.0)],
    )
    text = fleet.as_table(found)
    words = ("0.97", "20.0 %", "FAIL", "1,000", "200 MB", "haswell", "+0.0 %", "NOT RUN", "node killed")
    assert all(word in text for word in words)
    content = json.loads(fleet.as_json(found))
    assert content["scales"][0]["status"] == "pass"
    assert content["overheads"][0]["status"] == "fail"
    assert content["memories"][0]["num_trials"] == 1000
    assert content["togethers"][0]["share"] == 0
    assert content["faults"][0]["num_programs"] == 480
    assert not found.are_passed
