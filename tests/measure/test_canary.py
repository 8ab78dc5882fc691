"""The canary, with a kernel whose time the test decides."""

from __future__ import annotations

import pytest

from tilewright.measure.canary import Canary
from tilewright.target import Target


class FakeKernel:
    def __init__(self, times_s: list[float]) -> None:
        self._times_s = iter(times_s)

    def time(self, *inputs: object, number: int, out: object) -> float:
        return next(self._times_s)


def test_slower_or_faster_than_of_late_is_not_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = Canary(Target.parse("llvm -mcpu=native"), threads=1)
    monkeypatch.setattr(canary, "_kernel", FakeKernel([1.0, 1.1, 1.0, 1.5, 1.0, 0.7, 1.0]))
    assert [canary.is_as_usual() for _ in range(7)] == [True, True, True, False, True, False, True]


def test_a_speed_that_lasts_becomes_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = Canary(Target.parse("llvm -mcpu=native"), threads=1)
    monkeypatch.setattr(canary, "_kernel", FakeKernel([1.0] * 100 + [2.0] * 100))
    answers = [canary.is_as_usual() for _ in range(200)]
    assert all(answers[:100])
    assert not any(answers[100:130])
    assert all(answers[-60:])


def test_the_real_one_runs() -> None:
    canary = Canary(Target.parse("llvm -mcpu=native"), threads=2)
    assert canary.is_as_usual()  # alone it is its own median
