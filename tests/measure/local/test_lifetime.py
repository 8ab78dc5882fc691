"""What is left of the measuring processes when the tuner is interrupted or killed: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.measure.local.process_tree import descendants, is_alive

ROOT = Path(__file__).parents[3]

# Not guarded by __name__: measuring works from any script.
STUCK_TUNER = """
from tests.measure.local.programs import BAD, good, measure, measurer

with measurer({compiler!r}, run_timeout_s=300, build_timeout_s=300) as m:
    measure(m, [good()])
    print("measuring", flush=True)
    measure(m, [BAD])
"""


def start_stuck_tuner(compiler: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A tuner in the middle of a trial that does not end, and the processes that it has started."""
    tuner = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-c", STUCK_TUNER.format(compiler=compiler)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}/src:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tuner.stdout is not None
    assert tuner.stdout.readline() == "measuring\n"
    time.sleep(0.5)  # until the bad candidate is compiling or running
    workers = descendants(tuner.pid)
    assert len(workers) >= 3
    return tuner, workers


def wait_until_gone(pids: list[int], seconds: float) -> list[int]:
    """Those that are left after so long."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s and any(map(is_alive, pids)):
        time.sleep(0.02)
    return [pid for pid in pids if is_alive(pid)]


@pytest.mark.parametrize("compiler", ["loops_for_ever", "hangs"])
def test_an_interrupt_ends_all_processes_and_is_raised(compiler: str) -> None:
    tuner, workers = start_stuck_tuner(compiler)
    for pid in workers:
        os.kill(pid, signal.SIGINT)  # Ctrl-C may reach them too: they leave it to the tuner
    tuner.send_signal(signal.SIGINT)
    _, errors = tuner.communicate(timeout=20)
    assert wait_until_gone(workers, 0.0) == []
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize("compiler", ["loops_for_ever", "hangs"])
def test_a_killed_tuner_leaves_no_process_behind(compiler: str) -> None:
    tuner, workers = start_stuck_tuner(compiler)
    tuner.kill()
    tuner.communicate()
    assert wait_until_gone(workers, 10.0) == []
