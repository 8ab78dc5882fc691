"""`python -m benchmarks.tuning`: how long `tilewright tune` takes from start to end, and how fast what it finds is.

The program runs as its users run it, in a process of its own and without records. The kernel that it found is then
timed in turns with OpenBLAS. Exits with 1 if a case falls short.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import arguments
from benchmarks.contest import Contest, RatioCase, Run
from benchmarks.machine import describe_machine
from benchmarks.peers import numpy_gemm
from benchmarks.results import NotRun, RatioResult, run_case
from benchmarks.table import heading, markdown
from benchmarks.timing import METHOD, Plan
from benchmarks.tuned import prepare, tune_workload
from tilewright import workloads
from tilewright.te import evaluate


@dataclass(frozen=True, slots=True)
class Quoted:
    """Figures that are not measured here: TVM MetaSchedule 0.27 on the development machine, as many trials."""

    tuning_s: float
    latency_ms: float


@dataclass(frozen=True, slots=True)
class Case:
    """A workload, how long tuning may take, the product whose GFLOP/s in OpenBLAS are the yardstick, and the share."""

    workload: str
    limit_s: float
    yardstick: tuple[int, int, int]
    required: float
    quoted: Quoted


CASES = (
    Case("gmm:512x512x512", 10.0, (512, 512, 512), 0.90, Quoted(414.0, 3.63)),
    Case("c2d:1x28x28x128,128,3x3,s1,p1+relu", 15.0, (1024, 1024, 1024), 0.80, Quoted(267.0, 3.91)),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What one case gave."""

    workload: str
    threads: int
    trials: int
    tuning_s: float
    limit_s: float
    latency_ms: float
    speed: RatioResult
    metaschedule_quoted: Quoted

    @property
    def passed(self) -> bool:
        return self.tuning_s <= self.limit_s and self.speed.passed


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen cases and print them."""
    options = _parse(argv)
    chosen = [case for case in CASES if options.case in case.workload]
    if not chosen:
        print(f"no case matches; they are {', '.join(case.workload for case in CASES)}", file=sys.stderr)
        return 2
    rows: list[Row | NotRun] = []
    for case in chosen:
        with tempfile.TemporaryDirectory() as directory:
            rows.append(run(case, options.trials, options.threads, options.seed, options.rounds, Path(directory)))
    print(as_json(rows) if options.format == "json" else as_table(rows))
    return 0 if all(isinstance(row, NotRun) or row.passed for row in rows) else 1


def run(case: Case, trials: int, threads: int, seed: int, rounds: int, directory: Path) -> Row | NotRun:
    """Tune in a process of its own, then time what was found."""
    records = directory / "records.jsonl"
    tuning_s = tuning_time_s(case.workload, trials, threads, seed, records)
    # All trials are in the records: this only compares the finalists again, and compiles the best.
    result = tune_workload(case.workload, records, trials, threads, seed)
    kernel = result.compile()
    flop = nominal_flop(case.workload)

    def contest(_: int) -> Contest:
        ready = prepare(result.task, kernel)
        expected = evaluate(result.task, *ready.inputs.values())[0]
        m, n, k = case.yardstick
        a, b = (np.random.default_rng(0).uniform(-1, 1, size).astype(np.float32) for size in ((m, k), (k, n)))
        peers = {f"{name} gemm {m}": Run(call, 2.0 * m * n * k) for name, call in numpy_gemm(a, b).items()}
        return Contest(Run(ready.call, flop), peers, ready.out, expected)

    speed = run_case(RatioCase(case.workload, threads, case.required, "GFLOP/s", contest), Plan(rounds))
    if not isinstance(speed, RatioResult):
        assert isinstance(speed, NotRun)
        return speed
    latency_ms = flop / speed.ours / 1e6
    return Row(case.workload, threads, len(result.records), tuning_s, case.limit_s, latency_ms, speed, case.quoted)


def tuning_time_s(workload: str, trials: int, threads: int, seed: int, records: Path) -> float:
    """Seconds of `tilewright tune`, from the start of its process to its end."""
    command = [sys.executable, "-m", "tilewright", "tune", workload, "--records", str(records)]
    command += ["--trials", str(trials), "--threads", str(threads), "--seed", str(seed)]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def nominal_flop(workload: str) -> float:
    """The multiplications and additions of the product alone, as they are counted for OpenBLAS."""
    return workloads.parse(workload.split("+")[0]).flop


def as_table(rows: Sequence[Row | NotRun]) -> str:
    """One line a case; the figures of MetaSchedule are marked as quoted."""
    header = (
        "workload", "threads", "trials", "tuning", "must be", "latency", "GFLOP/s", "OpenBLAS", "ratio", "must reach",
        "MetaSchedule (quoted, not measured here)", "",
    )  # fmt: skip
    return "\n".join(
        [heading(describe_machine(), METHOD), markdown(header, [_cells(row, len(header)) for row in rows])]
    )


def _cells(row: Row | NotRun, num_columns: int) -> list[str]:
    if isinstance(row, NotRun):
        return [row.name, str(row.threads), *[""] * (num_columns - 3), f"not run: {row.reason}"]
    speed, quoted = row.speed, row.metaschedule_quoted
    return [
        row.workload, str(row.threads), str(row.trials), f"{row.tuning_s:.1f} s", f"<= {row.limit_s:g} s",
        f"{row.latency_ms:.3f} ms", f"{speed.ours:.1f}", f"{speed.peer_speed:.1f} ({speed.peer})",
        f"{speed.ratio:.2f}", f">= {speed.required:.2f}", f"{quoted.tuning_s:g} s, {quoted.latency_ms:g} ms",
        "pass" if row.passed else "FAIL",
    ]  # fmt: skip


def as_json(rows: Sequence[Row | NotRun]) -> str:
    """The same as one JSON object."""
    cases = [
        {"status": "not run" if isinstance(row, NotRun) else "pass" if row.passed else "fail"} | asdict(row)
        for row in rows
    ]
    return json.dumps({"machine": describe_machine(), "method": METHOD, "cases": cases}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.tuning", __doc__)
    parser.add_argument("--trials", type=arguments.positive, default=128, metavar="N")
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=arguments.positive, default=Plan().rounds, metavar="N")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
