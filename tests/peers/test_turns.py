"""Timing in turns, on a clock that the contestants move themselves."""

from __future__ import annotations

import pytest

from tilewright.peers import turns


class Clock:
    """Time that passes only in `sleep` and in the contestants' calls; `calls` lists those."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.calls: list[str] = []

    def perf_counter(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.calls.append("settle")

    def call(self, name: str, seconds: float) -> None:
        self.now_s += seconds
        self.calls.append(name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "time", clock)
    return clock


def test_each_contestant_gets_one_turn_a_round_and_the_order_rotates(clock: Clock) -> None:
    contestants = {"a": lambda: clock.call("a", 0.01), "b": lambda: clock.call("b", 0.02)}
    turns.take_turns(contestants, rounds=1, settle_s=0.0)
    num_probes = clock.calls.index("settle")
    clock.calls.clear()
    turns.take_turns(contestants, rounds=2, settle_s=0.0)
    turn_a, turn_b = ["settle", "a", "a"], ["settle", "b", "b"]
    assert clock.calls[num_probes:] == turn_a + turn_b + turn_b + turn_a


def test_a_turn_repeats_a_short_call_and_reports_its_mean(clock: Clock) -> None:
    result = turns.take_turns({"a": lambda: clock.call("a", 0.001)}, rounds=3, settle_s=0.0)
    assert result["a"].samples_s == pytest.approx((0.001, 0.001, 0.001))
    last_turn = clock.calls[::-1].index("settle")
    assert last_turn in (11, 12)


@pytest.mark.parametrize(
    ("libraries", "threads", "expected_s"),
    [
        (["torch"], 2, turns.OPENMP_SETTLE_S),
        (["torch", "onnxruntime"], 2, turns.ONNXRUNTIME_SETTLE_S),
        (["numpy", "torch"], 2, turns.OPENBLAS_SETTLE_S),
        (["numpy"], 1, 0.0),
        ([], 2, 0.0),
    ],
)
def test_a_turn_rests_as_long_as_the_most_restless_library_needs(
    libraries: list[str], threads: int, expected_s: float
) -> None:
    assert turns.settle_s(libraries, threads) == expected_s
