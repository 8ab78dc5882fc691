"""How often a kernel is run, with a clock that the test holds."""

from __future__ import annotations

import pytest

from tilewright.measure import MeasureOptions
from tilewright.measure.local.repeats import sample_latency, sample_turn

OPTIONS = MeasureOptions(min_repeat_ms=5.0, min_repeats=3, max_total_ms=50.0, hopeless_factor=3.0, close_factor=1.1)


class FakeKernel:
    """Takes `latency_s` a run and `cold_s` more in the first one."""

    def __init__(self, latency_s: float, cold_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self.cold_s = cold_s
        self.calls: list[int] = []

    def __call__(self, number: int) -> float:
        self.calls.append(number)
        return number * self.latency_s + (self.cold_s if len(self.calls) == 1 else 0.0)


@pytest.mark.parametrize(
    ("latency_s", "best_s", "calls"),
    [
        (2e-3, None, [1, 3, 3, 3, 3, 3, 3, 3, 3, 3]),  # nothing to compare with: 50 ms of repeats that last 5 ms
        (2e-3, 2e-3, [1, 3, 3, 3, 3, 3, 3, 3, 3, 3]),  # as good as the best
        (2e-3, 1e-3, [1, 3, 3, 3]),  # slower than the best
        (2e-3, 5e-4, [1, 3]),  # hopeless, but too short to be sure from a cold run
        (20e-3, 5e-3, [1]),  # hopeless
        (20e-3, 19e-3, [1, 1, 1, 1]),  # close: until 50 ms are full
        (40e-3, 39e-3, [1, 1, 1, 1]),  # at least three repeats
        (0.5, None, [1]),  # so long that a cold run is as good as any
    ],
)
def test_runs_by_latency_and_best(latency_s: float, best_s: float | None, calls: list[int]) -> None:
    kernel = FakeKernel(latency_s)
    samples_s = sample_latency(kernel, OPTIONS, best_s)
    assert kernel.calls == calls
    assert samples_s == pytest.approx([latency_s] * max(1, len(calls) - 1))


def test_the_number_of_runs_is_found_for_a_kernel_of_microseconds() -> None:
    kernel = FakeKernel(1e-6)
    samples_s = sample_latency(kernel, OPTIONS, 1e-7)
    assert kernel.calls[-1] * 1e-6 >= 4e-3
    assert samples_s == pytest.approx([1e-6])


def test_a_cold_first_run_does_not_condemn_a_fast_kernel() -> None:
    kernel = FakeKernel(1e-5, cold_s=2e-3)
    samples_s = sample_latency(kernel, OPTIONS, 1e-5)
    assert len(samples_s) >= OPTIONS.min_repeats
    assert samples_s == pytest.approx([1e-5] * len(samples_s))


@pytest.mark.parametrize(
    ("latency_s", "calls"),
    [(2e-3, [1, 3, 3, 3]), (20e-3, [1, 1, 1, 1]), (0.5, [1])],  # the last: a cold run is as good as any
)
def test_a_turn_is_short(latency_s: float, calls: list[int]) -> None:
    kernel = FakeKernel(latency_s)
    samples_s = sample_turn(kernel, OPTIONS)
    assert kernel.calls == calls
    assert samples_s == pytest.approx([latency_s] * max(1, len(calls) - 1))
