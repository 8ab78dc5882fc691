"""`tilewright tune MODEL`: tune the tasks of a network, those first that promise most, and show what it gained."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.cli import arrays, chosen, network
from tilewright.cli.compile import write_artifact
from tilewright.cli.status_line import StatusLine
from tilewright.cli.tune import failures, parse_time
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.cli.network import Compiled
    from tilewright.deploy.choice import Choice
    from tilewright.partition.groups import Partition
    from tilewright.te import Task
    from tilewright.tuning.task_scheduler import NetworkProgress, NetworksResult

_REPEATS = 5


def run(arguments: argparse.Namespace) -> None:
    """Tune, write the compiled model if one is asked for, and print what was found."""
    from tilewright.deploy.choice import compare
    from tilewright.target import Target

    _check_options(arguments)
    target, threads = Target.parse(arguments.target), chosen.num_threads(arguments)
    name = network.base_name(arguments.workload)
    path = arguments.records or f"{name}.jsonl"
    partition = network.partition_of(arguments)
    print(f"tuning {arguments.workload}, {len(partition.tasks)} tasks; records in {path}", file=sys.stderr)
    untuned = network.compile_partition(partition, None, target, threads)
    inputs = arrays.random_inputs(untuned.model.inputs, network.read_onnx(arguments.workload))
    before_s = _measured_s(untuned, inputs)
    print(f"with zero trials: {_milliseconds(before_s)}", file=sys.stderr)
    try:
        result = _tune(arguments, partition, before_s, path)
        # Where no task has a kernel nothing is tuned, and there are no records.
        tuned = network.compile_partition(partition, path, target, threads) if result.tasks else untuned
        choice = compare(network.open_session(untuned.model), network.open_session(tuned.model), inputs)
    except KeyboardInterrupt:
        print(_how_to_go_on(arguments, path), file=sys.stderr)
        raise
    lines = _summary(result, tuned, choice)
    records = path if result.tasks and choice.takes_tuned else None
    if result.tasks:
        lines.append(f"records: {path}")
    if arguments.output:
        lines += write_artifact((tuned if choice.takes_tuned else untuned).model, arguments.output)
    print("\n".join([*lines, f"use it: {_next_command(arguments, records)}"]))


def _check_options(arguments: argparse.Namespace) -> None:
    if arguments.trials is not None and arguments.trials < 1:
        raise UsageError(f"--trials is {arguments.trials}; it must be at least 1")
    if (arguments.objective == "f2") != (arguments.required_ms is not None):
        raise UsageError("the objective f2 and --required-ms, the latency that it asks for, need each other; give both")
    if arguments.required_ms is not None and not arguments.required_ms > 0:
        raise UsageError(f"--required-ms is {arguments.required_ms}; it must be above 0")
    parse_time(arguments.budget)
    if arguments.output:
        network.check_place("-o", arguments.output)


def _tune(arguments: argparse.Namespace, partition: Partition, before_s: float, path: str) -> NetworksResult:
    from tilewright.target import Target
    from tilewright.tuning.task_scheduler import Network, TaskScheduler

    target, threads = Target.parse(arguments.target), chosen.num_threads(arguments)
    required_s = None if arguments.required_ms is None else arguments.required_ms / 1e3
    name = network.base_name(arguments.workload)
    scheduler = TaskScheduler(
        [Network(name, partition.tasks, required_s, reference_latency_s=before_s)],
        objective=arguments.objective or "f1",
        target=target,
        threads=threads,
        seed=arguments.seed,
        search=arguments.search,
        cost_model=arguments.cost_model,
    )
    display = Display()
    try:
        return scheduler.tune(
            arguments.trials, records=path, budget_s=parse_time(arguments.budget), on_progress=display.show
        )
    finally:
        display.finish()


def _measured_s(compiled: Compiled, inputs: Mapping[str, Any]) -> float:
    """The median latency of a few runs here."""
    from tilewright.runtime import measure

    session = network.open_session(compiled.model)
    return measure(lambda: session.run(None, inputs), repeats=_REPEATS).median_s


class Display:
    """Where the tuning of a network stands."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def show(self, progress: NetworkProgress) -> None:
        is_last = progress.max_trials is not None and progress.num_trials >= progress.max_trials
        self._line.show(status(progress), is_last=is_last)

    def finish(self) -> None:
        self._line.finish()


def status(progress: NetworkProgress) -> str:
    """Elapsed time, trials, the task and its speed, the network's latency, failures, and the time left."""
    of = "" if progress.max_trials is None else f"/{progress.max_trials}"
    (latency_s,) = progress.latencies_s.values()
    left = "-" if progress.time_left_s is None else f"{progress.time_left_s:.0f} s"
    return (
        f"{progress.elapsed_s:7.1f} s  trial {progress.num_trials}{of}  {progress.task.name}  "
        f"now {_speed(progress.task, progress.last.latency_s)}  best {_speed(progress.task, progress.best_latency_s)}  "
        f"network {_milliseconds(latency_s)}  {failures(progress.statuses)}  left {left}"
    )


def _speed(task: Task, latency_s: float | None) -> str:
    return "-" if not latency_s else f"{task.flop / latency_s / 1e9:.1f} GFLOP/s"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"


def _summary(result: NetworksResult, tuned: Compiled, choice: Choice) -> list[str]:
    (estimate_s,) = result.latencies_s.values()
    before_s, after_s = choice.untuned.median_s, choice.tuned.median_s
    gain = f"{before_s / after_s:.2f} times as fast"
    lines = [
        f"before: {_milliseconds(before_s)} with zero trials, measured",
        f"after: {_milliseconds(after_s)}, measured in turns; {gain}; the tasks alone take {_milliseconds(estimate_s)}",
        f"trials: {result.num_trials} in {result.elapsed_s:.1f} s; {tuned.origin}",
    ]
    if not choice.takes_tuned:
        lines.append("kept: the programs with zero trials, which are faster in the network; tune it for longer")
    return lines


def _how_to_go_on(arguments: argparse.Namespace, path: str) -> str:
    """After an interrupt: the trials are kept, and what they found so far can be compiled."""
    if not os.path.exists(path):
        return "interrupted before the first trial; the same command starts again"
    name = arguments.output or f"{network.base_name(arguments.workload)}.tw"
    return (
        f"interrupted; every finished trial is in {path}: the same command goes on from there\n"
        f"the model with what was found so far: {network.compile_command(arguments, path, name)}"
    )


def _next_command(arguments: argparse.Namespace, records: str | None) -> str:
    if arguments.output:
        return f"tilewright run {shlex.quote(arguments.output)} --input x.npz --output y.npz"
    return network.compile_command(arguments, records, f"{network.base_name(arguments.workload)}.tw")
