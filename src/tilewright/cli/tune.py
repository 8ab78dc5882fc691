"""`tilewright tune WORKLOAD|MODEL`: find fast programs, with progress on stderr and the result on stdout."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilewright.cli import fleet, network, template
from tilewright.cli.status_line import StatusLine
from tilewright.cli.target import DEFAULT_TARGET
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.tuning.prior import Prior
    from tilewright.tuning.tuner import Progress, TuneResult

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_TRIALS = 128


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "tune",
        help="search for fast programs of a workload or a model on this machine",
        description="Search for the fastest program of a workload, or of each task of a model. Every trial is recorded "
        "at once: after an interrupt the same command goes on.",
    )
    parser.add_argument(
        "workload",
        metavar="WORKLOAD|MODEL",
        help="such as gmm:512x512x512, c2d:1x28x28x128,128,3x3,s1,p1, model.onnx or zoo:resnet18",
    )
    parser.add_argument(
        "--trials",
        type=int,
        metavar="N",
        help=f"measurements at most (default: {_TRIALS}; of a model 64 for each task, or what the budget allows)",
    )
    parser.add_argument("--budget", metavar="TIME", help="stop after this time, such as 90s, 5m or 1h")
    parser.add_argument("--records", metavar="FILE", help="append every trial to FILE, and go on from what it holds")
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="T", help="default: %(default)s")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the kernel (default: all cores)")
    parser.add_argument(
        "--cost-model",
        default="default",
        metavar="M",
        help="its name (tilewright model list) or the file of a saved one; by default the one that ships, which learns "
        "of each task as it is measured",
    )
    parser.add_argument(
        "--prior",
        action="append",
        metavar="FILE",
        help="what is known of other tasks: a record file, a pattern such as 'records/*.jsonl', or the file of a "
        "trained model; may be repeated",
    )
    parser.add_argument(
        "--search",
        default="evolutionary",
        metavar="S",
        help="evolutionary (default), annealing, genetic, coordinate-descent, tpe, grid, random, or the file of a "
        "strategy",
    )
    template.add_argument(
        parser,
        "search the space of a template, a function that FILE.py decorates with @tw.template, and nothing else; with "
        "OPERATOR=, such as conv2d=, its programs next to those that are derived, for the tasks of that operator (may "
        "be repeated). The file is run",
    )
    parser.add_argument("--seed", type=int, default=0)
    fleet.add_arguments(parser)
    parser.add_argument(
        "--context",
        metavar="C",
        help="what kernels find of their constants when they are timed: warm, or cold-8M for those last read 8 MB ago "
        "(default: warm; of a model, as it runs them)",
    )
    network.add_exact_argument(parser)
    model = parser.add_argument_group("of a model")
    network.add_shape_argument(model)
    model.add_argument("-o", "--output", metavar="OUT", help="write the compiled model, such as model.tw")
    model.add_argument(
        "--objective",
        choices=("f1", "f2", "f3", "f4"),
        help="f1: its latency (default); f2: until it is below --required-ms; f3: its speed-up over zero trials; f4: "
        "as f1, but a task that does not improve is left",
    )
    model.add_argument("--required-ms", type=float, metavar="MS", help="the latency that f2 asks for")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Tune, and print what was found."""
    if network.is_compiled(arguments.workload):
        raise UsageError(f"{arguments.workload} is compiled already; tune the model it was made of")
    if network.is_network(arguments.workload):
        from tilewright.cli import tune_network

        template.check_operators(arguments)
        with template.registered(arguments.template):
            tune_network.run(arguments)
        return
    for option in ("shape", "output", "objective", "required_ms"):
        if getattr(arguments, option):
            raise UsageError(f"--{option.replace('_', '-')} is for models, and {arguments.workload} is a workload")
    with template.registered(arguments.template):
        _tune_workload(arguments)


def _tune_workload(arguments: argparse.Namespace) -> None:
    from tilewright import workloads
    from tilewright.tuning.tuner import tune

    task = workloads.parse(arguments.workload)
    path = arguments.records or f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', arguments.workload)}.jsonl"
    trials = _TRIALS if arguments.trials is None else arguments.trials
    display = Display(task.flop)
    print(f"tuning {arguments.workload}, {trials} trials; records in {path}", file=sys.stderr)
    try:
        with fleet.chosen_fleet(arguments, display.say) as chosen:
            result = tune(
                task,
                trials=trials,
                records=path,
                seed=arguments.seed,
                target=arguments.target if chosen is None else chosen.target,
                threads=arguments.threads if chosen is None else chosen.threads,
                search=arguments.search,
                cost_model=arguments.cost_model,
                prior=read_prior(arguments.prior, path),
                exact=arguments.exact,
                budget_s=parse_time(arguments.budget),
                workload=arguments.workload,
                template=template.only_template(arguments),
                context=arguments.context or "warm",
                measurer=chosen,
                on_progress=display.show,
            )
    except KeyboardInterrupt:
        display.finish()
        print(_how_to_go_on(path), file=sys.stderr)
        raise
    display.finish()
    print(summary(result))


def read_prior(given: list[str] | None, records: str) -> Prior | None:
    """What is known of other tasks, which is said; None where nothing is given."""
    if given is None:
        return None
    from tilewright.tuning import prior

    found = prior.read_prior(given, leave_out=records)
    print(f"prior: {found}", file=sys.stderr)
    return found


def _how_to_go_on(path: str) -> str:
    """After an interrupt."""
    if not os.path.exists(path):
        return "interrupted before the first trial; the same command starts again"
    return (
        f"interrupted; every finished trial is in {path}: the same command goes on from there\n"
        f"the best so far: {shlex.join(['tilewright', 'records', 'best', path])}"
    )


def parse_time(text: str | None) -> float | None:
    """Seconds from 90s, 5m or 1h.

    >>> parse_time("5m")
    300.0
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        raise UsageError(f"--budget is {text!r}; give a number and a unit, such as 90s, 5m or 1h")
    time_s = float(found[1]) * _UNITS[found[2]]
    if not time_s:
        raise UsageError(f"--budget is {text!r}; it must be above 0")
    return time_s


class Display:
    """Where the tuning of one task stands."""

    def __init__(self, flop: float) -> None:
        self.flop = flop
        self._line = StatusLine()

    def show(self, progress: Progress) -> None:
        self._line.show(self._text(progress), is_last=progress.num_trials >= progress.max_trials)

    def say(self, text: str) -> None:
        """What happened, on a line that stays."""
        self._line.say(text)

    def finish(self) -> None:
        self._line.finish()

    def _text(self, progress: Progress) -> str:
        done = max(1, progress.num_trials)
        left_s = progress.elapsed_s / done * (progress.max_trials - progress.num_trials)
        return (
            f"{progress.elapsed_s:7.1f} s  trial {progress.num_trials}/{progress.max_trials}  "
            f"now {self._speed(progress.last.latency_s if progress.last else None)}  "
            f"best {self._speed(progress.best_latency_s)}  {failures(progress.statuses)}  left {left_s:.0f} s"
        )

    def _speed(self, latency_s: float | None) -> str:
        if latency_s is None:
            return "-"
        return f"{self.flop / latency_s / 1e9:.1f} GFLOP/s {_milliseconds(latency_s)}"


def _milliseconds(latency_s: float) -> str:
    """Three digits behind the point, or of what would be mostly zeros.

    >>> _milliseconds(1.44e-3), _milliseconds(4.258e-8)
    ('1.440 ms', '4.26e-05 ms')
    """
    time_ms = latency_s * 1e3
    return f"{time_ms:.3f} ms" if time_ms >= 0.01 else f"{time_ms:.3g} ms"


def failures(statuses: Mapping[str, int]) -> str:
    """How many trials failed, by a time-out or otherwise.

    >>> failures({"OK": 5, "RUN_TIMEOUT": 1, "WRONG_RESULT": 2})
    'errors 2  time-outs 1'
    """
    num_timeouts = statuses.get("BUILD_TIMEOUT", 0) + statuses.get("RUN_TIMEOUT", 0)
    num_errors = sum(statuses.values()) - statuses.get("OK", 0) - num_timeouts
    return f"errors {num_errors}  time-outs {num_timeouts}"


def summary(result: TuneResult) -> str:
    """The last lines: the best latency, the records, how to use them, and the trace to paste."""
    command = shlex.join(["tilewright", "records", "best", result.path or ""])
    return "\n".join([str(result), f"use it: {command}", "trace:", str(result.best.trace)])
