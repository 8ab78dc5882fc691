"""The way of a network from its file to a compiled model, step by step."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from tilewright.codegen import Target
from tilewright.default_schedule import default_trace as best_guess
from tilewright.errors import UsageError
from tilewright.graph.compilation import Progress, compile_model
from tilewright.graph.compiled import CompiledModel
from tilewright.graph.groups import Partition
from tilewright.graph.kernel_workers import DefaultTrace
from tilewright.records import Key, Record, RecordedPrograms, group_by_task, read_records
from tilewright.runtime import checked_threads
from tilewright.schedule import Trace

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilewright.graph.onnx_import.sizes import Shapes

Source: TypeAlias = "str | os.PathLike[str] | bytes | ModelProto"
Records: TypeAlias = "str | os.PathLike[str] | Iterable[Record]"

ZOO = "zoo:"


def compile_network(
    source: Source,
    records: Records | None = None,
    *,
    target: Target | str | None = None,
    threads: int | None = None,
    shapes: Shapes | None = None,
    on_progress: Progress | None = None,
    default_trace: DefaultTrace | None = None,
) -> CompiledModel:
    """Compile an ONNX model, or a network of the zoo, with the fastest recorded programs.

    Records whose programs cannot be used are set aside with a warning. A task without a record gets the program that
    the analytical model thinks best, or the one that `default_trace` gives. `shapes` are those of inputs that the model
    leaves open, and sizes of dimensions by the model's names.
    """
    _check_records(records)
    chosen = _target(target)
    num_threads = checked_threads(threads)
    cut = partition_network(source, shapes)
    return compile_model(
        cut,
        recorded_programs(cut, records or (), chosen, num_threads),
        chosen,
        num_threads,
        default_trace=default_trace or partial(best_guess, target=chosen, threads=num_threads),
        last_resort=Trace() if default_trace is None else None,
        on_progress=on_progress,
    )


def partition_network(source: Source, shapes: Shapes | None = None) -> Partition:
    """Read a network, optimize its graph, and cut it into kernels, views and fallbacks."""
    from tilewright.graph.onnx_import import load_model
    from tilewright.graph.partition import partition
    from tilewright.graph.passes import optimize

    return partition(optimize(load_model(_model_of(source), shapes)))


def recorded_programs(
    partition: Partition, records: Records, target: Target, threads: int
) -> dict[str, RecordedPrograms]:
    """The recorded programs of each task that has any, by the task's hash."""
    known = read_records(records) if isinstance(records, str | os.PathLike) else records
    groups = group_by_task(known)
    found: dict[str, RecordedPrograms] = {}
    for weighted in partition.tasks:
        task = weighted.task
        programs = RecordedPrograms(task, groups.get(Key(task.hash, str(target), threads), ()))
        if programs.best is not None:
            found[task.hash] = programs
    return found


def _model_of(source: Source) -> Source:
    if not isinstance(source, str) or not source.startswith(ZOO):
        return source
    from tilewright.graph.zoo import build

    return build(source.removeprefix(ZOO))


def _check_records(records: object) -> None:
    """Before the work that they are for."""
    if records is None or isinstance(records, str | os.PathLike):
        return
    if isinstance(records, bytes) or not isinstance(records, Iterable):
        raise UsageError(f"records is {records!r}; it must be the path of a file, or records")


def _target(target: Target | str | None) -> Target:
    return Target.native() if target is None else Target.of(target)
