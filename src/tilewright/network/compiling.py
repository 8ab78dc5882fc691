"""From a network, or what it was cut into, to native code, with the fastest programs that records know."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from tilewright.deploy.compiled import CompiledModel
from tilewright.errors import UsageError
from tilewright.network.reading import Source, partition_network
from tilewright.target import Target, checked_threads

if TYPE_CHECKING:
    from tilewright.deploy.compilation import Progress
    from tilewright.deploy.kernel_workers import DefaultTrace
    from tilewright.graph.onnx.sizes import Shapes
    from tilewright.measure import Context
    from tilewright.partition import Partition
    from tilewright.records import Record, RecordedPrograms

Records: TypeAlias = "str | os.PathLike[str] | Iterable[Record]"


@dataclass(frozen=True, slots=True, eq=False)
class CompiledNetwork:
    """A compiled network, and how many of its tasks have a program from records."""

    model: CompiledModel
    num_tasks: int
    num_tuned: int

    @property
    def origin(self) -> str:
        """Where its programs come from."""
        num_default = self.num_tasks - self.num_tuned
        return f"{self.num_tasks} tasks, {self.num_tuned} tuned and {num_default} with the default program"


def compile_network(
    source: Source,
    records: Records | None = None,
    *,
    target: Target | str | None = None,
    threads: int | None = None,
    shapes: Shapes | None = None,
    context: Context | str | None = None,
    exact: bool = False,
    on_progress: Progress | None = None,
    default_trace: DefaultTrace | None = None,
) -> CompiledModel:
    """Compile an ONNX model, or a network of the zoo: `partition_network`, then `compile_partition`."""
    _check_records(records)
    chosen, num_threads = target_or_native(target), checked_threads(threads)
    cut = partition_network(source, shapes)
    return compile_partition(cut, records, chosen, num_threads, on_progress, default_trace, context, exact).model


def compile_partition(
    partition: Partition,
    records: Records | None,
    target: Target,
    threads: int,
    on_progress: Progress | None = None,
    default_trace: DefaultTrace | None = None,
    context: Context | str | None = None,
    exact: bool = False,
) -> CompiledNetwork:
    """Compile the kernels of a network with the fastest recorded programs.

    Programs that were measured in `context`, by default as the network runs them, come before those of other contexts,
    which serve the tasks that have none. With `exact`, no program is used whose algorithm rounds more than sums do.
    Records whose programs cannot be used are set aside with a warning. A task without a record gets the program that
    the cost model that ships thinks best, or the one that `default_trace` gives. `on_progress` is called with how many
    kernels are compiled, and of how many.
    """
    from tilewright.deploy.compilation import compile_model
    from tilewright.schedule import Trace
    from tilewright.tuning.untuned import default_trace as best_guess

    programs = recorded_programs(partition, records or (), target, threads, context, exact)
    model = compile_model(
        partition,
        programs,
        target,
        threads,
        default_trace=default_trace or partial(best_guess, target=target, threads=threads, exact=exact),
        last_resort=Trace() if default_trace is None else None,
        on_progress=on_progress,
    )
    num_tuned = sum(found.best is not None for found in programs.values())
    return CompiledNetwork(model, len(partition.tasks), num_tuned)


def recorded_programs(
    partition: Partition,
    records: Records,
    target: Target,
    threads: int,
    context: Context | str | None = None,
    exact: bool = False,
) -> dict[str, RecordedPrograms]:
    """The recorded programs of each task that has any, by the task's hash; those that ran in `context` come first."""
    from tilewright.measure import Context
    from tilewright.records import find_programs, for_target, group_by_task, read_records
    from tilewright.tuning.task_scheduler import deployed_context

    wanted = deployed_context(partition.tasks) if context is None else Context.of(context)

    known = read_records(records) if isinstance(records, str | os.PathLike) else records
    groups = group_by_task(record for record in for_target(known, target) if record.trace.is_exact or not exact)
    found: dict[str, RecordedPrograms] = {}
    for weighted in partition.tasks:
        task = weighted.task
        programs = find_programs(task, groups, target, threads, str(wanted.of_task(task)))
        if programs.best is not None:
            found[task.hash] = programs
    return found


def _check_records(records: object) -> None:
    """Before the work that they are for."""
    if records is None or isinstance(records, str | os.PathLike):
        return
    if isinstance(records, bytes) or not isinstance(records, Iterable):
        raise UsageError(f"records is {records!r}; it must be the path of a file, or records")


def target_or_native(target: Target | str | None) -> Target:
    return Target.native() if target is None else Target.of(target)
