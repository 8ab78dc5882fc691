"""The gain that the next round of a task promises, and which task is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tuning.task_scheduler.curves import task_of
from tilewright import te
from tilewright.errors import UsageError
from tilewright.te import Task
from tilewright.tuning.task_scheduler import Gradient, RoundRobin, Standing
from tilewright.tuning.task_scheduler.network import kind_of

RNG = np.random.default_rng(0)
EXACT = Gradient(epsilon=0.0, headroom=1e9)


def standing(*history_s: float, slope: float = 1.0, flop: float = 1.0, kind: object = None, **rest: bool) -> Standing:
    return Standing(slope, flop, kind or object(), history_s, **rest)


def test_a_gain_is_that_of_the_past_and_of_optimism() -> None:
    # 0.2 * (9 - 3) / 3 + 0.8 * 3 / 5, times the slope
    (gain,) = EXACT.gains([standing(10.0, 9.0, 5.0, 4.0, 3.0, slope=2.0)])
    assert gain == pytest.approx(2.0 * (0.2 * 2.0 + 0.8 * 0.6))


def test_before_the_window_is_full_there_is_only_optimism() -> None:
    (gain,) = EXACT.gains([standing(10.0, 4.0, 3.0)])
    assert gain == pytest.approx(0.8 * 1.0)


def test_a_task_slower_than_its_kind_is_expected_to_catch_up() -> None:
    slow = standing(10.0, 10.0, 10.0, 10.0, 10.0, kind="conv")
    fast = standing(2.0, 2.0, 2.0, 2.0, 2.0, kind="conv")
    gains = EXACT.gains([slow, fast])
    assert gains[0] == pytest.approx(0.8 * (10.0 - 2 * 2.0))  # to half the speed of the fast one
    assert gains[1] == pytest.approx(0.8 * 2.0 / 5)
    assert EXACT.gains([slow, standing(2.0, kind="other")])[0] == pytest.approx(0.8 * 10.0 / 5)


def test_a_task_that_does_not_catch_up_is_not_compared_any_longer() -> None:
    slow = standing(*[10.0] * 12, kind="conv")
    assert EXACT.gains([slow, standing(2.0, 2.0, kind="conv")])[0] == pytest.approx(0.8 * 10.0 / 12)


def test_no_task_is_expected_to_be_faster_than_all_others() -> None:
    gains = Gradient(headroom=1.25, epsilon=0.0).gains([standing(1.0), standing(2.0)])
    assert gains[0] == pytest.approx(0.8 * (1.0 - 0.8))
    assert gains[1] == pytest.approx(0.8 * (2.0 - 0.8))


def test_the_largest_gain_is_chosen_and_sometimes_another() -> None:
    standings = [standing(1.0), standing(5.0), standing(9.0, is_open=False)]
    assert EXACT.choose(standings, RNG) == 1
    chosen = [Gradient(epsilon=0.5, headroom=1e9).choose(standings, RNG) for _ in range(100)]
    assert set(chosen) == {0, 1}


def test_nothing_is_chosen_where_nothing_can_be_gained() -> None:
    assert EXACT.choose([standing(1.0, slope=0.0), standing(1.0, is_open=False)], RNG) is None
    assert RoundRobin().choose([standing(1.0, is_open=False)], RNG) is None


def test_tasks_without_arithmetic_have_gains_too() -> None:
    assert Gradient().gains([standing(2.0, flop=0.0)])[0] > 0


def test_round_robin_takes_the_task_with_the_fewest_rounds() -> None:
    standings = [standing(1.0), standing(1.0, 1.0), standing(1.0, is_open=False)]
    assert RoundRobin().choose(standings, RNG) == 0


@pytest.mark.parametrize(("option", "value"), [("alpha", 1.5), ("epsilon", -0.1), ("window", 0), ("headroom", 0.5)])
def test_options_are_checked(option: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{option} of the gradient is {value}"):
        Gradient(**{option: value})  # type: ignore[arg-type]


def test_tasks_are_of_one_kind_by_their_heaviest_stage() -> None:
    def product(rows: int, fused: bool) -> Task:
        a, b = te.placeholder((rows, 8), name="A"), te.placeholder((8, 8), name="B")
        k = te.reduce_axis(8, name="k")
        c = te.compute((rows, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        d = te.compute((rows, 8), lambda i, j: te.maximum(c[i, j], 0.0), name="D") if fused else c
        return Task([a, b], d)

    x = te.placeholder((9, 8), name="X")
    m = te.reduce_axis(8, name="m")
    largest = Task([x], te.compute((9,), lambda i: te.max(x[i, m], axis=m), name="M"))
    assert kind_of(product(16, False)) == kind_of(product(48, True)) == kind_of(task_of(9))
    assert kind_of(largest) != kind_of(task_of(9))
