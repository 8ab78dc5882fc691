"""A second run with the same seed is the same search, in whichever process: given the same measurements."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
from tests.tuning.fake_measurer import FakeMeasurer
from tilewright.target import Target
from tilewright.tuning.tuner import tune
from tilewright.workloads import parse

fake = FakeMeasurer(Target.of("llvm -mcpu=haswell"), 2)
task = parse("c2d:1x8x8x8,16,3x3,s1,p1+relu")
tune(task, trials=40, threads=2, target=fake.target, seed=int(sys.argv[1]), measurer=fake)
for batch in fake.batches:
    print(batch.best_latency_s, batch.turns, *(trace.to_json() for trace in batch.traces), sep="\\n")
"""


def _search(seed: int, hash_seed: int) -> str:
    """All that a search asks for, in a process whose sets have an order of their own."""
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(seed)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def test_the_same_seed_gives_the_same_search_in_another_process_and_another_seed_another() -> None:
    first = _search(seed=1, hash_seed=1)
    assert first.count("\n") > 40
    assert _search(seed=1, hash_seed=2) == first
    assert _search(seed=2, hash_seed=1) != first
