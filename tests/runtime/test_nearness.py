"""Waiting until cores are near each other, on a machine whose cores are where a list says."""

from __future__ import annotations

import pytest

from tilewright.runtime import Nearness
from tilewright.runtime._native import probe_cores

NEAR, APART, SHARED, NOISY = (3.0, 25.0), (3.1, 150.0), (4.8, 14.0), (3.3, 30.0)


class Machine:
    """Cores that have the next place of the list after each rest, and then stay there; a run takes a second."""

    def __init__(self, *places: tuple[float, float] | None) -> None:
        self.places = list(places)
        self.now_s = 0.0
        self.runs: list[int] = []

    def probe(self, threads: int) -> tuple[float, float] | None:
        assert threads == 2
        return self.places[0]

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if len(self.places) > 1:
            self.places.pop(0)

    def run(self, number: int) -> float:
        self.now_s += 1.0
        self.runs.append(number)
        return 1.0

    def nearness(self) -> Nearness:
        return Nearness(2, probe=self.probe, sleep=self.sleep, clock=lambda: self.now_s)


@pytest.mark.parametrize(
    ("first", "now", "is_near"),
    [
        (NEAR, NEAR, True),
        (NEAR, NOISY, True),
        (NEAR, APART, False),
        (NEAR, SHARED, False),
        (APART, NEAR, True),
        (SHARED, NEAR, True),
        (SHARED, APART, True),  # nothing better was seen but half a core
        (None, NEAR, True),
        (NEAR, None, True),
    ],
)
def test_cores_are_judged_beside_the_best_that_was_seen(
    first: tuple[float, float] | None, now: tuple[float, float] | None, is_near: bool
) -> None:
    assert Machine(first, first, first, first, now).nearness().are_near() == is_near


def test_the_way_within_one_core_is_forgotten_once_two_are_seen() -> None:
    nearness = Machine(SHARED, SHARED, NEAR, NEAR, NEAR).nearness()
    assert nearness.are_near()
    assert Machine(SHARED, APART, APART, APART, NEAR).nearness().are_near()


def test_it_rests_until_they_are_near() -> None:
    machine = Machine(NEAR, NEAR, NEAR, NEAR, APART, SHARED, APART, NEAR, APART)
    assert machine.nearness().rest()
    assert machine.places == [NEAR, APART]
    machine = Machine(NEAR)
    assert not machine.nearness().rest()


def test_it_gives_up_where_resting_does_not_help() -> None:
    machine = Machine(NEAR, APART)
    nearness = machine.nearness()
    assert nearness.rest()
    assert 0.5 < nearness.rested_s < 0.7
    machine.now_s += 10.0
    assert nearness.rest()
    assert 2.5 < nearness.rested_s < 3.3, "a fifth of the time that has passed"
    assert nearness.undisturbed(machine.run, 5) == 1.0
    assert machine.runs.count(5) == 3


def test_a_run_that_ends_apart_is_run_again_with_warm_caches() -> None:
    machine = Machine(NEAR)
    nearness = machine.nearness()
    nearness.are_near()

    def run(number: int) -> float:
        if not machine.runs:
            machine.places = [APART, NEAR]
        return machine.run(number)

    nearness.undisturbed(run, 7)
    assert machine.runs == [7, 1, 7]


def test_real_cores_are_probed_unless_threads_do_not_come_together() -> None:
    for threads in (1, 2):
        found = [each for each in (probe_cores(threads) for _ in range(50)) if each is not None]
        assert all(compute_s > 0 and exchange_s > 0 for compute_s, exchange_s in found)
        assert found or threads > 1
