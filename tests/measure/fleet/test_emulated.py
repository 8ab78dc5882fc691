"""Code of another architecture runs in an emulator, and its answers are checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.errors import TilewrightError
from tilewright.measure import WARM, MeasureOptions
from tilewright.measure.compiler import compile_trace
from tilewright.measure.fleet.emulated import EmulatedRunner
from tilewright.measure.protocols import Built
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.measurer_checks import doubling, product, split_program

TARGET = Target.parse("aarch64")


def built(task: Task) -> Built:
    return Built(compile_trace(task, split_program(task, 2), TARGET, 1), 0.1)


@pytest.mark.qemu
@pytest.mark.parametrize("task", [doubling(), product()], ids=lambda task: task.name)
def test_an_aarch64_kernel_runs_and_its_constants_are_packed_there(task: Task) -> None:
    runner = EmulatedRunner("qemu-aarch64", TARGET, 1, MeasureOptions())
    runner.prepare(task, WARM)
    found = runner.run(built(task), None)
    assert (found.status, found.error, len(found.runs_s)) == ("OK", "", 3)
    assert len(runner.take_turn(built(task)).runs_s) == 1


@pytest.mark.qemu
def test_a_kernel_of_another_task_is_found_out() -> None:
    runner = EmulatedRunner("qemu-aarch64", TARGET, 1, MeasureOptions())
    runner.prepare(doubling(), WARM)
    runner._expected = [2 * expected for expected in runner._expected]
    assert runner.run(built(doubling()), None).status == "WRONG_RESULT"


@pytest.mark.qemu
def test_a_kernel_that_does_not_link_or_takes_too_long_costs_itself() -> None:
    runner = EmulatedRunner("qemu-aarch64", TARGET, 1, MeasureOptions())
    runner.prepare(doubling(), WARM)
    good = built(doubling())
    wrong = replace(good, binary=replace(good.binary, entry=replace(good.binary.entry, symbol="missing")))
    found = runner.run(wrong, None)
    assert found.status == "RUN_ERROR"
    assert "missing" in found.error
    hurried = EmulatedRunner("qemu-aarch64", TARGET, 1, MeasureOptions(run_timeout_s=0.001))
    hurried.prepare(doubling(), WARM)
    assert hurried.run(good, None).status == "RUN_TIMEOUT"


def test_a_missing_emulator_is_an_error_of_the_machine() -> None:
    with pytest.raises(TilewrightError, match="qemu-nothing is not installed here"):
        EmulatedRunner("qemu-nothing", TARGET, 1, MeasureOptions())
