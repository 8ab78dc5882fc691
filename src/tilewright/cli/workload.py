"""A workload on the command line: its task, and its program: the best recorded one, or the untuned one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.cli.target import DEFAULT_TARGET
from tilewright.errors import TilewrightError, UsageError

if TYPE_CHECKING:
    from tilewright.schedule import Schedule, Trace
    from tilewright.space import Sketch
    from tilewright.target import Target
    from tilewright.te import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The workload, and what decides which program is its best."""
    parser.add_argument("workload", metavar="WORKLOAD", help="such as gmm:512x512x512 or c2d:1x28x28x128,128,3x3,s1,p1")
    parser.add_argument("--records", metavar="FILE", help="take the best program that FILE holds of the workload")
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="T", help="default: %(default)s")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the kernel (default: all cores)")


@dataclass(frozen=True, slots=True)
class WorkloadProgram:
    """A program, and how it was found."""

    task: Task
    target: Target
    threads: int
    trace: Trace
    origin: str

    @property
    def schedule(self) -> Schedule:
        return self.trace.apply(self.task)


def choose(arguments: argparse.Namespace, sketches: Sequence[Sketch] = ()) -> WorkloadProgram:
    """The program that the arguments of `add_arguments` ask for; an untuned one is of the sketches if there are any."""
    from tilewright import workloads
    from tilewright.target import Target
    from tilewright.tuning.untuned import default_trace, search_untuned

    task, target = workloads.parse(arguments.workload), Target.parse(arguments.target)
    threads = num_threads(arguments)
    if arguments.records is None and sketches:
        trace = search_untuned(sketches).trace
        origin = "the best of the template by the cost model that ships; nothing was measured"
    elif arguments.records is None:
        trace = default_trace(task, target, threads, exact=arguments.exact)
        origin = "the best by the cost model that ships; nothing was measured"
    else:
        trace, origin = _recorded_best(arguments.records, task, target, threads, arguments.exact)
    if not trace.is_exact:
        origin += f"; by {', '.join(trace.algorithms)}, which rounds more than sums do"
    return WorkloadProgram(task, target, threads, trace, origin)


def num_threads(arguments: argparse.Namespace) -> int:
    """What --threads says."""
    from tilewright.target import checked_threads

    return checked_threads(arguments.threads, "--threads")


def _recorded_best(path: str, task: Task, target: Target, threads: int, exact: bool) -> tuple[Trace, str]:
    from tilewright.records import find_programs, for_target, group_by_task, read_records
    from tilewright.tuning.untuned import default_trace

    records = [record for record in read_records(path) if record.trace.is_exact or not exact]
    programs = find_programs(task, group_by_task(for_target(records, target)), target, threads)
    if not programs.num_known:
        others = sorted({f"{r.threads} threads on {r.target}" for r in records if r.task == task.hash})
        hint = f"it has it for {'; '.join(others)}" if others else "it holds other workloads"
        raise UsageError(
            f"{path} has no valid program of this workload for {threads} threads on {target}; {hint}: "
            "tune the workload, or give other --threads or --target"
        )
    while (found := programs.best) is not None:
        assert found.latency_s is not None
        error = _why_not(found.trace, task, target, threads)
        if error is None:
            return found.trace, f"the best of {path}, recorded with {found.latency_s * 1e3:.4g} ms"
        programs.set_aside(error)
    origin = f"the best by the cost model that ships; no program of {path} can be used"
    return default_trace(task, target, threads, exact=exact), origin


def _why_not(trace: Trace, task: Task, target: Target, threads: int) -> TilewrightError | None:
    """Why the program does not compile, as far as that is known before LLVM sees it."""
    from tilewright.codegen import generate
    from tilewright.ir import lower

    try:
        generate(lower(trace.apply(task)), target, threads)
    except TilewrightError as error:
        return error
    return None
