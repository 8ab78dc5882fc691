"""Code of another architecture runs in an emulator, and its answers are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.measure import WARM, MeasureOptions
from tilewright.measure.compiler import compile_trace
from tilewright.measure.fleet import emulated
from tilewright.measure.fleet.emulated import EmulatedRunner
from tilewright.measure.protocols import Built
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.measurer_checks import doubling, product, split_program

TARGET = Target.parse("aarch64")
RunnerOf = Callable[[Task, MeasureOptions], EmulatedRunner]


@pytest.fixture
def runner_of() -> Iterator[RunnerOf]:
    made: list[EmulatedRunner] = []

    def make(task: Task, options: MeasureOptions) -> EmulatedRunner:
        made.append(EmulatedRunner("qemu-aarch64", TARGET, 1, options))
        made[-1].prepare(task, WARM)
        return made[-1]

    yield make
    for runner in made:
        runner.reset()


def built(task: Task) -> Built:
    return Built(compile_trace(task, split_program(task, 2), TARGET, 1), 0.1)


@pytest.mark.qemu
@pytest.mark.parametrize("task", [doubling(), product()], ids=lambda task: task.name)
def test_an_aarch64_kernel_runs_and_its_constants_are_packed_there(task: Task, runner_of: RunnerOf) -> None:
    runner, kernel = runner_of(task, MeasureOptions()), built(task)
    found = runner.run(kernel, None)
    assert (found.status, found.error, len(found.runs_s)) == ("OK", "", 3)
    assert len(runner.take_turn(kernel).runs_s) == 1


@pytest.mark.qemu
def test_a_kernel_of_another_task_is_found_out(runner_of: RunnerOf) -> None:
    runner = runner_of(doubling(), MeasureOptions())
    assert runner._expected is not None
    runner._expected.outputs = [2 * output for output in runner._expected.outputs]
    assert runner.run(built(doubling()), None).status == "WRONG_RESULT"


@pytest.mark.qemu
def test_a_kernel_that_does_not_link_or_takes_too_long_costs_itself(runner_of: RunnerOf) -> None:
    good = built(doubling())
    wrong = replace(good, binary=replace(good.binary, entry=replace(good.binary.entry, symbol="missing")))
    found = runner_of(doubling(), MeasureOptions()).run(wrong, None)
    assert found.status == "RUN_ERROR"
    assert "missing" in found.error
    found = runner_of(doubling(), MeasureOptions(run_timeout_s=0.001)).run(good, None)
    assert (found.status, found.error) == ("RUN_TIMEOUT", "running took longer than 0.001 s (see run_timeout_s)")


@pytest.mark.qemu
def test_the_turns_of_a_kernel_are_linked_once_and_one_that_takes_long_is_called_once(
    runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs: list[str] = []
    run = EmulatedRunner._run

    def counted(self: EmulatedRunner, timeout_s: float, *command: str) -> str:
        programs.append(Path(command[0]).name)
        return run(self, timeout_s, *command)

    monkeypatch.setattr(EmulatedRunner, "_run", counted)
    runner, kernel = runner_of(doubling(), MeasureOptions()), built(doubling())
    assert runner.take_turn(kernel).status == "OK"
    monkeypatch.setattr(emulated, "_LONG_S", 0.0)
    found = runner.run(kernel, None)
    assert (found.status, len(found.runs_s)) == ("OK", 1)
    assert programs == ["aarch64-linux-gnu-gcc", "qemu-aarch64", "qemu-aarch64"]


def test_a_missing_emulator_is_an_error_of_the_machine() -> None:
    with pytest.raises(TilewrightError, match="qemu-nothing is not installed here"):
        EmulatedRunner("qemu-nothing", TARGET, 1, MeasureOptions())
