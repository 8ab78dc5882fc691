"""Measurements of candidates that work: latencies, what is checked, what is reported and when."""

from __future__ import annotations

import os
import signal
import statistics

import numpy as np
import pytest

import tilewright as tw
from tests.measure.process_tree import children, descendants, is_alive
from tests.measure.programs import BAD, good, illegal, measurer, scale_task
from tilewright import te
from tilewright.codegen import KernelBinary
from tilewright.errors import CodegenError, UsageError
from tilewright.measure import STATUSES, Measurement, MeasureOptions, Measurer
from tilewright.measure.compiler import compile_trace
from tilewright.measure.running import Runner
from tilewright.runtime.build import load_binary
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task


def packed_product() -> tuple[Task, Trace]:
    """A matrix product whose constant is packed ahead, with two outputs of different types."""
    a, b = te.placeholder((16, 24), name="A"), te.placeholder((24, 32), name="B", constant=True)
    r = te.reduce_axis(24, name="r")
    c = te.compute((16, 32), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((16, 32), lambda i, j: te.cast(c[i, j] > 0.0, "int32"), name="D")
    task = Task([a, b], [c, d])
    s = tw.Schedule(task)
    i, j, k = s["C"].loops
    j0, j1 = s["C"].split(j, 16)
    s["C"].reorder(j0, i, k, j1)
    s["C"].vectorize(j1)
    s["B"].pack(s["C"])
    return task, Trace(s.steps)


def test_a_latency_is_the_median_of_its_runs() -> None:
    with measurer() as m:
        (result,) = m.measure([good()])
    assert result.status == "OK"
    assert len(result.runs_s) >= 3
    assert result.latency_s == statistics.median(result.runs_s)
    assert 0 < result.latency_s < 0.1
    assert 0 < result.build_s < 10
    assert result.error == ""


def test_results_are_reported_as_they_come_failures_to_build_first() -> None:
    seen: list[tuple[int, str]] = []
    with measurer() as m:
        results = m.measure([good(8), good(16), illegal()], on_result=lambda i, r: seen.append((i, r.status)))
        assert m.measure([]) == []
    assert seen == [(2, "INVALID"), (0, "OK"), (1, "OK")]
    assert [r.status for r in results] == ["OK", "OK", "INVALID"]


def test_a_hopeless_candidate_is_timed_once_and_not_checked() -> None:
    with measurer("spoils_its_input_slowly") as m:
        (result,) = m.measure([BAD], best_latency_s=1e-6)
    assert result.status == "OK"  # its output is wrong, but it cannot win
    assert len(result.runs_s) == 1


def test_what_seems_the_best_is_timed_again_and_only_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    latencies_s = iter([0.9, 0.7, 0.85, 0.75, 0.79, 0.78, 0.77])
    monkeypatch.setattr(Runner, "run", lambda *_: Measurement("OK", next(latencies_s)))
    with measurer() as m:
        results = m.measure([good(8), good(16), good(64), good(32)], best_latency_s=0.8)
    assert [r.latency_s for r in results] == [0.9, 0.85, 0.79, 0.77]
    assert next(latencies_s, None) is None


def test_packed_constants_and_several_outputs_are_measured_and_checked() -> None:
    task, trace = packed_product()
    with Measurer(task, Target.native(), 2) as m:
        results = m.measure([trace, Trace()])
    assert [(r.status, r.error) for r in results] == [("OK", ""), ("OK", "")]


def test_programs_are_compared_in_turns() -> None:
    options = {"max_total_ms": 1.0, "min_repeat_ms": 0.1}
    with measurer("writes_one_element", **options) as m:
        results = m.compare([good(8), BAD, illegal(), good(32)], turns=4)
    assert [r.status for r in results] == ["OK", "WRONG_RESULT", "INVALID", "OK"]
    for result in (results[0], results[3]):
        assert len(result.runs_s) == 4
        assert result.latency_s == statistics.median(result.runs_s)


def test_one_measurer_turns_from_task_to_task_and_keeps_its_fork_server() -> None:
    before = children(os.getpid())
    task, trace = packed_product()
    with measurer() as m:
        m.measure([good()])
        servers = set(children(os.getpid())) - set(before)
        m.turn_to(task)
        assert [r.status for r in m.measure([trace, good()])] == ["OK", "INVALID"]
        m.turn_to(scale_task())
        assert [r.status for r in m.measure([good(), trace])] == ["OK", "INVALID"]
        assert [r.status for r in m.compare([good(8), good(16)], turns=2)] == ["OK", "OK"]
        assert set(children(os.getpid())) - set(before) == servers


def test_a_new_fork_server_measures_the_task_that_was_turned_to() -> None:
    before = children(os.getpid())
    task, trace = packed_product()
    with measurer() as m:
        m.measure([good()])
        m.turn_to(task)
        (server,) = set(children(os.getpid())) - set(before)
        os.kill(server, signal.SIGKILL)
        assert [r.status for r in m.measure([trace])] == ["OK"]


def test_after_an_error_in_the_report_the_measurer_goes_on_with_new_processes() -> None:
    def fail(index: int, measurement: Measurement) -> None:
        raise OSError("no space left")

    with measurer() as m:
        with pytest.raises(OSError, match="no space left"):
            m.measure([good(8), good(16)], on_result=fail)
        assert [r.status for r in m.measure([good(8), good(16)])] == ["OK", "OK"]


def test_no_process_is_left() -> None:
    before = descendants(os.getpid())
    with measurer() as m:
        m.measure([good()])
        workers = set(descendants(os.getpid())) - set(before)
        assert len(workers) >= 3
    assert not any(map(is_alive, workers))
    assert descendants(os.getpid()) == before


def test_code_of_another_machine_is_not_measured_here() -> None:
    with pytest.raises(CodegenError, match="cannot run code for llvm"):
        Measurer(scale_task(), Target.parse("riscv64"), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"min_repeats": 0}, "min_repeats is 0; it must be above 0"), ({"compiler": "no_colon"}, "'module:function'")],
)
def test_options_are_checked(options: dict[str, int | str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MeasureOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("best_s", "deadline_s"), [(None, 10.0), (0.002, 1.02), (2.0, 10.0)])
def test_the_time_limit_of_a_run_follows_the_best(best_s: float | None, deadline_s: float) -> None:
    assert MeasureOptions().run_deadline_s(best_s) == pytest.approx(deadline_s)


def test_a_binary_loads_as_the_kernel_that_was_compiled() -> None:
    task, trace = packed_product()
    binary = compile_trace(task, trace, Target.native(), 1)
    assert isinstance(binary, KernelBinary)
    rng = np.random.default_rng(0)
    a, b = rng.random((16, 24), np.float32), rng.random((24, 32), np.float32)
    c, d = load_binary(binary, task, 1).bind(B=b)(a)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    np.testing.assert_array_equal(d, 1)


def test_the_statuses_are_those_that_records_hold() -> None:
    assert STATUSES == (
        "OK",
        "INVALID",
        "BUILD_ERROR",
        "BUILD_TIMEOUT",
        "RUN_ERROR",
        "RUN_TIMEOUT",
        "WRONG_RESULT",
    )
