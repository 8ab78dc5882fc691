"""`python -m benchmarks.deployed`: what the tuner says of a network, next to what the network takes.

Each network is tuned, and the programs that were found are timed alone with warm and with cold weights, inside the
network, and from end to end. With --warm-too it is tuned a second time with warm weights, for as long, and both ways
take turns, in the end in processes that each begin anew. Programs that are close are compared inside the network, as
`tune_network` does; those that were tuned warm are not, since that would be to measure as deployed. Every finished case
is written to a JSON file at once, and its trials are kept as records: a run that is started again spends only what is
left of the --budget. Exits with 1 if a network falls short.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import arguments, fresh_runs, suite
from benchmarks.machine import describe_machine
from benchmarks.suite import Suite, milliseconds
from benchmarks.table import heading, markdown
from benchmarks.tuned_network import Point, compare_finalists, tune_network
from tilewright.deploy.artifact import save
from tilewright.deploy.compiled import CompiledModel, NativeStep
from tilewright.errors import TilewrightError, UsageError
from tilewright.measure import WARM, Context
from tilewright.measure.local.cold import ColdArrays
from tilewright.network import (
    InferenceSession,
    compile_partition,
    name_of,
    partition_network,
    read_network,
    recorded_programs,
)
from tilewright.partition import Partition
from tilewright.runtime import Kernel, Nearness
from tilewright.runtime.build import build
from tilewright.runtime.copies import Copies
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task, numpy_dtype, random_inputs
from tilewright.tuning.task_scheduler import deployed_context
from tilewright.tuning.untuned import default_trace
from tilewright.zoo import inputs_for

NETWORKS = ("zoo:resnet18", "zoo:resnet50", "zoo:mobilenet_v2", "zoo:bert_tiny", "zoo:bert_base")
MUST_GAIN = ("zoo:resnet18", "zoo:resnet50")
BUDGET_S = 120
TOLERANCE = 0.08
DEPLOYED, WARM_TUNED = "as deployed", "warm"
METHOD = (
    "All are taken in turns, in each round once: each program alone with its weights warm, alone on copies of its "
    "weights and activations that are used in turn and are as large together as those of the network, each call inside "
    "the network, and runs from end to end. The figures are sums over the kernels of the medians over the rounds. "
    "`told` is the sum that the tuner says at its end, `run then` a run right after it, in processes that begin anew, "
    "and `error` how far they are apart."
)
_TURN_S = 3e-3
_RUNS_S = 20e-3
_ROUNDS_THEN = 5


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """One task of a network: milliseconds of one of its kernels."""

    name: str
    weight: int
    told_ms: float | None
    """What the record of its program says; None where it has the default one."""
    warm_ms: float
    cold_ms: float
    network_ms: float


@dataclass(frozen=True, slots=True)
class Way:
    """A network tuned in one context; sums over its kernels, and the time of a run."""

    context: str
    num_trials: int
    tuning_s: float
    told_ms: float
    warm_ms: float
    cold_ms: float
    network_ms: float
    run_ms: float
    tasks: tuple[TaskTimes, ...] = ()
    run_then_ms: float | None = None
    """The time of a run right after tuning; None where it was not taken then."""

    @property
    def error(self) -> float:
        """By which part of the run the tuner is off; below 0 it promises too much.

        Of the run right after tuning: minutes later, a machine that is shared may be faster or slower by more.
        """
        return self.told_ms / (self.run_then_ms or self.run_ms) - 1


@dataclass(frozen=True, slots=True)
class Row:
    """One network with one seed, tuned in one way or two."""

    case: str
    network: str
    seed: int
    threads: int
    budget_s: float
    ways: dict[str, Way] = field(default_factory=dict)
    gain: float | None = None
    """How many times as fast as tuned warm it is when tuned as deployed, by the median over rounds of processes."""
    failure: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and measure the chosen networks, and print all that the file holds of them."""
    parser = arguments.parser("benchmarks.deployed", __doc__)
    parser.add_argument("--budget", type=arguments.positive, default=BUDGET_S, metavar="SECONDS")
    parser.add_argument("--seeds", type=arguments.positive, default=1, metavar="N")
    parser.add_argument("--warm-too", action="store_true", help="tune with warm weights as well, and compare")
    parser.add_argument(
        "--cold",
        type=_context,
        metavar="C",
        help="how cold kernels are alone, such as cold-96M (default: as the weights of the network make them)",
    )
    options = suite.parse(parser, argv, "deployed")
    cases = [f"{network} seed {seed}" for network in NETWORKS for seed in range(options.seeds)]
    kept = Suite("case", row_of, run, verdict, as_table, as_json, passed)
    return kept.main([case for case in cases if options.case in case], options)


def _context(text: str) -> Context:
    try:
        return Context.parse(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(case: str, options: argparse.Namespace) -> Row:
    """Tune one network, and time what was found."""
    network, seed = case.rsplit(" seed ", 1)
    row = Row(case, network, int(seed), options.threads, options.budget)
    contexts = {DEPLOYED: None} | ({WARM_TUNED: WARM} if options.warm_too else {})
    try:
        ways = {name: _tuned(row, context, options.records) for name, context in contexts.items()}
        return _measured(row, ways, options.rounds, options.cold)
    except TilewrightError as error:
        return replace(row, failure=str(error).splitlines()[0])


@dataclass(frozen=True, slots=True)
class _Tuned:
    """A network with the programs that were found for it."""

    partition: Partition
    records: Path
    context: Context
    last: Point
    run_then_ms: float


def _tuned(row: Row, context: Context | None, folder: Path) -> _Tuned:
    used = "deployed" if context is None else str(context)
    records = folder / f"{name_of(row.network)}-{used}-{row.seed}.jsonl"
    partition, points = tune_network(
        name_of(row.network), partial(partition_network, row.network), records,
        budget_s=row.budget_s, target=Target.native(), threads=row.threads, seed=row.seed, context=context,
    )  # fmt: skip
    if context is None:
        compare_finalists(row.network, partition, records, Target.native(), row.threads)
    return _Tuned(
        partition,
        records,
        context or deployed_context(partition.tasks),
        points[-1],
        1e3 * _run_s(row, partition, records),
    )


def _run_s(row: Row, partition: Partition, records: Path) -> float:
    """The seconds that a run takes now, in processes that each begin anew."""
    model = compile_partition(partition, str(records), Target.native(), row.threads).model
    feed = inputs_for(model.input_types, read_network(row.network))
    return median(_fresh_runs_s({"run": model}, feed, row.threads, _ROUNDS_THEN)["run"])


def _measured(row: Row, ways: Mapping[str, _Tuned], rounds: int, cold: Context | None) -> Row:
    contestants = {name: _Contestant(row.network, tuned, row.threads, cold) for name, tuned in ways.items()}
    nearness = Nearness(row.threads)
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for contestant in contestants.values():
            nearness.rest()
            contestant.take_turn()
    found = {name: contestant.way() for name, contestant in contestants.items()}
    if len(contestants) < 2:
        return replace(row, ways=found)
    models = {name: contestant.session.model for name, contestant in contestants.items()}
    return replace(row, ways=found, gain=_gain(models, contestants[DEPLOYED].feed, row.threads, rounds))


def _gain(models: Mapping[str, CompiledModel], feed: Mapping[str, Any], threads: int, rounds: int) -> float:
    """How many times as fast the one that was tuned as deployed is, in processes that each begin anew."""
    runs_s = _fresh_runs_s(models, feed, threads, rounds)
    turns = zip(runs_s[WARM_TUNED], runs_s[DEPLOYED], strict=True)
    return median(warm_s / deployed_s for warm_s, deployed_s in turns)


def _fresh_runs_s(
    models: Mapping[str, CompiledModel], feed: Mapping[str, Any], threads: int, rounds: int
) -> dict[str, list[float]]:
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{number}.tw" for number, name in enumerate(models)}
        for name, model in models.items():
            save(model, files[name])
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, **feed)
        return fresh_runs.compare(files, inputs, threads, rounds)


class _Contestant:
    """A compiled network and each of its kernels alone, timed once in each turn."""

    def __init__(self, network: str, tuned: _Tuned, threads: int, cold: Context | None) -> None:
        target = Target.native()
        self.tuned = tuned
        self.session = InferenceSession(compile_partition(tuned.partition, str(tuned.records), target, threads).model)
        self.feed = inputs_for(self.session.model.input_types, read_network(network))
        programs = recorded_programs(tuned.partition, str(tuned.records), target, threads)
        self.told_s = {task_hash: found.best.latency_s for task_hash, found in programs.items() if found.best}
        self.kernels: list[_Alone] = []
        copies = ColdArrays(cold or deployed_context(tuned.partition.tasks), target)
        for weighted in tuned.partition.tasks:
            task = weighted.task
            best = programs[task.hash].best if task.hash in programs else None
            trace = default_trace(task, target, threads) if best is None else best.trace
            self.kernels.append(_Alone(task, trace, target, threads, copies))
        self.runs_s: list[float] = []
        self.network_s: list[list[float]] = []

    def take_turn(self) -> None:
        once_s = self._run_s(1)
        self.runs_s.append(self._run_s(max(1, round(_RUNS_S / once_s))))
        self.network_s.append(calls_by_kernel(self.session, self.feed))
        for kernel in self.kernels:
            kernel.take_turn()

    def _run_s(self, number: int) -> float:
        """Seconds a run of the network, of so many one after the other."""
        start_s = time.perf_counter()
        for _ in range(number):
            self.session.run(None, self.feed)
        return (time.perf_counter() - start_s) / number

    def way(self) -> Way:
        inside_s = [median(times) for times in zip(*self.network_s, strict=True)]
        tasks = tuple(
            TaskTimes(
                weighted.task.name,
                weighted.weight,
                _ms(self.told_s.get(weighted.task.hash)),
                1e3 * median(kernel.warm_s),
                1e3 * median(kernel.cold_s),
                1e3 * inside,
            )
            for weighted, kernel, inside in zip(self.tuned.partition.tasks, self.kernels, inside_s, strict=True)
        )
        return Way(
            context=str(self.tuned.context),
            num_trials=self.tuned.last.num_trials,
            tuning_s=self.tuned.last.elapsed_s,
            told_ms=1e3 * self.tuned.last.latency_s,
            warm_ms=_total(tasks, lambda task: task.warm_ms),
            cold_ms=_total(tasks, lambda task: task.cold_ms),
            network_ms=_total(tasks, lambda task: task.network_ms),
            run_ms=1e3 * median(self.runs_s),
            tasks=tasks,
            run_then_ms=self.tuned.run_then_ms,
        )


class _Alone:
    """A kernel on arrays of its own."""

    def __init__(self, task: Task, trace: Trace, target: Target, threads: int, cold: ColdArrays) -> None:
        arrays = dict(zip(task.inputs, random_inputs(task, np.random.default_rng(0)), strict=True))
        kernel = build(trace.apply(task), target, threads)
        self.kernel = kernel.bind(**{tensor.name: arrays[tensor] for tensor in task.constants})
        self.inputs = {tensor.name: arrays[tensor] for tensor in task.inputs if not tensor.is_constant}
        self.outputs = {tensor.name: np.empty(tensor.shape, numpy_dtype(tensor.dtype)) for tensor in task.outputs}
        self.cold = cold
        self.warm_s: list[float] = []
        self.cold_s: list[float] = []

    def take_turn(self) -> None:
        self.warm_s.append(self._time_s(self.kernel, None))
        copies = self.cold.activations(self.inputs, self.outputs)
        self.cold_s.append(self._time_s(self.cold.constants(self.kernel), copies))

    def _time_s(self, kernel: Kernel, copies: Copies | None) -> float:
        """Seconds a run, after one that warms up."""
        first = self.inputs | self.outputs if copies is None else copies.first
        inputs, outputs = [first[name] for name in self.inputs], tuple(first[name] for name in self.outputs)
        once_s = kernel.time(*inputs, number=1, out=outputs, copies=copies)
        number = int(np.clip(_TURN_S / max(once_s, 1e-7), 2, 1000))
        return kernel.time(*inputs, number=number, out=outputs, copies=copies) / number


def calls_by_kernel(session: InferenceSession, feed: Mapping[str, Any]) -> list[float]:
    """The seconds that one call of each kernel took in a run of the network; the mean where it is called often."""
    calls = [call.kernel for step in session.model.steps if isinstance(step, NativeStep) for call in step.calls]
    times = session.profile(feed)
    if len(times) != len(calls):
        raise TilewrightError("the network has operators without a kernel, which nobody tunes; choose another")
    spent_s: dict[int, list[float]] = {}
    for kernel, step in zip(calls, times, strict=True):
        spent_s.setdefault(kernel, []).append(step.seconds)
    return [float(np.mean(spent_s[kernel])) for kernel in range(len(session.model.kernels))]


def _total(tasks: Sequence[TaskTimes], value: Callable[[TaskTimes], float]) -> float:
    return sum(task.weight * value(task) for task in tasks)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def row_of(ways: Mapping[str, Mapping[str, Any]], **fields: Any) -> Row:
    """A row from its JSON."""
    known = {
        name: Way(**{**way, "tasks": tuple(TaskTimes(**task) for task in way["tasks"])}) for name, way in ways.items()
    }
    return Row(ways=known, **fields)


def is_true(row: Row) -> bool:
    """Whether the tuner says what the network takes."""
    return DEPLOYED in row.ways and abs(row.ways[DEPLOYED].error) <= TOLERANCE


def has_gained(row: Row) -> bool:
    """Whether measuring as deployed paid, where it must and both ways were tuned."""
    return row.network not in MUST_GAIN or row.gain is None or row.gain > 1


def passed(rows: Sequence[Row]) -> bool:
    """Whether all networks reach what they must."""
    return bool(rows) and all(not row.failure and is_true(row) and has_gained(row) for row in rows)


def verdict(row: Row) -> str:
    if row.failure:
        return f"failed: {row.failure}"
    way = row.ways[DEPLOYED]
    then_ms = way.run_then_ms or way.run_ms
    return f"told {milliseconds(way.told_ms)}, runs in {milliseconds(then_ms)}: {way.error:+.1%}"


def as_table(rows: Sequence[Row]) -> str:
    """One line for each way a network was tuned, and below them what they must reach."""
    header = (
        "case",
        "tuned",
        "context",
        "trials",
        "told",
        "run then",
        "alone, warm",
        "alone, cold",
        "in the network",
        "run",
        "error",
    )
    cells = [_cells(row, name, way) for row in rows for name, way in row.ways.items()]
    table = markdown(header, cells)
    return "\n".join([heading(describe_machine([]), METHOD), table, "", *map(_conclusion, rows), _mark(passed(rows))])


def _cells(row: Row, name: str, way: Way) -> list[str]:
    times = (way.told_ms, way.run_then_ms or way.run_ms, way.warm_ms, way.cold_ms, way.network_ms, way.run_ms)
    return [row.case, name, way.context, str(way.num_trials), *map(milliseconds, times), f"{way.error:+.1%}"]


def _conclusion(row: Row) -> str:
    if row.failure:
        return f"{row.case}: failed: {row.failure}"
    error = row.ways[DEPLOYED].error
    said = f"{row.case}: the tuner is {error:+.1%} off (at most {TOLERANCE:.0%}): {_mark(is_true(row))}"
    if row.gain is None:
        return said
    return f"{said}; {row.gain:.3f} times as fast as tuned warm: {_mark(has_gained(row))}"


def _mark(is_reached: bool) -> str:
    return "pass" if is_reached else "FAIL"


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object, with every task; `Suite.read` takes it back."""
    return json.dumps(
        {
            "machine": describe_machine([]),
            "method": METHOD,
            "status": "pass" if passed(rows) else "fail",
            "tolerance": TOLERANCE,
            "cases": [asdict(row) for row in rows],
        },
        indent=2,
    )


if __name__ == "__main__":
    sys.exit(main())
