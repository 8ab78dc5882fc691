"""`python -m benchmarks.calibration`: programs that were never tuned, before and after `tilewright target --calibrate`.

Over the tasks of networks: how fast the program with zero trials is relative to the best one known, with the numbers of
a core as they are assumed and as they were measured. The best is the fastest of the records that --best names, or what
64 trials find. Every finished task is written to a JSON file at once, and the measured numbers are kept beside it, so
that a run that is started again with the same --records counts with the same ones. Exits with 1 if calibration makes
programs slower.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import arguments, suite
from benchmarks.machine import describe_machine
from benchmarks.suite import Suite, geometric_mean
from benchmarks.table import heading, markdown
from tilewright.errors import TilewrightError, UsageError
from tilewright.measure.calibration import calibrate
from tilewright.network import partition_network
from tilewright.records import find_programs, for_target, group_by_task, read_records
from tilewright.runtime import Array, Kernel, Timing, measure_loop
from tilewright.runtime.build import build
from tilewright.schedule import Trace
from tilewright.target import Calibration, Target, read_calibration, read_machine, write_calibration
from tilewright.te import Task, assert_matches, random_inputs, reduction_size
from tilewright.tuning.tuner import tune
from tilewright.tuning.untuned import default_trace

NETWORKS = ("zoo:resnet18", "zoo:mobilenet_v2", "zoo:bert_tiny")
TRIALS = 64
TURN_MS = 5.0
METHOD = (
    "The programs of a task take turns in one process, on the same inputs, and a ratio is the median over the rounds: "
    "the time of the best program known by that of the one with zero trials."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One task. A ratio is 0 where `failure` says why there is none."""

    task: str
    threads: int
    before_us: float = 0.0
    after_us: float = 0.0
    best_us: float = 0.0
    before_ratio: float = 0.0
    after_ratio: float = 0.0
    is_same: bool = False
    failure: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen tasks, and print all that the file holds of them."""
    parser = arguments.parser("benchmarks.calibration", __doc__)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), metavar="NETWORK", help="models.onnx or zoo:x")
    parser.add_argument(
        "--best", type=Path, metavar="FILE", help="records of the best programs known; nothing is tuned"
    )
    parser.add_argument("--trials", type=arguments.positive, default=TRIALS, metavar="N", help="without --best")
    options = suite.parse(parser, argv, "calibration")
    kept = Suite("task", Row, run, _verdict, as_table, as_json, passed)
    return kept.main([name for name in tasks_of(tuple(options.networks)) if options.case in name], options)


@lru_cache(maxsize=1)
def tasks_of(networks: tuple[str, ...]) -> dict[str, Task]:
    """The different tasks of all networks, each with a name of its own."""
    found: dict[str, tuple[str, Task]] = {}
    for network in networks:
        for number, weighted in enumerate(partition_network(network).tasks):
            name = f"{network.removeprefix('zoo:')} {number} {weighted.task.name}"
            found.setdefault(weighted.task.hash, (name, weighted.task))
    return dict(found.values())


def run(name: str, options: argparse.Namespace) -> Row:
    """Choose the three programs of one task, check that they agree, and time them in turns."""
    task, row = tasks_of(tuple(options.networks))[name], Row(name, options.threads)
    before, after = targets(options.records / "numbers.json", options.threads)
    try:
        programs = {
            "best": _best(task, options, before),
            "before": default_trace(task, before, options.threads),
            "after": default_trace(task, after, options.threads),
        }
        timings = measure(task, dict.fromkeys(programs.values()), before, options.threads, options.rounds)
    except (TilewrightError, AssertionError) as error:
        return replace(row, failure=str(error).splitlines()[0])
    first, second, best = (timings[programs[name]] for name in ("before", "after", "best"))
    return replace(
        row,
        before_us=first.median_s * 1e6,
        after_us=second.median_s * 1e6,
        best_us=best.median_s * 1e6,
        before_ratio=ratio(best, first),
        after_ratio=ratio(best, second),
        is_same=programs["before"] == programs["after"],
    )


@lru_cache(maxsize=1)
def targets(path: Path, threads: int) -> tuple[Target, Target]:
    """This machine with the numbers that are assumed, and with those that were measured for this benchmark."""
    before = Target.native().uncalibrated
    found = read_calibration(path)
    if found is None:
        print("calibrating", file=sys.stderr, flush=True)
        found = Calibration(read_machine().processor, str(before), calibrate(before, threads))
        write_calibration(path, found)
    return before, replace(before, core=before.core.with_values(found.core))


def _best(task: Task, options: argparse.Namespace, target: Target) -> Trace:
    if options.best is None:
        log = options.records / "tuned.jsonl"
        result = tune(
            task, trials=options.trials, records=log, seed=options.seed, target=target, threads=options.threads
        )
        return result.best.trace
    groups = group_by_task(for_target(read_records(options.best), target))
    found = find_programs(task, groups, target, options.threads).best
    if found is None:
        raise UsageError(f"{options.best} has no program of this task that can be used; leave --best out to tune it")
    return found.trace


def measure(task: Task, programs: Collection[Trace], target: Target, threads: int, rounds: int) -> dict[Trace, Timing]:
    """The time of each program, in turns. AssertionError where one computes something else than the first."""
    arrays = random_inputs(task, np.random.default_rng(0))
    inputs = {tensor.name: array for tensor, array in zip(task.inputs, arrays, strict=True)}
    loops: dict[Trace, Callable[[int], float]] = {}
    expected: tuple[Array, ...] = ()
    for trace in programs:
        kernel = build(trace.apply(task), target, threads).bind(**{t.name: inputs[t.name] for t in task.constants})
        given = [inputs[argument.name] for argument in kernel.inputs]
        found = kernel(*given)
        outputs = found if isinstance(found, tuple) else (found,)
        expected = expected or outputs
        for tensor, output, other in zip(task.outputs, outputs, expected, strict=True):
            assert_matches(output, other, tensor.dtype, reduction_size(task))
        loops[trace] = partial(_time, kernel, given, outputs)
    return take_turns(loops, rounds)


def _time(kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array], number: int) -> float:
    return kernel.time(*inputs, number=number, out=outputs)


def take_turns(loops: Mapping[Trace, Callable[[int], float]], rounds: int) -> dict[Trace, Timing]:
    """Each runs for some milliseconds a round; the order rotates, so that none always follows the same other."""
    traces = list(loops)
    numbers = {trace: measure_loop(loop, repeats=1, min_repeat_ms=TURN_MS).number for trace, loop in loops.items()}
    samples_s: dict[Trace, list[float]] = {trace: [] for trace in traces}
    for r in range(rounds):
        first = r % len(traces)
        for trace in traces[first:] + traces[:first]:
            samples_s[trace].append(loops[trace](numbers[trace]) / numbers[trace])
    return {trace: Timing(numbers[trace], tuple(samples_s[trace])) for trace in traces}


def ratio(best: Timing, ours: Timing) -> float:
    """The median over the rounds."""
    return median(best_s / our_s for best_s, our_s in zip(best.samples_s, ours.samples_s, strict=True))


def means(rows: Sequence[Row]) -> tuple[float, float]:
    """The geometric means of the ratios, before and after, of the tasks that have them."""
    whole = [row for row in rows if not row.failure]
    return geometric_mean([row.before_ratio for row in whole]), geometric_mean([row.after_ratio for row in whole])


def passed(rows: Sequence[Row]) -> bool:
    """Whether calibration does no harm."""
    before, after = means(rows)
    return after >= before and not any(row.failure for row in rows)


def as_table(rows: Sequence[Row]) -> str:
    """One line a task, and the means below."""
    header = ("task", "threads", "before", "after", "best known", "ratio before", "ratio after", "")
    table = markdown(header, [_cells(row) for row in rows])
    return "\n".join([heading(describe_machine(()), METHOD), table, "", *_summary(rows)])


def _cells(row: Row) -> list[str]:
    times = [f"{value:.4g} us" for value in (row.before_us, row.after_us, row.best_us)]
    note = row.failure or ("the same program" if row.is_same else "")
    return [row.task, str(row.threads), *times, f"{row.before_ratio:.2f}", f"{row.after_ratio:.2f}", note]


def _summary(rows: Sequence[Row]) -> list[str]:
    before, after = means(rows)
    changed = sum(not row.is_same for row in rows if not row.failure)
    ratios = f"geometric mean {before:.3f} before, {after:.3f} after"
    return [
        f"zero trials relative to the best known, {len(rows)} tasks: {ratios}; {changed} programs differ",
        "pass" if passed(rows) else "FAIL",
    ]


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object; `Suite.read` takes it back."""
    before, after = means(rows)
    return json.dumps(
        {
            "machine": describe_machine(()),
            "method": METHOD,
            "status": "pass" if passed(rows) else "fail",
            "before_geometric_mean": before,
            "after_geometric_mean": after,
            "cases": [asdict(row) for row in rows],
        },
        indent=2,
    )


def _verdict(row: Row) -> str:
    if row.failure:
        return f"failed: {row.failure}"
    return f"ratio {row.before_ratio:.2f} before, {row.after_ratio:.2f} after"


if __name__ == "__main__":
    sys.exit(main())
