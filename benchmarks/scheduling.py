"""`python -m benchmarks.scheduling`: the gradient task scheduler against round-robin, on networks tuned together.

For each seed, every task gets the same first round; then both strategies share out the same number of trials. All
trials are kept as records, and what a seed gave is written to a JSON file: a run that was stopped goes on where it
was. Delete that file to measure the programs again without new trials. Exits with 1 if the gradient falls short.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import arguments, scheduling_report
from benchmarks.objective_curve import Again, Weights, curve, improvements, measure_again, trials_of
from benchmarks.scheduling_report import Run, Seed, Settings
from benchmarks.tuned import file_name
from benchmarks.tuned_network import subject_of
from tilewright.measure import Context
from tilewright.network import InferenceSession, compile_partition, name_of, partition_network, read_network
from tilewright.partition import Partition
from tilewright.peers import take_turns
from tilewright.records import Record, RecordLog
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.rounds import Round
from tilewright.tuning.task_scheduler import Network, NetworkProgress, NetworksResult, Standing, TaskScheduler
from tilewright.tuning.tuner import ROUND_SIZE, Tuner
from tilewright.zoo import inputs_for

NETWORKS = ("zoo:resnet50", "zoo:bert_tiny")
OUTPUT = "scheduling.json"


@dataclass(frozen=True, slots=True)
class Setup:
    """What all seeds share."""

    partitions: dict[str, Partition]
    target: Target
    threads: int
    trials: int
    rounds: int
    records: Path

    @property
    def networks(self) -> list[Network]:
        return [Network(name_of(name), partition.tasks) for name, partition in self.partitions.items()]

    @property
    def tasks(self) -> list[Task]:
        """The different tasks of all networks."""
        return list({w.task.hash: w.task for partition in self.partitions.values() for w in partition.tasks}.values())

    @property
    def subject(self) -> str:
        """Equal where the same trials serve."""
        parts = [subject_of(partition, self.target, self.threads) for partition in self.partitions.values()]
        return hashlib.sha256("".join(parts).encode()).hexdigest()[:8]

    def log(self, what: str, seed: int) -> RecordLog:
        names = "-".join(map(name_of, self.partitions))
        return RecordLog(self.records / file_name(f"{names}-{self.subject}-{what}-{seed}"))


def main(argv: Sequence[str] | None = None) -> int:
    """Tune with every seed, and print and draw what the file holds of them."""
    options = _parse(argv)
    chosen = [seed for seed in range(options.seeds) if options.case in f"seed {seed}"]
    if not chosen:
        print(f"no case matches; they are seed 0 to seed {options.seeds - 1}", file=sys.stderr)
        return 2
    path = options.output or options.records / OUTPUT
    if not options.report and not measure(chosen, path, options):
        return 2
    settings, seeds = scheduling_report.read(path)
    shown = [seeds[seed] for seed in chosen if seed in seeds]
    if settings is None or not shown:
        print(f"{path} holds none of these seeds; run without --report first", file=sys.stderr)
        return 2
    if options.plot is not None:
        scheduling_report.plot(shown, settings, options.plot)
    form = scheduling_report.as_json if options.format == "json" else scheduling_report.as_table
    print(form(shown, settings))
    if len(shown) < len(chosen):
        print(f"measured are {len(shown)} of {len(chosen)} seeds", file=sys.stderr)
    return 0 if scheduling_report.passed(shown) and len(shown) == len(chosen) else 1


def measure(chosen: Sequence[int], path: Path, options: argparse.Namespace) -> bool:
    """Add the seeds that the file does not hold yet; False where there are too few trials."""
    partitions = {name: partition_network(name) for name in options.networks}
    setup = Setup(partitions, Target.native(), options.threads, options.trials, options.rounds, options.records)
    first = ROUND_SIZE * len(setup.tasks)
    if setup.trials <= first:
        print(
            f"--trials is {setup.trials}, and the first rounds of {len(setup.tasks)} tasks take {first}: nothing is "
            "left for a strategy to share out; give more",
            file=sys.stderr,
        )
        return False
    options.records.mkdir(parents=True, exist_ok=True)
    settings = Settings(tuple(options.networks), setup.subject, options.trials, options.threads)
    known, seeds = scheduling_report.read(path)
    if known != settings:
        seeds = {}
    for seed in chosen:
        if seed not in seeds:
            seeds[seed] = run(setup, seed)
            path.write_text(scheduling_report.as_json(list(seeds.values()), settings))
    return True


def run(setup: Setup, seed: int) -> Seed:
    """Tune with both strategies, which take turns to be the first, and compare what they found."""
    order = scheduling_report.STRATEGIES if seed % 2 == 0 else scheduling_report.STRATEGIES[::-1]
    first = _first_rounds(setup, seed)
    results = {strategy: _tune(setup, seed, strategy, first) for strategy in order}
    trials = {strategy: _trials(setup, setup.log(strategy, seed)) for strategy in order}
    print(f"seed {seed}: measuring the best programs again", file=sys.stderr, flush=True)
    programs = [record for strategy in order for record in improvements(trials[strategy])]
    again = measure_again(setup.tasks, programs, setup.target, setup.threads, setup.rounds)
    print(f"seed {seed}: timing the complete networks", file=sys.stderr, flush=True)
    networks_ms = _time_networks(setup, seed, order)
    runs = {
        strategy: _run_of(setup, results[strategy], trials[strategy], len(first), again, networks_ms[strategy])
        for strategy in scheduling_report.STRATEGIES
    }
    return Seed(seed, len(first), runs)


class _FirstRound(Tuner):
    """A tuner whose finalists are not compared: that is for the end of a run."""

    def final_round(
        self, max_finalists: int, turns: int, log: RecordLog | None, on_best: Callable[[Record], None]
    ) -> Round | None:
        return None


class _NoFurtherRounds:
    """A strategy that ends the run after the first rounds."""

    def choose(self, standings: Sequence[Standing], rng: np.random.Generator) -> int | None:
        return None


def _first_rounds(setup: Setup, seed: int) -> list[Record]:
    """The trials from which both strategies start: one round for each task."""
    log = setup.log("first_rounds", seed)

    def first_round(task: Task, context: Context, label: str) -> _FirstRound:
        return _FirstRound(task, setup.target, setup.threads, seed=seed, workload=label, context=context)

    scheduler = TaskScheduler(
        setup.networks,
        strategy=_NoFurtherRounds(),
        target=setup.target,
        threads=setup.threads,
        seed=seed,
        make_tuner=first_round,
    )
    scheduler.tune(records=log.path, on_progress=partial(_report, f"seed {seed}, first rounds"))
    return _trials(setup, log)


def _tune(setup: Setup, seed: int, strategy: str, first: Sequence[Record]) -> NetworksResult:
    """The rest of the trials as the strategy shares them out; a run that was stopped goes on."""
    log = setup.log(strategy, seed)
    if not log.path.exists():
        log.extend(first)
    scheduler = TaskScheduler(setup.networks, strategy=strategy, target=setup.target, threads=setup.threads, seed=seed)
    return scheduler.tune(setup.trials, records=log.path, on_progress=partial(_report, f"seed {seed}, {strategy}"))


def _trials(setup: Setup, log: RecordLog) -> list[Record]:
    tasks = {task.hash for task in setup.tasks}
    return trials_of(record for record in log.read() if record.task in tasks)


def _run_of(
    setup: Setup,
    result: NetworksResult,
    trials: Sequence[Record],
    num_first: int,
    again: Again,
    networks_ms: dict[str, float],
) -> Run:
    counts = {task.hash: 0.0 for task in setup.tasks}
    for partition in setup.partitions.values():
        for weighted in partition.tasks:
            counts[weighted.task.hash] += weighted.weight
    unmeasured_s = {tuned.task.hash: tuned.latency_s for tuned in result.tasks if tuned.best is None}
    return Run(curve(trials, num_first, Weights(counts, unmeasured_s), again), networks_ms)


def _time_networks(setup: Setup, seed: int, order: Sequence[str]) -> dict[str, dict[str, float]]:
    """For each strategy the latency of every network, compiled with its records; both strategies in turns."""
    found: dict[str, dict[str, float]] = {strategy: {} for strategy in order}
    for name, partition in setup.partitions.items():
        calls = {}
        for strategy in order:
            records = str(setup.log(strategy, seed).path)
            model = compile_partition(partition, records, setup.target, setup.threads).model
            calls[strategy] = partial(
                InferenceSession(model).run, None, inputs_for(model.input_types, read_network(name))
            )
        for strategy, timing in take_turns(calls, 10 * setup.rounds, settle_s=0.0).items():
            found[strategy][name] = timing.median_s * 1e3
    return found


def _report(what: str, progress: NetworkProgress) -> None:
    if progress.num_trials % (10 * ROUND_SIZE) == 0:
        total_ms = sum(progress.latencies_s.values()) * 1e3
        print(f"{what}: {progress.num_trials} trials, {total_ms:.4g} ms", file=sys.stderr, flush=True)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.scheduling", __doc__)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), metavar="NETWORK", help="models.onnx or zoo:x")
    parser.add_argument("--trials", type=arguments.positive, default=1824, metavar="N", help="first rounds included")
    parser.add_argument("--seeds", type=arguments.positive, default=3, metavar="N")
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--rounds", type=arguments.positive, default=5, metavar="N", help="turns of measuring again")
    parser.add_argument("--records", type=Path, default=Path("results/scheduler"), metavar="DIR")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default: {OUTPUT} in the records' directory")
    parser.add_argument("--report", action="store_true", help="measure nothing: print what the file holds")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the curves to this file; needs matplotlib")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
