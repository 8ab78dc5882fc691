"""The whole way of a network: read, optimized, cut into tasks, compiled, run.

What compiles is imported when a network is compiled: a process that only runs a compiled one starts sooner.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.deploy.artifact import MAGIC, SUFFIX, is_artifact, load
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.program import FallbackFactory
from tilewright.deploy.providers import Provider, check_providers, threads_of
from tilewright.deploy.session import Session
from tilewright.errors import ArtifactError, UsageError
from tilewright.target import Target, checked_threads

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilewright.deploy.compilation import Progress
    from tilewright.deploy.kernel_workers import DefaultTrace
    from tilewright.graph.onnx.sizes import Shapes
    from tilewright.partition.groups import Partition
    from tilewright.records import Record, RecordedPrograms

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
    from tilewright.deploy.compilation import compile_model
    from tilewright.schedule import Trace
    from tilewright.tuning.untuned import default_trace as best_guess

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
    from tilewright.graph.onnx import load_model
    from tilewright.graph.passes import optimize
    from tilewright.partition import partition

    return partition(optimize(load_model(_model_of(source), shapes)))


def recorded_programs(
    partition: Partition, records: Records, target: Target, threads: int
) -> dict[str, RecordedPrograms]:
    """The recorded programs of each task that has any, by the task's hash."""
    from tilewright.records import Key, RecordedPrograms, group_by_task, read_records

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
    from tilewright.zoo import build

    return build(source.removeprefix(ZOO))


def _check_records(records: object) -> None:
    """Before the work that they are for."""
    if records is None or isinstance(records, str | os.PathLike):
        return
    if isinstance(records, bytes) or not isinstance(records, Iterable):
        raise UsageError(f"records is {records!r}; it must be the path of a file, or records")


def _target(target: Target | str | None) -> Target:
    return Target.native() if target is None else Target.of(target)


class InferenceSession(Session):
    """A network to run, with the names and the behaviour of onnxruntime's.

    session = tw.InferenceSession("model.onnx", records="model.jsonl")   # or a compiled "model.tw"
    outputs = session.run(None, {"input": x})
    """

    def __init__(
        self,
        model: Source | CompiledModel,
        records: Records | None = None,
        *,
        threads: int | None = None,
        target: Target | str | None = None,
        shapes: Shapes | None = None,
        on_progress: Progress | None = None,
        fallback: FallbackFactory | None = None,
        sess_options: object = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Compile `model`: the path, the bytes or the message of an ONNX model, or a network such as "zoo:resnet18".

        A path to a compiled model, or a `CompiledModel`, is taken as it is. `records` hold tuned programs; tasks that
        they do not know get the default ones. `shapes` gives what the model leaves open: shapes by the names of inputs,
        as {"image": (1, 3, 224, 224)}, and sizes by the names of dimensions, as {"batch": 4}. `threads` are the most to
        use, all processors by default. `on_progress` is called with how many kernels are compiled, and of how many.
        `fallback` replaces the reference evaluator of ONNX for operators that have no kernel.

        The last three are what callers of onnxruntime give: of the session options the number of threads counts if
        `threads` does not say it, and of the providers that the processor is among them.
        """
        check_providers(providers, provider_options)
        threads = threads_of(sess_options) if threads is None else threads
        checked_threads(threads)
        compiled = _compiled_model(model)
        if compiled is None:
            assert not isinstance(model, CompiledModel)
            compiled = compile_network(
                model, records, target=target, threads=threads, shapes=shapes, on_progress=on_progress
            )
        else:
            _check_compiled(compiled, threads, records=records, target=target, shapes=shapes)
        super().__init__(compiled, threads=threads, fallback=fallback)


def _compiled_model(model: Source | CompiledModel) -> CompiledModel | None:
    """The model if it is compiled already."""
    if isinstance(model, CompiledModel):
        return model
    if isinstance(model, bytes | bytearray | memoryview) and bytes(model[: len(MAGIC)]) == MAGIC:
        raise UsageError("the bytes are those of a compiled model, which is mapped from its file; give its path")
    if not isinstance(model, str | os.PathLike):
        return None
    path = os.fspath(model)
    is_compiled = path.endswith(SUFFIX) or (os.path.isfile(path) and is_artifact(path))
    return load(path) if is_compiled else None


def _check_compiled(model: CompiledModel, threads: int | None, **options: object) -> None:
    """Nothing that compiling decides can be asked of a model that is compiled."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"{name} was given for {model.name}, which is compiled already; give it when the model is compiled"
            )
    if threads is not None and threads > model.threads:
        raise ArtifactError(
            f"{model.name} was compiled for up to {model.threads} threads, and {threads} were asked for; "
            f"compile it again with threads={threads}"
        )
