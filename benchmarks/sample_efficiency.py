"""`python -m benchmarks.sample_efficiency`: how many trials the search saves over random sampling.

For each seed one run samples at random and one searches with a cost model; the best programs of both are then timed
in turns. The search must, within its few trials, be as fast as the best of the many random ones: as the median over
the seeds. All trials are kept as records, so that an interrupted run goes on where it stopped. Exits with 1 if a case
falls short.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from benchmarks.tuned import best_so_far_s, file_name, prepare, tune_workload
from tilewright.peers import take_turns
from tilewright.tuning.tuner import TuneResult

METHOD = (
    "For each seed: a random search, and an evolutionary one with a learned cost model, each of so many trials. "
    "Both winners are timed in turns; the ratio is the random winner's time by the other's, the median over the seeds. "
    "`reached after` is the first trial of the evolutionary search that measured no slower than the best random trial; "
    "the two ran at different times, when the machine may have been faster or slower, so that it is a hint only."
)
WORKLOADS = (
    "c2d:1x14x14x256,256,3x3,s1,p1",
    "gmm:512x512x512",
    "dep:1x14x14x512,3x3,s2,p1",
    "tbg:1x128x12x64",
)
REQUIRED = 1.0


@dataclass(frozen=True, slots=True)
class Seed:
    """What one seed gave."""

    seed: int
    random_ms: float
    evolutionary_ms: float
    reached_after: int | None

    @property
    def ratio(self) -> float:
        return self.random_ms / self.evolutionary_ms


@dataclass(frozen=True, slots=True)
class Row:
    """A workload over all seeds."""

    workload: str
    random_trials: int
    trials: int
    seeds: tuple[Seed, ...]

    @property
    def ratio(self) -> float:
        return median(seed.ratio for seed in self.seeds)

    @property
    def passed(self) -> bool:
        return self.ratio >= REQUIRED


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen workloads and print them."""
    options = _parse(argv)
    chosen = [workload for workload in options.workloads or WORKLOADS if options.case in workload]
    if not chosen:
        print(f"no case matches; they are {', '.join(WORKLOADS)}", file=sys.stderr)
        return 2
    options.records.mkdir(parents=True, exist_ok=True)
    rows = [run(workload, options) for workload in chosen]
    print(as_json(rows) if options.format == "json" else as_table(rows))
    return 0 if all(row.passed for row in rows) else 1


def run(workload: str, options: argparse.Namespace) -> Row:
    """Both searches for every seed."""
    seeds = []
    for seed in range(options.seeds):
        results = {}
        for search, trials in (("random", options.random_trials), ("evolutionary", options.trials)):
            print(f"{workload}, seed {seed}: {trials} trials of {search} search", file=sys.stderr, flush=True)
            records = options.records / file_name(f"{workload}-{search}-{seed}")
            results[search] = tune_workload(workload, records, trials, options.threads, seed, search)
        seeds.append(compare(seed, results["random"], results["evolutionary"], options.rounds))
    return Row(workload, options.random_trials, options.trials, tuple(seeds))


def compare(seed: int, random: TuneResult, evolutionary: TuneResult, rounds: int) -> Seed:
    """Time the winners in turns, and see when the search got as far as random sampling."""
    calls = {
        name: prepare(result.task, result.compile()).call
        for name, result in (("random", random), ("evolutionary", evolutionary))
    }
    timings = take_turns(calls, rounds, settle_s=0.0)
    goal_s = best_so_far_s(random)[-1]
    reached = [n for n, best_s in enumerate(best_so_far_s(evolutionary), start=1) if best_s <= goal_s]
    random_ms, evolutionary_ms = (timings[name].median_s * 1e3 for name in ("random", "evolutionary"))
    return Seed(seed, random_ms, evolutionary_ms, reached[0] if reached else None)


def as_table(rows: Sequence[Row]) -> str:
    """One line a workload, with the medians over its seeds."""
    header = ("workload", "random", "evolutionary", "seeds", "ratio", "reached after", "must reach", "")
    cells = [
        [
            row.workload,
            f"{median(s.random_ms for s in row.seeds):.4g} ms in {row.random_trials} trials",
            f"{median(s.evolutionary_ms for s in row.seeds):.4g} ms in {row.trials} trials",
            " ".join(f"{s.ratio:.2f}" for s in row.seeds),
            f"{row.ratio:.3f}",
            " ".join("-" if s.reached_after is None else str(s.reached_after) for s in row.seeds),
            f">= {REQUIRED:.2f}",
            "pass" if row.passed else "FAIL",
        ]
        for row in rows
    ]
    return "\n".join([heading(describe_machine(), METHOD), markdown(header, cells)])


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object."""
    cases = [
        {"status": "pass" if row.passed else "fail", "ratio": row.ratio, "required": REQUIRED} | asdict(row)
        for row in rows
    ]
    return json.dumps({"machine": describe_machine(), "method": METHOD, "cases": cases}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.sample_efficiency", __doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="others than those of the benchmark")
    parser.add_argument("--seeds", type=arguments.positive, default=5, metavar="N")
    parser.add_argument("--random-trials", type=arguments.positive, default=1024, metavar="N")
    parser.add_argument("--trials", type=arguments.positive, default=128, metavar="N")
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--rounds", type=arguments.positive, default=40, metavar="N")
    parser.add_argument("--records", type=Path, default=Path("results/efficiency"), metavar="DIR")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
