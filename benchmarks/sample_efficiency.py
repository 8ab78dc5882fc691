"""`python -m benchmarks.sample_efficiency`: how many trials the search saves over random sampling.

For each seed one run samples at random and one searches with a cost model; with --random-seeds 1 all searches are
compared with one random run. The best random program, and each program
that was the best of the search for a while, are then timed in turns: the first of these that is as fast tells how many
trials it took. As the median over the seeds these must be few, and the search as fast in the end. A case is a workload,
or a task of a network of the zoo, as `resnet50/3`: its third one by share of the arithmetic. All trials are kept as
records, so that an interrupted run goes on where it stopped. Exits with 1 if a case falls short.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from benchmarks.tuned import best_so_far_s, file_name, prepare, task_of, tune_task
from tilewright.peers import take_turns
from tilewright.runtime import Kernel
from tilewright.runtime.build import build
from tilewright.schedule import Trace
from tilewright.te import Task
from tilewright.tuning.tuner import TuneResult

PLACES = 7
"""Where arrays lie decides up to 6 % of what a program takes: each is timed with so many sets of them."""
METHOD = (
    "For each seed: a random search (or one for all) and an evolutionary one with a learned cost model, of so many "
    "trials. The best random program is timed in turns with each program that was the best of the search for a while, "
    f"all of them on the same {PLACES} sets of arrays, of which the median counts: where arrays lie decides some "
    "percent. A program that both found is timed once, and as fast as itself. The ratio is the random winner's time by "
    "that of the search's last one, the median over the seeds. `reached after` is the first trial of the search whose "
    "program is no slower than the best random one, by the medians of the turns."
)
WORKLOADS = (
    "c2d:1x14x14x256,256,3x3,s1,p1",
    "gmm:512x512x512",
    "dep:1x14x14x512,3x3,s2,p1",
    "tbg:1x128x12x64",
    "resnet50/1",
    "resnet50/2",
    "mobilenet_v2/1",
    "mobilenet_v2/2",
    "bert_base/1",
    "bert_tiny/1",
    "inception_v3/1",
    "inception_v3/2",
)
REQUIRED = 1.0
REQUIRED_TRIALS = 32


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
    def reached_after(self) -> float:
        """The median over the seeds; infinite where most did not get so far."""
        return median(math.inf if seed.reached_after is None else seed.reached_after for seed in self.seeds)

    @property
    def passed(self) -> bool:
        return self.ratio >= REQUIRED and self.reached_after <= REQUIRED_TRIALS


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
        random_seed = seed % (options.random_seeds or options.seeds)
        random = searched(workload, "random", options.random_trials, random_seed, options)
        evolutionary = searched(workload, "evolutionary", options.trials, seed, options)
        seeds.append(compare(seed, random, evolutionary, options.rounds))
    return Row(workload, options.random_trials, options.trials, tuple(seeds))


def searched(workload: str, search: str, trials: int, seed: int, options: argparse.Namespace) -> TuneResult:
    """One search, or what its records hold of it."""
    print(f"{workload}, seed {seed}: {trials} trials of {search} search", file=sys.stderr, flush=True)
    records = options.records / file_name(f"{workload}-{search}-{seed}")
    return tune_task(task_of(workload), records, trials, options.threads, seed, search, workload, options.cost_model)


def compare(seed: int, random: TuneResult, evolutionary: TuneResult, rounds: int) -> Seed:
    """Time the random winner in turns with all that led the search, and see when it got as far."""
    leaders = leaders_of(evolutionary)
    programs = list(dict.fromkeys([random.best.trace, *leaders.values()]))
    kernels = [build(trace.apply(random.task), random.target, random.threads) for trace in programs]
    ms_of = dict(zip(programs, _in_turns_ms(random.task, kernels, rounds), strict=True))
    random_ms = ms_of[random.best.trace]
    reached = [trial for trial, trace in leaders.items() if ms_of[trace] <= random_ms]
    return Seed(seed, random_ms, ms_of[leaders[max(leaders)]], min(reached, default=None))


def _in_turns_ms(task: Task, kernels: Sequence[Kernel], rounds: int) -> list[float]:
    """The time of each kernel: the median over arrays in several places, of the medians of the turns with each."""
    calls: dict[str, Callable[[], object]] = {}
    for place in range(PLACES):
        first = prepare(task, kernels[0])
        calls |= {f"{n}.{place}": prepare(task, kernel, beside=first).call for n, kernel in enumerate(kernels)}
    timings = take_turns(calls, rounds, settle_s=0.0)
    return [1e3 * median(timings[f"{n}.{place}"].median_s for place in range(PLACES)) for n in range(len(kernels))]


def leaders_of(result: TuneResult) -> dict[int, Trace]:
    """The programs that were the best until then, by their trials from 1 on; the last is that of the finals."""
    leaders: dict[int, Trace] = {}
    before_s = math.inf
    for trial, (record, best_s) in enumerate(zip(result.records, best_so_far_s(result), strict=True), start=1):
        if best_s < before_s:
            leaders[trial] = record.trace
        before_s = best_s
    return leaders | {len(result.records): result.best.trace}


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
            f">= {REQUIRED:.2f}, <= {REQUIRED_TRIALS}",
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
    parser.add_argument(
        "--random-seeds",
        type=arguments.positive,
        metavar="N",
        help="random runs (default: one for each seed)",
    )
    parser.add_argument("--random-trials", type=arguments.positive, default=1024, metavar="N")
    parser.add_argument("--trials", type=arguments.positive, default=128, metavar="N")
    parser.add_argument("--cost-model", default="default", metavar="M", help="of the search: a name or a file")
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--rounds", type=arguments.positive, default=40, metavar="N")
    parser.add_argument("--records", type=Path, default=Path("results/efficiency"), metavar="DIR")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
