"""Which tasks a scheduler gives its trials to, on tuners with known curves; and a small run from start to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tuning.task_scheduler.curves import (
    TARGET,
    Curve,
    CurveMeasurer,
    Curves,
    CurveTuner,
    falling,
    network_of,
    scheduler_of,
)
from tilewright import te
from tilewright.errors import NoValidCandidateError, UsageError
from tilewright.measure import WARM, Context, Result
from tilewright.records import latest, read_records
from tilewright.runtime.build import build
from tilewright.te import Task
from tilewright.tuning.rounds import Round
from tilewright.tuning.task_scheduler import (
    Network,
    NetworkProgress,
    TaskScheduler,
    WeightedTask,
    deployed_context,
    scheduler,
)
from tilewright.tuning.task_scheduler.jobs import make_jobs
from tilewright.tuning.untuned import best_trace
from tilewright.workloads import parse


def final_s(strategy: str, seed: int, trials: int) -> tuple[float, float]:
    """The latency of a random network after tuning, and its mean on the way."""
    rng = np.random.default_rng(seed)
    curves: dict[int, Curve] = {}
    weights: dict[int, int] = {}
    for size in range(8, 20):
        start_s = float(10 ** rng.uniform(-2, 0))
        curves[size] = falling(start_s, start_s * rng.uniform(0.1, 0.9), rng.uniform(5, 80))
        weights[size] = int(rng.integers(1, 5))
    on_the_way: list[float] = []
    result = scheduler_of([network_of("net", weights)], Curves(curves), strategy=strategy, seed=seed).tune(
        trials, on_progress=lambda progress: on_the_way.append(progress.latencies_s["net"])
    )
    assert result.num_trials == trials
    return result.latencies_s["net"], float(np.mean(on_the_way))


def test_the_gradient_beats_round_robin_at_the_end_and_on_the_way() -> None:
    ratios = []
    for seed in range(12):
        (end_s, mean_s), (other_end_s, other_mean_s) = (
            final_s(name, seed, 960) for name in ("gradient", "round_robin")
        )
        assert end_s <= 1.01 * other_end_s
        ratios.append((end_s / other_end_s, mean_s / other_mean_s))
    assert np.mean(ratios, axis=0).max() < 0.98


def test_every_task_has_a_first_round_the_heaviest_before_the_others() -> None:
    seen: list[str] = []
    curves = Curves({8: falling(1.0, 0.5, 9), 9: falling(5.0, 4.0, 9), 10: falling(2.0, 1.0, 9)})
    network = network_of("net", {8: 7, 9: 1, 10: 1})
    scheduler_of([network], curves).tune(48, on_progress=lambda progress: seen.append(progress.task.name))
    assert seen == ["t8"] * 16 + ["t9"] * 16 + ["t10"] * 16


def test_with_few_trials_rounds_are_small() -> None:
    curves = Curves({size: falling(1.0, 0.5, 9) for size in (8, 9, 10)})
    scheduler_of([network_of("net", {8: 1, 9: 1, 10: 1})], curves).tune(12)
    assert curves.num_trials == {8: 4, 9: 4, 10: 4}


def test_a_task_that_networks_share_is_tuned_once_for_both() -> None:
    curves = Curves({8: lambda n: 1.0, 9: lambda n: 2.0, 10: lambda n: 3.0})
    networks = [network_of("a", {8: 1, 9: 3}), network_of("b", {9: 2, 10: 1})]
    result = scheduler_of(networks, curves).tune(60)
    assert len(result.tasks) == 3
    assert result.latencies_s == pytest.approx({"a": 1.0 + 6.0, "b": 4.0 + 3.0})


def test_f2_ends_when_every_network_is_fast_enough() -> None:
    curves = Curves({8: falling(1.0, 0.1, 20), 9: falling(1.0, 0.1, 20)})
    networks = [
        network_of("a", {8: 1}, required_latency_s=0.5),
        network_of("b", {9: 1}, required_latency_s=2.0),  # which it is from the beginning
    ]
    result = scheduler_of(networks, curves, objective="f2").tune(10_000)
    assert result.latencies_s["a"] < 0.5
    assert curves.num_trials[8] < 100
    assert curves.num_trials[9] == 16, "its first round only"


def test_f3_weighs_networks_by_their_speed_up() -> None:
    curves = Curves({8: falling(1.0, 0.1, 200), 9: falling(1.0, 0.1, 200)})
    networks = [network_of("a", {8: 1}, reference_latency_s=10.0), network_of("b", {9: 8}, reference_latency_s=0.1)]
    scheduler_of(networks, curves, objective="f3").tune(640)
    # Speed-ups are relative: a network eight times as slow is not eight times as important.
    assert curves.num_trials[8] == pytest.approx(curves.num_trials[9], abs=64)
    curves = Curves(curves.curves)
    scheduler_of(networks, curves, objective="f1").tune(640)
    assert curves.num_trials[9] > 2 * curves.num_trials[8]


def test_f4_leaves_a_task_that_does_not_improve() -> None:
    def stops_at_40(n: int) -> float:
        return 10.0 - min(n, 40) / 40

    curves = Curves({8: stops_at_40, 9: falling(1.0, 0.1, 500)})
    network = network_of("net", {8: 1, 9: 1})
    scheduler_of([network], curves, objective="f4", patience_trials=48).tune(2000)
    assert 40 + 48 <= curves.num_trials[8] < 40 + 48 + 32
    assert sum(curves.num_trials.values()) == 2000
    curves = Curves(curves.curves)
    scheduler_of([network], curves, objective="f1").tune(2000)
    assert curves.num_trials[8] > 500


def test_a_users_function_decides() -> None:
    curves = Curves({8: falling(1.0, 0.1, 100), 9: falling(1.0, 0.1, 100)})
    networks = [network_of("a", {8: 1}), network_of("b", {9: 1})]
    scheduler_of(networks, curves, objective=lambda latencies_s: 100 * latencies_s[0] + latencies_s[1]).tune(800)
    assert curves.num_trials[8] > 5 * curves.num_trials[9]


def test_a_task_whose_space_is_exhausted_drops_out() -> None:
    curves = Curves({8: lambda n: 9.0, 9: falling(1.0, 0.5, 10)}, num_programs={8: 3})
    result = scheduler_of([network_of("net", {8: 1, 9: 1})], curves).tune(200)
    assert curves.num_trials == {8: 3, 9: 197}
    assert result.num_trials == 200
    curves = Curves({8: lambda n: 9.0}, num_programs={8: 3})
    assert scheduler_of([network_of("net", {8: 1})], curves).tune(200).num_trials == 3


def test_a_task_that_always_fails_is_given_up_and_estimated() -> None:
    curves = Curves({8: lambda n: None, 9: falling(2.0, 1.0, 10)})
    result = scheduler_of([network_of("net", {8: 4, 9: 1})], curves).tune(400)
    assert curves.num_trials[8] == 3 * 16
    assert result.tasks[0].best is None
    assert result.latencies_s["net"] == pytest.approx(4.0 + 1.0, rel=0.01)


def test_nothing_valid_at_all_is_an_error() -> None:
    with pytest.raises(NoValidCandidateError, match="none of 48 candidates is valid .RUN_ERROR 48."):
        scheduler_of([network_of("net", {8: 1})], Curves({8: lambda n: None})).tune(400)


# --- time -------------------------------------------------------------------------------------------------------------


class Clock:
    """Time that passes only with trials."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.left_s: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def advance(self, progress: NetworkProgress) -> None:
        assert progress.time_left_s is not None
        self.left_s.append(progress.time_left_s)
        self.now_s += 1.0


def test_a_budget_ends_the_run_and_has_covered_the_heavy_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(scheduler, "time", clock)
    curves = Curves({size: falling(float(size), 1.0, 30) for size in range(8, 28)})
    network = network_of("net", dict.fromkeys(range(8, 28), 1))
    result = scheduler_of([network], curves).tune(budget_s=200, on_progress=clock.advance)
    covered = {size for size, count in curves.num_trials.items() if count}
    assert covered == set(range(16, 28)), "12 rounds of 16 seconds; the rest of the time is for finalists"
    assert result.elapsed_s == 192
    assert clock.left_s == [200.0 - n for n in range(192)]


def test_the_shortest_budget_is_enough_for_one_program() -> None:
    curves = Curves({8: falling(1.0, 0.5, 30), 9: falling(2.0, 0.5, 30)})
    result = scheduler_of([network_of("net", {8: 1, 9: 1})], curves).tune(budget_s=1e-9)
    assert (result.num_trials, curves.num_trials) == (1, {8: 0, 9: 1})


@pytest.mark.parametrize(("num_tasks", "budget_s", "search_s"), [(2, 100, 90), (20, 100, 86), (40, 100, 80)])
def test_finals_of_many_tasks_have_more_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, num_tasks: int, budget_s: float, search_s: float
) -> None:
    clock = Clock()
    monkeypatch.setattr(scheduler, "time", clock)
    sizes = range(8, 8 + num_tasks)
    curves = Curves({size: falling(1.0, 0.5, 30) for size in sizes})
    result = scheduler_of([network_of("net", dict.fromkeys(sizes, 1))], curves).tune(
        budget_s=budget_s, on_progress=clock.advance
    )
    assert search_s <= result.num_trials < search_s + 16, "a trial a second; the last round is finished"


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_second_run_goes_on_from_the_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    network = network_of("net", {8: 1, 9: 2})
    shapes: dict[int, Curve] = {8: falling(1.0, 0.5, 30), 9: falling(2.0, 0.5, 30)}
    first = Curves(shapes)
    scheduler_of([network], first).tune(100, records=path)
    second = Curves(shapes)
    result = scheduler_of([network], second).tune(160, records=path)
    assert result.num_trials == 160
    assert sum(second.num_trials.values()) == 160
    assert all(second.num_trials[size] >= count for size, count in first.num_trials.items())
    assert len(latest(read_records(path))) == 160
    third = Curves(shapes)
    scheduler_of([network], third).tune(160, records=path)
    assert third.num_trials == second.num_trials, "there is nothing left to do"
    assert [tuner.num_finalists for tuner in third.tuners.values()] == [[], []]


def test_records_of_one_network_serve_the_next_and_leave_it_its_trials(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    shapes: dict[int, Curve] = {8: falling(4.0, 2.0, 10), 9: falling(4.0, 2.0, 10)}
    scheduler_of([network_of("first", {8: 1})], Curves(shapes)).tune(320, records=path)
    curves = Curves(shapes)
    result = scheduler_of([network_of("second", {8: 1, 9: 1})], curves).tune(160, records=path)
    assert result.num_trials == 160
    assert curves.num_trials[8] <= 320 + 32, "it is tuned already"
    assert curves.num_trials[9] >= 160 - 32


def test_an_interrupt_is_raised_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"

    def interrupted(n: int) -> float:
        if n == 20:
            raise KeyboardInterrupt
        return 5.0 - n / 10

    network = network_of("net", {8: 1, 9: 1})
    with pytest.raises(KeyboardInterrupt):
        scheduler_of([network], Curves({8: interrupted, 9: lambda n: 1.0})).tune(400, records=path)
    before = list(read_records(path))
    assert len(before) == 16 + 16 + 4
    curves = Curves({8: lambda n: 5.0 - n / 10, 9: lambda n: 1.0})
    scheduler_of([network], curves).tune(64, records=path)
    assert list(read_records(path))[: len(before)] == before
    assert sum(curves.num_trials.values()) == 64


def test_every_task_has_a_final_of_those_that_are_close_and_the_first() -> None:
    curves = Curves({8: lambda n: 1.0 if n == 5 else 2.0, 9: lambda n: 1.0 + n % 3 / 100})
    scheduler_of([network_of("net", {8: 1, 9: 1})], curves).tune(40)
    assert curves.tuners[8].num_finalists == [2]
    assert curves.tuners[9].num_finalists == [5]


@pytest.mark.parametrize(
    ("finals", "num_finals", "latency_s"), [([1.1], 1, 1.1), ([2.0, 1.0], 2, 1.0), ([2.0, 1.9], 2, 1.9)]
)
def test_a_final_that_something_disturbed_is_repeated_once(
    finals: list[float], num_finals: int, latency_s: float, tmp_path: Path
) -> None:
    curves = Curves({8: lambda n: 1.0, 9: lambda n: 1.0})
    scheduler = scheduler_of([network_of("net", {8: 1, 9: 1})], curves)

    def with_finals(task: Task, context: Context, label: str) -> CurveTuner:
        tuner = curves(task, context, label)
        tuner.finals = list(finals) if task.outputs[0].shape[0] == 8 else []
        return tuner

    scheduler._make_tuner = with_finals
    result = scheduler.tune(32, records=tmp_path / "records.jsonl")
    assert len(curves.tuners[8].num_finalists) == num_finals
    assert len(curves.tuners[9].num_finalists) == 1
    assert result.latencies_s["net"] == pytest.approx(1.0 + latency_s)


def test_a_disturbed_final_is_repeated_before_those_of_lighter_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    curves = Curves({size: lambda n: 1.0 for size in range(8, 16)})
    scheduler = scheduler_of([network_of("net", {size: 32 - size for size in range(8, 16)})], curves)
    order: list[int] = []
    final_round = CurveTuner.final_round

    def noted(tuner: CurveTuner, *arguments: Any) -> Round | None:
        size = tuner.task.outputs[0].shape[0]
        tuner.finals = [2.0] if size == 8 and not order else []
        order.append(size)
        return final_round(tuner, *arguments)

    monkeypatch.setattr(CurveTuner, "final_round", noted)
    scheduler.tune(16 * 8)
    assert order == [8, 9, 10, 11, 8, 12, 13, 14, 15]


# --- contexts ---------------------------------------------------------------------------------------------------------


def dense(size: int) -> Task:
    """A product with a constant of `size` KiB."""
    a, w = te.placeholder((4, 16), name="A"), te.placeholder((16, 16 * size), name="W", constant=True)
    k = te.reduce_axis(16, name="k")
    return Task(
        [a, w], te.compute((4, 16 * size), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="C"), f"d{size}"
    )


def jobs_of(*networks: Network) -> list[tuple[str, str, list[float]]]:
    """The name, the context and the weights of each task."""
    tuner = CurveTuner(dense(1), "", lambda n: 1.0)
    return [(job.task.name, str(job.context), job.weights.tolist()) for job in make_jobs(networks, lambda *_: tuner)]


def test_the_constants_of_a_network_are_as_cold_as_all_of_them_make_them() -> None:
    plain = parse("gmm:24x32x40")
    tasks = (WeightedTask(dense(4), 3), WeightedTask(dense(2), 2), WeightedTask(plain, 1))
    assert str(deployed_context(tasks)) == "cold-16K"
    assert jobs_of(Network("net", tasks)) == [
        ("d4", "cold-16K", [3.0]),
        ("d2", "cold-16K", [2.0]),
        (plain.name, "warm", [1.0]),
    ]
    assert {context for _, context, _ in jobs_of(Network("net", tasks, context=WARM))} == {"warm"}
    assert jobs_of(Network("net", tasks, context=Context(1 << 20)))[0][1] == "cold-1M"


def test_a_task_that_networks_share_is_one_in_each_context() -> None:
    shared, plain = WeightedTask(dense(4), 1), WeightedTask(parse("gmm:24x32x40"), 1)
    small, large = Network("small", (shared, plain)), Network("large", (shared, plain, WeightedTask(dense(60), 1)))
    assert jobs_of(small, large) == [
        ("d4", "cold-4K", [1.0, 0.0]),
        (plain.task.name, "warm", [1.0, 1.0]),
        ("d4", "cold-64K", [0.0, 1.0]),
        ("d60", "cold-64K", [0.0, 1.0]),
    ]
    assert len(jobs_of(replace(small, context=WARM), replace(large, context=WARM))) == 3


def test_records_are_resumed_in_their_own_context(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tasks = (WeightedTask(dense(1), 1), WeightedTask(dense(2), 1))
    for context in (None, WARM):
        network = Network("net", tasks, context=context)
        assert TaskScheduler([network], target=TARGET, threads=1).tune(4, records=path).num_trials == 4
    records = list(read_records(path))
    assert {record.context for record in records} == {"warm", "cold-3K"}
    assert len(latest(records)) == 8, "four in each"


# --- several rounds at once -------------------------------------------------------------------------------------------


class WideCurveMeasurer(CurveMeasurer):
    """Takes three rounds at once, and measures the last that came first."""

    @property
    def has_room(self) -> bool:
        return len({id(curve) for _, curve, _ in self.waiting}) < 3

    def next_result(self) -> Result:
        self.waiting.insert(0, self.waiting.pop())
        return super().next_result()


def test_rounds_of_several_tasks_are_under_way_at_once() -> None:
    seen: list[str] = []
    curves = Curves({size: falling(1.0, 0.5, 30) for size in (8, 9, 10, 11)})
    network = network_of("net", dict.fromkeys(curves.curves, 1))
    result = scheduler_of([network], curves).tune(
        200, measurer=WideCurveMeasurer(curves.curves), on_progress=lambda progress: seen.append(progress.task.name)
    )
    assert result.num_trials == len(seen) == sum(curves.num_trials.values()) == 200, "none too many is asked for"
    assert seen[:32] == ["t10"] * 16 + ["t11"] * 16, "the last that came first"
    assert set(seen[32:64]) == {"t10", "t11"}, "those that have a round under way wait for it"
    assert [tuner.num_finalists for tuner in curves.tuners.values()] == [[5]] * 4


# --- arguments --------------------------------------------------------------------------------------------------------


def test_progress_tells_where_the_run_stands() -> None:
    seen: list[NetworkProgress] = []
    curves = Curves({8: lambda n: 4.0 - n / 100, 9: lambda n: 1.0})
    scheduler_of([network_of("net", {8: 2, 9: 1})], curves).tune(32, on_progress=seen.append)
    first, last = seen[0], seen[-1]
    assert (first.num_trials, first.max_trials, first.num_tasks, first.num_unmeasured) == (1, 32, 2, 1)
    assert first.latencies_s == pytest.approx({"net": 2 * 4.0 + 1.0})
    assert (last.num_trials, last.num_unmeasured, last.statuses) == (32, 0, {"OK": 32})
    assert last.latencies_s == pytest.approx({"net": 2 * 3.85 + 1.0})
    assert last.task.name == "t9"
    assert last.time_left_s == 0.0


def test_wrong_arguments_are_named() -> None:
    network = network_of("net", {8: 1})
    curves = Curves({8: lambda n: 1.0})
    with pytest.raises(UsageError, match="at least one network"):
        TaskScheduler([])
    with pytest.raises(UsageError, match="two networks are called 'net'"):
        TaskScheduler([network, network])
    with pytest.raises(UsageError, match="unknown scheduling strategy 'greedy'; use one of: gradient, round_robin"):
        TaskScheduler([network], strategy="greedy")
    with pytest.raises(UsageError, match="threads is 0"):
        TaskScheduler([network], threads=0)
    with pytest.raises(UsageError, match="trials is 0"):
        scheduler_of([network], curves).tune(0)
    with pytest.raises(UsageError, match="budget_s is -1"):
        scheduler_of([network], curves).tune(budget_s=-1)


def test_networks_without_tasks_need_no_tuning() -> None:
    assert TaskScheduler([Network("views", ())]).tune().latencies_s == {"views": 0.0}


def test_tasks_of_two_networks_are_tuned_from_start_to_end(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    shared, other = parse("gmm:24x32x40"), parse("sfm:1x16x32")
    networks = [
        Network("a", (WeightedTask(shared, 2),)),
        Network("b", (WeightedTask(shared, 1), WeightedTask(other, 1))),
    ]
    statuses: list[str] = []
    result = TaskScheduler(networks, target=TARGET, threads=1).tune(
        12, records=path, on_progress=lambda progress: statuses.append(progress.last.status)
    )
    assert statuses == ["OK"] * 12
    assert {tuned.num_trials for tuned in result.tasks} == {6}
    first, second = (tuned.latency_s for tuned in result.tasks)
    assert result.latencies_s == pytest.approx({"a": 2 * first, "b": first + second})
    a, b = (np.random.default_rng(0).normal(size=t.shape).astype(np.float32) for t in shared.inputs)
    best = result.tasks[0].best
    assert best is not None
    assert best.workload == "a/gmm_24x32x40"
    trace = best_trace(read_records(path), shared, TARGET, 1)
    np.testing.assert_allclose(build(trace.apply(shared), TARGET, 1)(a, b), a @ b, rtol=1e-4, atol=1e-4)
    resumed = TaskScheduler(networks, target=TARGET, threads=1).tune(16, records=path)
    assert resumed.num_trials == 16
    assert len(latest(read_records(path))) == 16
