"""Timing repeats a call until the clock can be trusted."""

from __future__ import annotations

import pytest

from tilewright.runtime import Timing, interleave, measure, measure_loop


def test_a_loop_runs_until_it_lasts_long_enough() -> None:
    asked: list[int] = []

    def loop(number: int) -> float:
        asked.append(number)
        return number * 1e-4

    timing = measure_loop(loop, repeats=3, min_repeat_ms=10)
    assert asked[0] == 1
    assert asked[-3:] == [timing.number] * 3
    assert 100 <= timing.number <= 200
    assert timing.repeats == 3
    assert timing.best_s == pytest.approx(1e-4)


def test_a_slow_call_runs_once_a_repeat() -> None:
    assert measure_loop(lambda number: number * 1.0, repeats=2, min_repeat_ms=10) == Timing(1, (1.0, 1.0))


def test_a_clock_that_does_not_move_yet_is_given_more_to_do() -> None:
    timing = measure_loop(lambda number: 0.0 if number < 1000 else number * 1e-6, repeats=2, min_repeat_ms=1)
    assert timing.number >= 1000


def test_measure_times_a_python_call() -> None:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1

    timing = measure(call, repeats=4, min_repeat_ms=0.5)
    assert timing.repeats == 4
    assert calls >= 4 * timing.number
    assert 0 < timing.best_s <= timing.median_s < 1e-3


def test_interleave_takes_turns() -> None:
    order: list[str] = []
    timings = interleave({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3, min_repeat_ms=0.01)
    turns = [name for name, previous in zip(order, ["", *order], strict=False) if name != previous]
    assert turns[-6:] == ["a", "b"] * 3
    assert {name: t.repeats for name, t in timings.items()} == {"a": 3, "b": 3}
