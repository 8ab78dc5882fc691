"""Whole networks next to each other, each in processes of its own: `compare` starts them in turns.

The same network takes some percent more or less from one process to the next, and then for as long as the process
lives; where its arrays come to lie is the likely cause. Two networks in one process are compared with one such draw
each; here every round draws again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

LEAST_RUNS = 5
RUNS_S = 1.0
"""A process runs its network for so long."""


def compare(models: Mapping[str, Path], inputs: Path, threads: int, rounds: int) -> dict[str, list[float]]:
    """Seconds that a run of each model takes, one for each round; those of a round are of processes in a row.

    `models` are files that `tilewright compile` writes, `inputs` a `.npz` of what they are given.
    """
    found: dict[str, list[float]] = {name: [] for name in models}
    for number in range(rounds):
        names = list(models) if number % 2 == 0 else list(models)[::-1]
        for name in names:
            found[name].append(_run_fresh(models[name], inputs, threads))
    return found


def _run_fresh(model: Path, inputs: Path, threads: int) -> float:
    command = [sys.executable, "-m", "benchmarks.fresh_runs", str(model), str(inputs), str(threads), str(RUNS_S)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["run_s"])


def main(model: str, inputs: str, threads: str, at_least_s: str) -> None:
    """Load a model, run it for a while, and print the median of its runs as JSON."""
    import numpy as np

    from tilewright import InferenceSession
    from tilewright.runtime import Nearness

    with np.load(inputs, allow_pickle=False) as file:
        feed = {name: file[name] for name in file.files}
    session = InferenceSession(model, threads=int(threads))
    nearness = Nearness(int(threads))
    session.run(None, feed)
    runs_s: list[float] = []
    while len(runs_s) < LEAST_RUNS or sum(runs_s) < float(at_least_s):
        nearness.rest()
        session.run(None, feed)
        start_s = time.perf_counter()
        session.run(None, feed)
        runs_s.append(time.perf_counter() - start_s)
    print(json.dumps({"run_s": median(runs_s)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
