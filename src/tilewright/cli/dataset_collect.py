"""`tilewright dataset collect`: measure programs of networks and workloads, and add them to a dataset."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.cli import fleet, network
from tilewright.cli.status_line import StatusLine
from tilewright.cli.target import DEFAULT_TARGET
from tilewright.cli.tune import parse_time
from tilewright.errors import TilewrightError, UsageError

if TYPE_CHECKING:
    from tilewright.tuning.collection import Collected, CollectProgress, TaskSource

_PROGRAMS = 96


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to the parser of `tilewright dataset`."""
    parser = actions.add_parser(
        "collect",
        help="measure programs of networks and workloads on this machine",
        description="Measure a mixture of programs, good and bad, of each task of networks and workloads, and add them "
        "to a dataset. What is there is not measured again: after an interrupt the same command goes on, and other "
        "networks, targets and threads are added.",
    )
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="NETWORK|WORKLOAD",
        help="such as model.onnx, zoo:resnet18, gmm:512x512x512 or c2d:1x28x28x128,128,3x3,s1,p1",
    )
    parser.add_argument(
        "--programs", type=int, default=_PROGRAMS, metavar="N", help="programs of each task (default: %(default)s)"
    )
    network.add_shape_argument(parser)
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="T", help="default: %(default)s")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the kernels (default: all cores)")
    parser.add_argument(
        "--device", metavar="NAME", help="what the dataset calls this device (default: cpu and threads)"
    )
    parser.add_argument(
        "--context",
        metavar="C",
        help="what kernels find of their constants when they are timed: warm, or cold-8M for those last read 8 MB ago "
        "(default: of a network, as it runs them; of a workload, warm)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choice of programs (default: %(default)s)")
    parser.add_argument("--budget", metavar="TIME", help="stop after this time, such as 90s, 20m or 8h")
    fleet.add_arguments(parser)
    parser.add_argument(
        "--again",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="measure this share of the programs a second time, after all others, to know how noisy they are",
    )
    parser.add_argument(
        "--recheck",
        action="store_true",
        help="measure once more what took much longer than expected, also of earlier runs; the lower latency counts",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the dataset; made if there is none")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Collect, and print what is there now."""
    from tilewright.measure import Context
    from tilewright.records.dataset import DatasetFolder, checked_name
    from tilewright.target import Target, checked_threads
    from tilewright.tuning.collection import MEASURING, collect

    _check(arguments)
    target, threads = Target.parse(arguments.target), checked_threads(arguments.threads, "--threads")
    context = None if arguments.context is None else Context.parse(arguments.context)
    device = None if arguments.device is None else checked_name(arguments.device)
    sources = [_source(text, arguments) for text in _distinct(arguments.sources)]
    _check_names(sources)
    _say_tasks(sources, arguments.output)
    display = Display()
    try:
        with fleet.chosen_fleet(arguments, display.say, MEASURING) as chosen:
            collected = collect(
                sources,
                DatasetFolder.create(arguments.output),
                programs=arguments.programs,
                target=target if chosen is None else chosen.target,
                threads=threads if chosen is None else chosen.threads,
                device=device,
                processor=None if chosen is None else chosen.processor,
                context=context,
                seed=arguments.seed,
                again=arguments.again,
                recheck=arguments.recheck,
                budget_s=parse_time(arguments.budget),
                measurer=chosen,
                on_progress=display.show,
            )
    except KeyboardInterrupt:
        display.finish()
        print(f"interrupted; all that was measured is in {arguments.output}: the same command goes on", file=sys.stderr)
        raise
    display.finish()
    print(summary(collected, arguments.output))
    if not collected.num_programs and not collected.is_complete:
        raise TilewrightError("nothing was collected, since the time was up before that; give more --budget")
    if not collected.num_programs:
        raise TilewrightError("nothing was collected, since no task has a program; inspect the networks with --tasks")


def _check(arguments: argparse.Namespace) -> None:
    """Before the work that comes before the first measurement."""
    from tilewright.tuning.collection import MOST_PROGRAMS

    if not 1 <= arguments.programs <= MOST_PROGRAMS:
        raise UsageError(f"--programs is {arguments.programs}; it must be a whole number from 1 to {MOST_PROGRAMS}")
    if not 0 <= arguments.again <= 1:
        raise UsageError(f"--again is {arguments.again}; it must be a share of the programs, from 0 to 1")
    if arguments.seed < 0:
        raise UsageError(f"--seed is {arguments.seed}; it must be at least 0")
    parse_time(arguments.budget)
    network.check_place("-o", arguments.output, is_folder=True)
    if arguments.shape and not any(map(network.is_network, arguments.sources)):
        raise UsageError("--shape is for networks, and only workloads are given; leave it out")


def _distinct(texts: Sequence[str]) -> list[str]:
    """Each file and workload once, as it is spelt first."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(_spelling(text), text)
    return list(found.values())


def _spelling(text: str) -> str:
    """Equal for arguments that name the same file or workload."""
    from tilewright import workloads

    if network.is_compiled(text):
        return text
    return os.path.abspath(text) if network.is_network(text) else workloads.canonical(text)


def _source(text: str, arguments: argparse.Namespace) -> TaskSource:
    """What an argument names, cut into tasks."""
    from tilewright import workloads
    from tilewright.network import name_of, partition_network
    from tilewright.tuning.collection import TaskSource
    from tilewright.tuning.task_scheduler import WeightedTask

    if network.is_compiled(text):
        raise UsageError(f"{text} is compiled already; give the model it was made of")
    if not network.is_network(text):
        task = workloads.parse(text)
        return TaskSource(workloads.canonical(text), (WeightedTask(task, 1),), is_workload=True)
    network.check_model(text)
    shapes = network.parse_shapes(arguments.shape)
    print(f"reading {text}", file=sys.stderr)
    sizes = " ".join(sorted(set(arguments.shape)))
    return TaskSource(name_of(text), tuple(partition_network(text, shapes).tasks), sizes)


def _check_names(sources: list[TaskSource]) -> None:
    names = [source.name for source in sources]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two of the networks are called {twice}; rename a file, or collect only one of them")


def _say_tasks(sources: list[TaskSource], folder: str) -> None:
    digests = {weighted.task.hash for source in sources for weighted in source.tasks}
    print(f"collecting {len(digests)} tasks of {len(sources)} networks and workloads into {folder}", file=sys.stderr)


class Display:
    """Where a collection stands."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def show(self, progress: CollectProgress) -> None:
        self._line.show(status(progress), is_last=progress.num_done >= progress.num_total)

    def say(self, text: str) -> None:
        """What happened, on a line that stays."""
        self._line.say(text)

    def finish(self) -> None:
        self._line.finish()


def status(progress: CollectProgress) -> str:
    """Elapsed time, programs, how many a second, failures, the task and the time left."""
    left = "-" if progress.time_left_s is None else duration(progress.time_left_s)
    return (
        f"{progress.elapsed_s:7.1f} s  programs {progress.num_done}/{progress.num_total}  "
        f"{progress.per_second:.1f}/s  {failures(progress.statuses)}  {progress.task.name}  left {left}"
    )


def failures(statuses: dict[str, int]) -> str:
    """How many programs failed, by their status.

    >>> failures({"OK": 5, "RUN_TIMEOUT": 1, "WRONG_RESULT": 2}), failures({"OK": 5})
    ('failures: RUN_TIMEOUT 1, WRONG_RESULT 2', 'failures: none')
    """
    failed = [f"{status} {count}" for status, count in sorted(statuses.items()) if status != "OK"]
    return f"failures: {', '.join(failed) or 'none'}"


def duration(time_s: float) -> str:
    """A time for people.

    >>> duration(8.4), duration(75), duration(7500)
    ('8 s', '1m15s', '2h05m')
    """
    if time_s < 60:
        return f"{time_s:.0f} s"
    if time_s < 3600:
        return f"{time_s // 60:.0f}m{time_s % 60:02.0f}s"
    return f"{time_s // 3600:.0f}h{time_s % 3600 // 60:02.0f}m"


def summary(collected: Collected, folder: str) -> str:
    """What is there, what was added, and how to go on."""
    rate = collected.num_measured / max(collected.elapsed_s, 1e-9)
    lines = [
        f"device: {collected.device.name}, {collected.device.threads} threads on {collected.device.target}",
        f"programs: {collected.num_programs} of {collected.num_tasks} tasks",
        f"measured: {collected.num_measured} in {duration(collected.elapsed_s)}, {rate:.1f} a second",
        failures(collected.statuses),
        f"dataset: {folder}",
    ]
    if not collected.is_complete:
        lines.append("the time is up, and more is to be measured: the same command goes on")
    return "\n".join(lines)
