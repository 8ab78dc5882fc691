"""Measurements of candidates that work: latencies, what is checked, what is reported and when."""

from __future__ import annotations

import os
import signal
import statistics

import numpy as np
import pytest

import tilewright as tw
from tests.measure.local.process_tree import children, descendants, is_alive
from tests.measure.local.programs import BAD, good, illegal, measure, measurer, scale_task
from tilewright import te
from tilewright.codegen import KernelBinary
from tilewright.errors import CodegenError, UsageError
from tilewright.measure import STATUSES, Batch, MeasureOptions, Measurer, measure_all
from tilewright.measure.compiler import compile_trace
from tilewright.measure.local import LocalMeasurer
from tilewright.runtime.build import load_binary
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.measurer_checks import MeasurerChecks


class TestLocalMeasurer(MeasurerChecks):
    def make(self) -> Measurer:
        return LocalMeasurer(Target.native(), 2, MeasureOptions(num_builders=2))


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
        (result,) = measure(m, [good()])
    assert result.status == "OK"
    assert len(result.runs_s) >= 3
    assert result.latency_s == statistics.median(result.runs_s)
    assert 0 < result.latency_s < 0.1
    assert 0 < result.build_s < 10
    assert result.error == ""


def test_a_hopeless_candidate_is_timed_once_and_not_checked() -> None:
    with measurer("spoils_its_input_slowly") as m:
        (result,) = measure(m, [BAD], best_latency_s=1e-6)
    assert result.status == "OK"  # its output is wrong, but it cannot win
    assert len(result.runs_s) == 1


def test_packed_constants_and_several_outputs_are_measured_and_checked() -> None:
    task, trace = packed_product()
    with LocalMeasurer(Target.native(), 2) as m:
        results = measure_all(m, Batch(task, (trace, Trace())))
    assert [(r.status, r.error) for r in results] == [("OK", ""), ("OK", "")]


def test_a_wrong_answer_in_a_comparison_is_found() -> None:
    with measurer("writes_one_element", max_total_ms=1.0, min_repeat_ms=0.1) as m:
        results = measure_all(m, Batch(scale_task(), (good(8), BAD, illegal(), good(32)), turns=4))
    assert [r.status for r in results] == ["OK", "WRONG_RESULT", "INVALID", "OK"]


def test_one_measurer_turns_from_task_to_task_and_keeps_its_fork_server() -> None:
    before = children(os.getpid())
    task, trace = packed_product()
    with measurer() as m:
        measure(m, [good()])
        servers = set(children(os.getpid())) - set(before)
        assert [r.status for r in measure_all(m, Batch(task, (trace, good())))] == ["OK", "INVALID"]
        assert [r.status for r in measure(m, [good(), trace])] == ["OK", "INVALID"]
        assert set(children(os.getpid())) - set(before) == servers


def test_a_new_fork_server_measures_any_task() -> None:
    before = children(os.getpid())
    task, trace = packed_product()
    with measurer() as m:
        measure(m, [good()])
        (server,) = set(children(os.getpid())) - set(before)
        os.kill(server, signal.SIGKILL)
        assert [r.status for r in measure_all(m, Batch(task, (trace,)))] == ["OK"]


def test_no_process_is_left() -> None:
    before = descendants(os.getpid())
    with measurer() as m:
        measure(m, [good()])
        workers = set(descendants(os.getpid())) - set(before)
        assert len(workers) >= 3
    assert not any(map(is_alive, workers))
    assert descendants(os.getpid()) == before


def test_code_of_another_machine_is_not_measured_here() -> None:
    with pytest.raises(CodegenError, match="cannot run code for llvm"):
        LocalMeasurer(Target.parse("riscv64"), 1)


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
