"""`make bench-metaschedule`: tuning next to TVM MetaSchedule on this machine, as many trials each, one after the other.

MetaSchedule runs in an environment of its own (`metaschedule_worker.py`), which `--python` names. What both have found
is then timed in turns. Exits with 1 if tilewright needs longer to what MetaSchedule has in the end, or ends slower.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.metaschedule_worker import CASES, seconds_a_call
from benchmarks.table import heading, markdown
from benchmarks.tuned import prepare, tune_workload
from benchmarks.tuning import tuning_time_s
from tilewright import workloads
from tilewright.peers import OPENMP_SETTLE_S
from tilewright.records import RecordLog
from tilewright.target import Target

METHOD = (
    "Times of tuning are of whole processes, from their start to their end for tilewright, without the start for "
    "MetaSchedule. Programs are timed in turns: in each round either has one, with a rest, an untimed call, and calls "
    "for about 10 ms; latencies are those of the median turn, a ratio is the median over the rounds."
)
_WORKER = Path(__file__).with_name("metaschedule_worker.py")
_TURN_S = 0.01
_LARGEST_ERROR = 1e-3


@dataclass(frozen=True, slots=True)
class Row:
    """One case. `reached_s` is how long tilewright took to a program as fast as MetaSchedule's last, if ever."""

    workload: str
    threads: int
    trials: int
    ours_tuning_s: float
    their_tuning_s: float
    ours_ms: float
    their_ms: float
    ratio: float
    reached_s: float | None

    @property
    def passed(self) -> bool:
        return self.reached_s is not None and self.reached_s < self.their_tuning_s and self.ratio >= 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Tune the chosen cases both ways, time both, and print them."""
    options = _parse(argv)
    chosen = [case for case in CASES if options.case in case]
    if not chosen:
        print(f"no case matches; they are {', '.join(CASES)}", file=sys.stderr)
        return 2
    rows = [run(case, options) for case in chosen]
    print(as_json(rows) if options.format == "json" else as_table(rows))
    return 0 if all(row.passed for row in rows) else 1


def run(case: str, options: argparse.Namespace) -> Row:
    """Tune one after the other; then both take turns."""
    threads, trials, seed = options.threads, options.trials, options.seed
    with tempfile.TemporaryDirectory() as directory:
        records = Path(directory) / "records.jsonl"
        started_s = time.time()
        ours_tuning_s = tuning_time_s(case, trials, threads, seed, records)
        print(f"{case}: tilewright took {ours_tuning_s:.1f} s", file=sys.stderr, flush=True)
        trace = RecordLog(records).read()
        kernel = tune_workload(case, records, trials, threads, seed).compile()
        ready = prepare(workloads.parse(case), kernel)
        with its_program(case, options, Path(directory) / "metaschedule") as theirs:
            print(f"{case}: MetaSchedule took {theirs.tuning_s:.1f} s", file=sys.stderr, flush=True)
            turns = [(_turn_of_ours(ready.call), theirs.turn()) for _ in range(options.rounds)]
    their_s = median(their for _, their in turns)
    reached = [record.time - started_s for record in trace if record.rank_s <= their_s]
    return Row(
        case, threads, trials, ours_tuning_s, theirs.tuning_s, median(ours for ours, _ in turns) * 1e3, their_s * 1e3,
        median(their / ours for ours, their in turns), min(reached, default=None),
    )  # fmt: skip


def _turn_of_ours(call: Any) -> float:
    time.sleep(OPENMP_SETTLE_S)
    return seconds_a_call(call, _num_calls(seconds_a_call(call, 1)))


def _num_calls(latency_s: float) -> int:
    return max(1, math.ceil(_TURN_S / latency_s))


class _Worker:
    """The process that has tuned with MetaSchedule, and runs what it found when it is asked to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        tuned = self._answer()
        self.tuning_s = float(tuned["tuning_s"])
        if tuned["error"] > _LARGEST_ERROR:
            raise SystemExit(f"MetaSchedule's program is off by {tuned['error']:.1e} of the largest value")
        self._num_calls = _num_calls(self._seconds(3))

    def turn(self) -> float:
        time.sleep(OPENMP_SETTLE_S)
        return self._seconds(self._num_calls)

    def _seconds(self, number: int) -> float:
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None, "it is a pipe"
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of MetaSchedule ended with {self._process.wait()}; its log is above")
        return json.loads(line)


@contextmanager
def its_program(case: str, options: argparse.Namespace, directory: Path) -> Iterator[_Worker]:
    """What MetaSchedule finds for the case, in a process that is there as long as the context."""
    given = [case, options.trials, options.threads, Target.native().cpu, options.seed, directory]
    command = [str(options.python), str(_WORKER), *map(str, given)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield _Worker(process)


def as_table(rows: Sequence[Row]) -> str:
    """One line a case."""
    header = (
        "workload", "threads", "trials", "tuning, ours", "MetaSchedule", "ours as fast as its last after",
        "latency, ours", "MetaSchedule", "ratio", "",
    )  # fmt: skip
    cells = [
        [
            row.workload, str(row.threads), str(row.trials), f"{row.ours_tuning_s:.1f} s",
            f"{row.their_tuning_s:.1f} s", "never" if row.reached_s is None else f"{row.reached_s:.1f} s",
            f"{row.ours_ms:.4g} ms",
            f"{row.their_ms:.4g} ms", f"{row.ratio:.2f}", "pass" if row.passed else "FAIL",
        ]
        for row in rows
    ]  # fmt: skip
    return "\n".join([heading(describe_machine(), METHOD), markdown(header, cells)])


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object."""
    cases = [asdict(row) | {"passed": row.passed} for row in rows]
    return json.dumps({"machine": describe_machine(), "method": METHOD, "cases": cases}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.metaschedule", __doc__)
    parser.add_argument("--trials", type=arguments.positive, default=128, metavar="N")
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=arguments.positive, default=40, metavar="N")
    parser.add_argument(
        "--python", type=Path, default=Path(".venv-metaschedule/bin/python"), metavar="FILE",
        help="of the environment that has TVM; `make bench-metaschedule` makes it",
    )  # fmt: skip
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
