"""`python -m benchmarks.operators`: the operator suite, tuned, next to torch at its best.

Every finished case is written to a JSON file at once, and the trials are kept as records: a run that is started again
with the same --records makes only the trials that are missing, and times all cases again. Exits with 1 if the suite
falls short.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks import arguments, suite
from benchmarks.bottleneck import bottleneck
from benchmarks.contest import Contest, RatioCase, Run, WrongResultError
from benchmarks.machine import describe_machine
from benchmarks.results import NotRun, RatioResult, run_case
from benchmarks.suite import Suite, milliseconds
from benchmarks.table import heading, markdown
from benchmarks.timing import METHOD, Plan
from benchmarks.tuned import file_name, prepare, tune_workload
from tilewright import workloads
from tilewright.errors import NoValidCandidateError
from tilewright.peers import peers_of, settle_s
from tilewright.tuning.tuner import Progress, TuneResult

REQUIRED_SHARE = 0.8
REQUIRED_MEAN = 1.2


@dataclass(frozen=True, slots=True)
class Row:
    """One case. The ratio is torch's time by ours; it is 0 where `failure` says why there is none.

    `best_ratio` compares the fastest turns of both; `bottleneck` is what our program waits for.
    """

    workload: str
    threads: int
    trials: int
    failed_trials: int
    tuning_s: float
    ours_ms: float | None = None
    peer: str = ""
    peer_ms: float | None = None
    ratio: float = 0.0
    failure: str = ""
    best_ratio: float | None = None
    bottleneck: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and measure the chosen cases, and print all that the file holds of them."""
    options = _parse(argv)
    chosen = [w for batch in options.batch for w, _ in workloads.suite(batch) if options.case in w]
    kept = Suite("workload", Row, run, verdict, as_table, as_json, _passed)
    return kept.main(chosen, options)


def run(workload: str, options: argparse.Namespace) -> Row:
    """Tune one case, check what it computes against torch, and time both in turns."""
    records = options.records / file_name(workload)
    try:
        result = tune_workload(workload, records, options.trials, options.threads, options.seed, on_progress=report)
    except NoValidCandidateError as error:
        return Row(workload, options.threads, options.trials, options.trials, 0.0, failure=str(error).splitlines()[0])
    return time_against(workload, result, options.rounds)


def time_against(workload: str, result: TuneResult, rounds: int, libraries: Sequence[str] = ("torch",)) -> Row:
    """The tuned kernel and every way of the libraries, in turns; the fastest way counts."""
    failed = sum(record.latency_s is None for record in result.records)
    base = Row(workload, result.threads, len(result.records), failed, _span_s(result))

    def contest(_: int) -> Contest:
        ready = prepare(result.task, result.compile())
        peers = peers_of(workload, ready.inputs, list(libraries))
        expected = next(iter(peers.values())).result()
        runs = {name: Run(peer.call, result.task.flop) for name, peer in peers.items()}
        return Contest(Run(ready.call, result.task.flop), runs, ready.out, expected)

    case = RatioCase(
        workload, result.threads, 1.0, "GFLOP/s", contest, "torch" in libraries, settle_s(libraries, result.threads)
    )
    try:
        found = run_case(case, Plan(rounds))
    except WrongResultError as error:
        return replace(base, failure=str(error))
    if isinstance(found, NotRun):
        return replace(base, failure=found.reason)
    assert isinstance(found, RatioResult)
    ours_ms, peer_ms = (result.task.flop / speed / 1e6 for speed in (found.ours, found.peer_speed))
    return replace(
        base, ours_ms=ours_ms, peer=found.peer, peer_ms=peer_ms, ratio=found.ratio,
        best_ratio=found.ours_best / found.peer_best,
        bottleneck=bottleneck(result.best.trace.apply(result.task), result.target, result.threads),
    )  # fmt: skip


def _span_s(result: TuneResult) -> float:
    """From the first trial to the last; that of a resumed run includes the pause."""
    times = [record.time for record in result.records]
    return max(times) - min(times)


def geometric_mean(rows: Sequence[Row]) -> float:
    """Of the ratios of the cases that have one."""
    return suite.geometric_mean([row.ratio for row in rows if not row.failure])


def share_at_least_one(rows: Sequence[Row]) -> float:
    """How many of all cases are as fast as torch or faster."""
    return sum(row.ratio >= 1.0 for row in rows) / len(rows) if rows else 0.0


def _passed(rows: Sequence[Row]) -> bool:
    is_whole = not any(row.failure for row in rows)
    return is_whole and share_at_least_one(rows) >= REQUIRED_SHARE and geometric_mean(rows) >= REQUIRED_MEAN


def as_table(rows: Sequence[Row]) -> str:
    """One line a case, and below them what the suite must reach."""
    header = ("workload", "threads", "trials", "failed", "tuning", "ours", "torch", "its way", "ratio")
    cells = [
        [
            row.workload, str(row.threads), str(row.trials), str(row.failed_trials), f"{row.tuning_s:.0f} s",
            milliseconds(row.ours_ms), milliseconds(row.peer_ms), row.failure or row.peer, f"{row.ratio:.3f}",
        ]
        for row in rows
    ]  # fmt: skip
    share, mean = share_at_least_one(rows), geometric_mean(rows)
    summary = [
        f"as fast as torch or faster: {share:.0%} of {len(rows)} cases (must reach {REQUIRED_SHARE:.0%})",
        f"geometric mean: {mean:.2f} (must reach {REQUIRED_MEAN:.2f})",
        "pass" if _passed(rows) else "FAIL",
    ]
    slower = [why(row) for row in rows if row.ratio < 1.0 and not row.failure]
    return "\n".join([heading(describe_machine(), METHOD), markdown(header, cells), "", *slower, "", *summary])


def why(row: Row) -> str:
    """A line about a case in which another is faster."""
    fastest = "" if row.best_ratio is None else f", {row.best_ratio:.3f} in the fastest turns of both"
    return (
        f"{row.workload}: {row.ratio:.3f} of {row.peer}{fastest}; by the analytical model {row.bottleneck or 'unknown'}"
    )


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object; `Suite.read` takes it back."""
    return json.dumps(
        {
            "machine": describe_machine(),
            "method": METHOD,
            "share_at_least_one": share_at_least_one(rows),
            "geometric_mean": geometric_mean(rows),
            "cases": [asdict(row) for row in rows],
        },
        indent=2,
    )


def verdict(row: Row) -> str:
    """What is said of a case as soon as it is measured."""
    if row.failure:
        return f"failed: {row.failure}"
    return f"{milliseconds(row.ours_ms)}, {row.peer} {milliseconds(row.peer_ms)}: ratio {row.ratio:.3f}"


def report(progress: Progress) -> None:
    """A line now and then while a case is tuned."""
    if progress.num_trials % 64 == 0 and progress.best_latency_s is not None:
        best_ms = progress.best_latency_s * 1e3
        print(f"  trial {progress.num_trials}/{progress.max_trials}: {best_ms:.4g} ms", file=sys.stderr, flush=True)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.operators", __doc__)
    parser.add_argument("--batch", type=arguments.positive, nargs="+", default=[1, 16], metavar="N")
    parser.add_argument("--trials", type=arguments.positive, default=256, metavar="N")
    return suite.parse(parser, argv, "operators")


if __name__ == "__main__":
    sys.exit(main())
