"""`tilewright tune MODEL`: tune the tasks of a network, those first that promise most, and show what it gained."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING

from tilewright.cli import fleet, network
from tilewright.cli.compile import write_artifact
from tilewright.cli.status_line import StatusLine
from tilewright.cli.tune import failures, parse_time, read_prior
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.measure.fleet import DeviceInfo
    from tilewright.network import TunedNetwork
    from tilewright.te import Task
    from tilewright.tuning.task_scheduler import NetworkProgress


def run(arguments: argparse.Namespace) -> None:
    """Tune, write the compiled model if one is asked for, and print what was found."""
    from tilewright.network import name_of

    _check_options(arguments)
    network.check_model(arguments.workload)
    path = arguments.records or f"{name_of(arguments.workload)}.jsonl"
    print(f"tuning {arguments.workload}; records in {path}", file=sys.stderr)
    if kinds := fleet.several_kinds(arguments):
        _tune_for_kinds(arguments, kinds, path)
        return
    try:
        tuned = _tune(arguments, path)
    except KeyboardInterrupt:
        print(_how_to_go_on(arguments, path), file=sys.stderr)
        raise
    lines = _summary(tuned)
    records = path if tuned.result.tasks and tuned.takes_tuned else None
    if tuned.result.tasks:
        lines.append(f"records: {path}")
    if arguments.output:
        lines += write_artifact(tuned.model, arguments.output)
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


def _tune(arguments: argparse.Namespace, path: str) -> TunedNetwork:
    from tilewright.network import tune_network
    from tilewright.target import checked_threads

    display = Display()
    model: str = arguments.workload

    def show_untuned(_: str, latency_s: float) -> None:
        display.finish()
        print(f"with zero trials: {_milliseconds(latency_s)}", file=sys.stderr)

    try:
        with fleet.chosen_fleet(arguments, display.say) as chosen:
            threads = checked_threads(arguments.threads, "--threads") if chosen is None else chosen.threads
            return tune_network(
                model,
                trials=arguments.trials,
                budget_s=parse_time(arguments.budget),
                records=path,
                target=arguments.target if chosen is None else chosen.target,
                threads=threads,
                shapes=network.parse_shapes(arguments.shape),
                seed=arguments.seed,
                search=arguments.search,
                cost_model=arguments.cost_model,
                prior=read_prior(arguments.prior, path),
                exact=arguments.exact,
                objective=arguments.objective or "f1",
                required_latency_s=None if arguments.required_ms is None else arguments.required_ms / 1e3,
                context=arguments.context,
                measurer=chosen,
                on_progress=display.show,
                on_compile=display.show_kernels,
                on_untuned=show_untuned,
            )
    finally:
        display.finish()


def _tune_for_kinds(arguments: argparse.Namespace, kinds: list[list[DeviceInfo]], path: str) -> None:
    """Tune for several kinds of devices at once: one file of records, and a compiled model for each."""
    from tilewright.network import tune_network_for

    if arguments.objective not in (None, "f1"):
        raise UsageError(f"--objective {arguments.objective} is for devices of one kind; name them with --devices")
    if arguments.prior:
        raise UsageError("--prior is for devices of one kind; name them with --devices")
    display = KindsDisplay()
    try:
        with fleet.fleets_of_kinds(arguments, kinds, display.say) as fleets:
            found = tune_network_for(
                arguments.workload,
                fleets,
                trials=arguments.trials,
                budget_s=parse_time(arguments.budget),
                records=path,
                shapes=network.parse_shapes(arguments.shape),
                seed=arguments.seed,
                search=arguments.search,
                cost_model=arguments.cost_model,
                exact=arguments.exact,
                context=arguments.context,
                on_progress=display.show,
            )
    except KeyboardInterrupt:
        print(f"interrupted; every finished trial is in {path}: the same command goes on from there", file=sys.stderr)
        raise
    finally:
        display.finish()
    for device, tuned in found.items():
        lines = [f"{device}:", *_summary(tuned)]
        if arguments.output:
            lines += write_artifact(tuned.model, path_for(arguments.output, device))
        print("\n".join(lines))
    print(f"records: {path}")


def path_for(path: str, device: str) -> str:
    """The file of one device.

    >>> path_for("out/model.tw", "board-1")
    'out/model.board-1.tw'
    """
    stem, suffix = os.path.splitext(path)
    return f"{stem}.{device}{suffix}"


class KindsDisplay:
    """Where the tuning of a network for several kinds of devices stands: a line for each of them in turn."""

    def __init__(self) -> None:
        self._lines: dict[str, StatusLine] = {}

    def show(self, device: str, progress: NetworkProgress) -> None:
        line = self._lines.setdefault(device, StatusLine())
        is_last = progress.max_trials is not None and progress.num_trials >= progress.max_trials
        line.show(f"{device}: {status(progress)}", is_last=is_last)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def finish(self) -> None:
        for line in self._lines.values():
            line.finish()


class Display:
    """Where the tuning of a network stands."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def show(self, progress: NetworkProgress) -> None:
        is_last = progress.max_trials is not None and progress.num_trials >= progress.max_trials
        self._line.show(status(progress), is_last=is_last)

    def show_kernels(self, done: int, total: int) -> None:
        self._line.show(f"compiling: {done} of {total} kernels", is_last=done == total)

    def say(self, text: str) -> None:
        """What happened, on a line that stays."""
        self._line.say(text)

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


def _summary(tuned: TunedNetwork) -> list[str]:
    result, choice = tuned.result, tuned.choice
    trials = f"trials: {result.num_trials} in {result.elapsed_s:.1f} s; {tuned.tuned.origin}"
    if choice is None:
        return [f"after: its tasks take {_milliseconds(tuned.estimate_s)} where they were measured, added up", trials]
    before_s, after_s = choice.untuned.median_s, choice.tuned.median_s
    alone = _milliseconds(tuned.estimate_s)
    gain = f"{before_s / after_s:.2f} times as fast"
    lines = [
        f"before: {_milliseconds(before_s)} with zero trials, measured",
        f"after: {_milliseconds(after_s)}, measured in turns; {gain}; the tasks alone take {alone}",
        trials,
    ]
    if not choice.takes_tuned:
        lines.append("kept: the programs with zero trials, which are faster in the network; tune it for longer")
    return lines


def _how_to_go_on(arguments: argparse.Namespace, path: str) -> str:
    """After an interrupt: the trials are kept, and what they found so far can be compiled."""
    from tilewright.network import name_of

    if not os.path.exists(path):
        return "interrupted before the first trial; the same command starts again"
    name = arguments.output or f"{name_of(arguments.workload)}.tw"
    return (
        f"interrupted; every finished trial is in {path}: the same command goes on from there\n"
        f"the model with what was found so far: {network.compile_command(arguments, path, name)}"
    )


def _next_command(arguments: argparse.Namespace, records: str | None) -> str:
    from tilewright.network import name_of

    if arguments.output:
        return f"tilewright run {shlex.quote(arguments.output)} --input x.npz --output y.npz"
    return network.compile_command(arguments, records, f"{name_of(arguments.workload)}.tw")
