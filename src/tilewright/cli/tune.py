"""`tilewright tune WORKLOAD`: find a fast program, with progress on stderr and the result on stdout."""

from __future__ import annotations

import argparse
import re
import sys
import time
from typing import TYPE_CHECKING

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.tuner import Progress, TuneResult

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_PLAIN_EVERY_S = 2.0


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser("tune", help="search for a fast program of a workload on this machine")
    parser.add_argument("workload", metavar="WORKLOAD", help="such as gmm:512x512x512 or c2d:1x28x28x128,128,3x3,s1,p1")
    parser.add_argument("--trials", type=int, default=128, metavar="N", help="measurements at most (default: 128)")
    parser.add_argument("--budget", metavar="TIME", help="stop after this time, such as 90s, 5m or 1h")
    parser.add_argument("--records", metavar="FILE", help="append every trial to FILE, and go on from what it holds")
    parser.add_argument("--target", default="llvm -mcpu=native", metavar="T")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the kernel (default: all cores)")
    parser.add_argument("--cost-model", default="boosted-trees", metavar="M", help="by name (default: %(default)s)")
    parser.add_argument("--search", default="evolutionary", metavar="S", help="evolutionary (default) or random")
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Tune, and print what was found."""
    from tilewright import workloads
    from tilewright.cost_model import create
    from tilewright.tuner import tune

    task = workloads.parse(arguments.workload)
    path = arguments.records or f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', arguments.workload)}.jsonl"
    display = Display(task.flop)
    print(f"tuning {arguments.workload}, {arguments.trials} trials; records in {path}", file=sys.stderr)
    try:
        result = tune(
            task,
            trials=arguments.trials,
            records=path,
            seed=arguments.seed,
            target=arguments.target,
            threads=arguments.threads,
            search=arguments.search,
            cost_model=create(arguments.cost_model, **_model_options(arguments.cost_model, arguments.seed)),
            budget_s=parse_time(arguments.budget),
            workload=arguments.workload,
            on_progress=display.show,
        )
    except KeyboardInterrupt:
        display.finish()
        print(f"interrupted; every finished trial is in {path}: the same command goes on from there", file=sys.stderr)
        raise
    display.finish()
    print(summary(result, arguments.workload, path))


def _model_options(name: str, seed: int) -> dict[str, int]:
    return {} if name == "analytical" else {"seed": seed}


def parse_time(text: str | None) -> float | None:
    """Seconds from 90s, 5m or 1h.

    >>> parse_time("5m")
    300.0
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        raise UsageError(f"--budget is {text!r}; give a number and a unit, such as 90s, 5m or 1h")
    return float(found[1]) * _UNITS[found[2]]


class Display:
    """One line that changes on a terminal; plain lines every few seconds elsewhere."""

    def __init__(self, flop: float) -> None:
        self.flop = flop
        self.is_live = sys.stderr.isatty()
        self._last_line_s = 0.0

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        is_last = progress.num_trials >= progress.max_trials
        if not self.is_live and not is_last and now - self._last_line_s < _PLAIN_EVERY_S:
            return
        self._last_line_s = now
        text = self._text(progress)
        print(
            f"\r\x1b[K{text}" if self.is_live else text, end="" if self.is_live else "\n", file=sys.stderr, flush=True
        )

    def finish(self) -> None:
        if self.is_live:
            print(file=sys.stderr)

    def _text(self, progress: Progress) -> str:
        statuses = progress.statuses
        timeouts = statuses.get("BUILD_TIMEOUT", 0) + statuses.get("RUN_TIMEOUT", 0)
        errors = sum(statuses.values()) - statuses.get("OK", 0) - timeouts
        done = max(1, progress.num_trials)
        left_s = progress.elapsed_s / done * (progress.max_trials - progress.num_trials)
        return (
            f"{progress.elapsed_s:7.1f} s  trial {progress.num_trials}/{progress.max_trials}  "
            f"now {self._speed(progress.last.latency_s if progress.last else None)}  "
            f"best {self._speed(progress.best_latency_s)}  errors {errors}  time-outs {timeouts}  left {left_s:.0f} s"
        )

    def _speed(self, latency_s: float | None) -> str:
        if latency_s is None:
            return "-"
        return f"{self.flop / latency_s / 1e9:.1f} GFLOP/s {latency_s * 1e3:.3f} ms"


def summary(result: TuneResult, workload: str, path: str) -> str:
    """The last lines: the best latency, the records, how to use them, and the trace to paste."""
    latency_s = result.best.latency_s or 0.0
    speed = result.task.flop / latency_s / 1e9 if latency_s else 0.0
    return "\n".join(
        [
            f"best: {latency_s * 1e3:.4f} ms, {speed:.1f} GFLOP/s on {result.threads} threads",
            f"trials: {len(result.records)} in {result.elapsed_s:.1f} s",
            f"records: {path}",
            f"use it: tilewright records best {path}",
            "trace:",
            str(result.best.trace),
        ]
    )
