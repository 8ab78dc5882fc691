"""Candidates that hang, crash, lie or take their process down: each costs one trial, with the right status."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.measure.local.process_tree import children, descendants
from tests.measure.local.programs import BAD, good, illegal, measure, measurer
from tilewright.errors import TilewrightError
from tilewright.measure import Measurement
from tilewright.measure.local import workers


@pytest.mark.parametrize(
    ("compiler", "status", "error"),
    [
        ("writes_to_nowhere", "RUN_ERROR", "the runner died of SIGSEGV"),
        ("aborts", "RUN_ERROR", "the runner died of SIGABRT"),
        ("exits", "RUN_ERROR", "the runner died with exit code 7"),
        ("fails", "RUN_ERROR", "returned status 5"),
        ("writes_one_element", "WRONG_RESULT", "output B: 4096 of 4096 elements"),
        ("is_killed", "BUILD_ERROR", "the builder died of SIGKILL while it compiled this candidate"),
        (
            "dies_with_words",
            "BUILD_ERROR",
            "SIGABRT, saying 'cannot select this instruction', while",
        ),
        ("rejects", "BUILD_ERROR", "no code for that"),
        ("makes_a_mistake", "BUILD_ERROR", "KeyError: 'a mistake in the compiler'"),
    ],
)
def test_a_bad_candidate_costs_one_trial(compiler: str, status: str, error: str) -> None:
    with measurer(compiler) as m:
        results = measure(m, [good(8), BAD, good(16), BAD, good(32)])
    assert [r.status for r in results] == ["OK", status, "OK", status, "OK"]
    assert error in results[1].error
    assert results[1].latency_s is None


def test_a_kernel_that_never_returns_is_stopped_in_time() -> None:
    with measurer("loops_for_ever", run_timeout_s=2) as m:
        measure(m, [good()])
        start_s = time.monotonic()
        results = measure(m, [BAD, good()])
        assert 2 <= time.monotonic() - start_s < 10
    assert [r.status for r in results] == ["RUN_TIMEOUT", "OK"]
    assert "longer than 2 s" in results[0].error


def test_a_compiler_that_never_returns_is_stopped_in_time() -> None:
    with measurer("hangs", build_timeout_s=1) as m:
        start_s = time.monotonic()
        results = measure(m, [BAD, good(8), good(16), BAD])
        assert 1 <= time.monotonic() - start_s < 20
    assert [r.status for r in results] == ["BUILD_TIMEOUT", "OK", "OK", "BUILD_TIMEOUT"]
    assert "build_timeout_s=1" in results[0].error
    assert results[0].build_s >= 1


def test_an_illegal_trace_is_invalid_and_says_why() -> None:
    with measurer() as m:
        results = measure(m, [illegal(), good()])
    assert [r.status for r in results] == ["INVALID", "OK"]
    assert "no_such_loop" in results[0].error


def test_a_kernel_that_spoils_the_inputs_harms_no_other_candidate() -> None:
    with measurer("spoils_its_input_slowly") as m:
        results = measure(m, [good(8), BAD, good(16), good(32)])
    assert [r.status for r in results[2:]] == ["OK", "OK"]


def test_a_runner_killed_between_trials_costs_nothing() -> None:
    before = children(os.getpid())
    with measurer() as m:
        (server,) = set(children(os.getpid())) - set(before)

        def kill_workers(index: int, measurement: Measurement) -> None:
            if index == 0:
                for pid in descendants(server):
                    os.kill(pid, signal.SIGKILL)

        results = measure(m, [good(8), good(16), good(32)], on_result=kill_workers)
        again = measure(m, [good(64)])  # the builders were killed too
    assert [r.status for r in results + again] == ["OK"] * 4


def test_a_builder_that_is_killed_once_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TEST_ONCE", str(tmp_path / "killed"))
    with measurer("is_killed_once") as m:
        assert [r.status for r in measure(m, [BAD, good(8)])] == ["OK", "OK"]
    assert (tmp_path / "killed").exists()


def test_a_kernel_whose_runner_is_killed_has_another_try() -> None:
    before = children(os.getpid())
    with measurer("loops_for_ever", run_timeout_s=1) as m:
        (server,) = set(children(os.getpid())) - set(before)

        def kill_workers() -> None:
            time.sleep(0.4)
            for pid in descendants(server):
                os.kill(pid, signal.SIGKILL)

        killing = threading.Thread(target=kill_workers)
        killing.start()
        (result,) = measure(m, [BAD])
        killing.join()
    assert result.status == "RUN_TIMEOUT"


@pytest.mark.parametrize("whom", ["its workers", "the server"])
def test_processes_that_are_stopped_are_replaced_and_cost_nothing(whom: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ANSWER_S", 4.0)  # a server starts in less
    before = children(os.getpid())
    with measurer(build_timeout_s=1, run_timeout_s=1) as m:
        (server,) = set(children(os.getpid())) - set(before)

        def stop(index: int, measurement: Measurement) -> None:
            if index == 0:
                for pid in descendants(server) if whom == "its workers" else [server]:
                    os.kill(pid, signal.SIGSTOP)

        results = measure(m, [good(8), good(16)], on_result=stop)
        again = measure(m, [good(64)])  # the builders were stopped too
    assert [r.status for r in results + again] == ["OK"] * 3
    assert children(os.getpid()) == before


def test_the_fork_server_killed_between_trials_costs_nothing() -> None:
    before = children(os.getpid())
    with measurer() as m:
        (server,) = set(children(os.getpid())) - set(before)

        def kill_server(index: int, measurement: Measurement) -> None:
            if index == 0:
                os.kill(server, signal.SIGKILL)

        results = measure(m, [good(8), good(16), good(32)], on_result=kill_server)
        again = measure(m, [good(64)])
    assert [r.status for r in results + again] == ["OK"] * 4
    assert children(os.getpid()) == before


def test_a_compiler_that_cannot_be_imported_is_an_error_of_the_user() -> None:
    before = children(os.getpid())
    with (
        measurer("no_such_compiler") as m,
        pytest.raises(TilewrightError, match="no_such_compiler.*cannot be imported"),
    ):
        measure(m, [good()])
    assert children(os.getpid()) == before
