"""The whole way of a network: read, cut into tasks, tuned, compiled, run.

What compiles and tunes is imported when it is needed: a process that only runs a compiled network starts sooner.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, overload

from tilewright.arguments import seconds, whole_number
from tilewright.deploy.artifact import MAGIC, SUFFIX, is_artifact, load, save
from tilewright.deploy.compiled import CompiledModel, NativeStep
from tilewright.deploy.program import FallbackFactory
from tilewright.deploy.providers import Provider, check_providers, threads_of
from tilewright.deploy.session import Session
from tilewright.errors import ArtifactError, UsageError
from tilewright.target import Target, checked_threads, runs_here

if TYPE_CHECKING:
    from onnx import ModelProto
    from typing_extensions import Unpack

    from tilewright.cost_model import CostModel
    from tilewright.deploy.choice import Choice
    from tilewright.deploy.compilation import Progress
    from tilewright.deploy.kernel_workers import DefaultTrace
    from tilewright.graph.onnx.sizes import Shapes
    from tilewright.measure import Context, Measurer
    from tilewright.partition import Partition
    from tilewright.records import Record, RecordedPrograms
    from tilewright.schedule import Trace
    from tilewright.search import SearchStrategy
    from tilewright.tuning.prior import Prior, PriorSource
    from tilewright.tuning.task_scheduler import NetworkProgress, NetworksResult, Objective

    class TuningOptions(TypedDict, total=False):
        """What `tune_network` takes by name."""

        trials: int | None
        budget_s: float | None
        records: str | os.PathLike[str] | None
        target: Target | str | None
        threads: int | None
        shapes: Shapes | None
        seed: int
        search: str | os.PathLike[str] | SearchStrategy | type[SearchStrategy]
        cost_model: CostModel | str | os.PathLike[str]
        prior: Prior | PriorSource | Sequence[PriorSource] | None
        exact: bool
        objective: str | Objective
        required_latency_s: float | None
        context: Context | str | None
        measurer: Measurer | None
        on_progress: Callable[[NetworkProgress], None] | None
        on_compile: Progress | None
        on_untuned: Callable[[str, float], None] | None


Source: TypeAlias = "str | os.PathLike[str] | bytes | ModelProto"
Records: TypeAlias = "str | os.PathLike[str] | Iterable[Record]"

ZOO = "zoo:"

# Runs of a network to know its latency before it is tuned.
_REPEATS = 5
# How long its finalists run in turns in the end: of a budget a part, or so many seconds.
_FINALS_SHARE, _FINALS_S = 0.05, 5.0
# How long devices that are tuned for together wait for each other before the first trial.
_START_S = 60.0

# --- reading and cutting ----------------------------------------------------------------------------------------------


def name_of(source: Source) -> str:
    """What the files that belong to a network are called.

    >>> name_of("zoo:resnet18"), name_of("nets/a.onnx"), name_of(b"...")
    ('resnet18', 'a', 'network')
    """
    if isinstance(source, str) and source.startswith(ZOO):
        return source.removeprefix(ZOO)
    return Path(source).stem if isinstance(source, str | os.PathLike) else "network"


def read_network(source: Source) -> ModelProto:
    """The ONNX model of a file, of bytes, or of a network of the zoo."""
    from tilewright.graph.onnx.reading import read_model
    from tilewright.zoo import build

    if isinstance(source, str) and source.startswith(ZOO):
        return build(source.removeprefix(ZOO))
    return read_model(source)


def partition_network(source: Source, shapes: Shapes | None = None) -> Partition:
    """Read a network, optimize its graph, and cut it into kernels, views and fallbacks.

    `shapes` gives what the model leaves open: shapes by the names of inputs, sizes by the names of dimensions. A
    network of the zoo is written for the shapes.
    """
    from tilewright.graph.onnx import load_model
    from tilewright.graph.passes import optimize
    from tilewright.partition import partition

    is_of_zoo = isinstance(source, str) and source.startswith(ZOO)
    return partition(optimize(load_model(_zoo_model(str(source), shapes) if is_of_zoo else source, shapes)))


def _zoo_model(source: str, shapes: Shapes | None) -> ModelProto:
    """The network of the zoo, of the batch that the shapes of its inputs begin with and the size that they end with."""
    from tilewright.zoo import build

    given = [shape for shape in (shapes or {}).values() if not isinstance(shape, int) and len(shape) > 1]
    if not shapes or not given:
        return read_network(source)
    return build(source.removeprefix(ZOO), batch=given[0][0], size=given[0][-1], open_inputs=shapes.keys())


# --- compiling --------------------------------------------------------------------------------------------------------


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
    chosen, num_threads = _target(target), checked_threads(threads)
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


def _target(target: Target | str | None) -> Target:
    return Target.native() if target is None else Target.of(target)


# --- running ----------------------------------------------------------------------------------------------------------


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
        exact: bool = False,
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
        use, all processors by default. With `exact`, no algorithm is used that rounds more than the sums of the network
        do, such as Winograd's. `on_progress` is called with how many kernels are compiled, and of how many. `fallback`
        replaces the reference evaluator of ONNX for operators that have no kernel.

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
                model, records, target=target, threads=threads, shapes=shapes, exact=exact, on_progress=on_progress
            )
        else:
            _check_compiled(compiled, threads, records=records, target=target, shapes=shapes)
            if exact and not compiled.is_exact:
                raise UsageError(
                    f"exact was given for {compiled.name}, which is compiled with algorithms that round more; compile "
                    "it again with exact=True"
                )
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


# --- tuning -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TunedNetwork:
    """What tuning made of a network. `model` is the faster one of the tuned and the untuned one, as they run here.

    For another machine, whose code does not run here, it is the tuned one.
    """

    name: str
    untuned: CompiledNetwork
    tuned: CompiledNetwork
    choice: Choice | None
    """How both ran, in turns; None for another machine."""
    result: NetworksResult
    """What came of the tasks, those of other networks that were tuned together included."""

    @property
    def model(self) -> CompiledModel:
        return (self.tuned if self.takes_tuned else self.untuned).model

    @property
    def takes_tuned(self) -> bool:
        """Whether `model` is the tuned one."""
        return self.choice is None or self.choice.takes_tuned

    @property
    def latency_s(self) -> float:
        """Of `model`, measured; for another machine what its tasks take there, added up."""
        if self.choice is None:
            return self.estimate_s
        return (self.choice.tuned if self.choice.takes_tuned else self.choice.untuned).median_s

    @property
    def estimate_s(self) -> float:
        """What its tasks take by what was measured of each, added up."""
        return self.result.latencies_s[self.name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled model, such as "model.tw". It is native code: load only what you trust."""
        save(self.model, path)

    def session(self, threads: int | None = None) -> InferenceSession:
        """The network, ready to run."""
        return InferenceSession(self.model, threads=threads)

    def __repr__(self) -> str:
        before = "" if self.choice is None else f", {self.choice.untuned.median_s * 1e3:.4g} ms with zero trials"
        return f"<TunedNetwork {self.name}: {self.latency_s * 1e3:.4g} ms{before}; {self.result.num_trials} trials>"


@overload
def tune_network(network: Source, **options: Unpack[TuningOptions]) -> TunedNetwork: ...
@overload
def tune_network(network: Sequence[Source], **options: Unpack[TuningOptions]) -> list[TunedNetwork]: ...
def tune_network(
    network: Source | Sequence[Source],
    *,
    trials: int | None = None,
    budget_s: float | None = None,
    records: str | os.PathLike[str] | None = None,
    target: Target | str | None = None,
    threads: int | None = None,
    shapes: Shapes | None = None,
    seed: int = 0,
    search: str | os.PathLike[str] | SearchStrategy | type[SearchStrategy] = "evolutionary",
    cost_model: CostModel | str | os.PathLike[str] = "default",
    prior: Prior | PriorSource | Sequence[PriorSource] | None = None,
    exact: bool = False,
    objective: str | Objective = "f1",
    required_latency_s: float | None = None,
    context: Context | str | None = None,
    measurer: Measurer | None = None,
    on_progress: Callable[[NetworkProgress], None] | None = None,
    on_compile: Progress | None = None,
    on_untuned: Callable[[str, float], None] | None = None,
) -> TunedNetwork | list[TunedNetwork]:
    """Tune the tasks of a network, or of several together, those first that promise most; then compile and compare.

    It ends after `trials` trials or `budget_s` seconds; without either, after 64 trials for each task. Every trial is
    appended to `records` at once, and a run that finds them there goes on where they end. `search`, `cost_model` and
    `prior` are those of `tilewright.tune`; tasks that begin later know what was measured of others. `objective` is that
    of `TaskScheduler`; `required_latency_s` is what f2 asks of each network. Kernels are measured as the network runs
    them, with weights that were last read an inference ago, or in another `context`, such as "warm". With `exact`, no
    algorithm is used that rounds more than the sums of the network do, such as Winograd's. `shapes` is given to each
    network that is tuned. A `measurer` measures elsewhere, for its target and threads.

    `on_progress` is called after each trial, `on_compile` with how many kernels are compiled and of how many,
    `on_untuned` with the name of each network and its latency before.
    """
    from tilewright.measure import Context
    from tilewright.tuning.prior import read_prior
    from tilewright.tuning.task_scheduler import Network, TaskScheduler

    _check_effort(trials, budget_s)
    chosen_context = None if context is None else Context.of(context)
    known = None if prior is None else read_prior(prior, leave_out=records)
    sources = list(network) if isinstance(network, list | tuple) else [network]
    chosen, num_threads = _target(target), checked_threads(threads)
    jobs = [
        _Tuning(name, source, shapes, chosen, num_threads, exact, on_compile)
        for name, source in zip(_distinct([name_of(source) for source in sources]), sources, strict=True)
    ]
    for job in jobs:
        if on_untuned is not None and job.before_s is not None:
            on_untuned(job.name, job.before_s)
    scheduler = TaskScheduler(
        [Network(job.name, job.partition.tasks, required_latency_s, job.before_s, chosen_context) for job in jobs],
        objective=objective,
        target=chosen,
        threads=num_threads,
        seed=seed,
        search=search,
        cost_model=cost_model,
        prior=known,
        exact=exact,
    )
    with _file_for(records) as path:
        result = scheduler.tune(trials, records=path, budget_s=budget_s, measurer=measurer, on_progress=on_progress)
        found = [job.finish(result, path, chosen_context, _finals_s(budget_s)) for job in jobs]
    return found if isinstance(network, list | tuple) else found[0]


def tune_network_for(
    network: Source,
    measurers: Mapping[str, Measurer],
    *,
    trials: int | None = None,
    budget_s: float | None = None,
    records: str | os.PathLike[str] | None = None,
    shapes: Shapes | None = None,
    seed: int = 0,
    search: str | os.PathLike[str] | SearchStrategy | type[SearchStrategy] = "evolutionary",
    cost_model: CostModel | str | os.PathLike[str] = "default",
    exact: bool = False,
    context: Context | str | None = None,
    on_progress: Callable[[str, NetworkProgress], None] | None = None,
    on_compile: Progress | None = None,
) -> dict[str, TunedNetwork]:
    """Tune a network for several kinds of devices at once, each of them measured by its own measurer.

    As `tune_network`, with so many trials for each; the records are in one file, by their targets. What one device
    measures of a task, the cost models of the others learn from. `on_progress` is told which device it is of. What
    comes before and after the trials is done for one device after the other.
    """
    from tilewright.measure import Context
    from tilewright.tuning.shared import SharedTrials
    from tilewright.tuning.task_scheduler import Network, TaskScheduler

    _check_effort(trials, budget_s)
    chosen_context = None if context is None else Context.of(context)
    jobs = {
        device: _Tuning(name_of(network), network, shapes, measurer.target, measurer.threads, exact, on_compile)
        for device, measurer in measurers.items()
    }
    report = on_progress or (lambda device, progress: None)
    shared, start = SharedTrials(), _Start(len(jobs))

    def tune_one(device: str, path: str | os.PathLike[str]) -> NetworksResult:
        job, measurer = jobs[device], measurers[device]
        scheduler = TaskScheduler(
            [Network(job.name, job.partition.tasks, None, job.before_s, chosen_context)],
            target=measurer.target,
            threads=measurer.threads,
            seed=seed,
            search=search,
            cost_model=cost_model,
            exact=exact,
            shared=shared,
        )
        return scheduler.tune(
            trials,
            records=path,
            budget_s=budget_s,
            measurer=measurer,
            on_start=start.wait,
            on_progress=partial(report, device),
        )

    for job in jobs.values():
        job.before_s  # noqa: B018 - measured now, while no device works
    with _file_for(records) as path, ThreadPoolExecutor(max(1, len(jobs))) as pool:
        running = {device: pool.submit(tune_one, device, path) for device in jobs}
        try:
            ended, others = wait(running.values(), return_when=FIRST_EXCEPTION)  # one that fails ends the others
            for future in (*ended, *others):
                future.result()
            results = {device: future.result() for device, future in running.items()}
        except BaseException:
            start.abort()
            for measurer in measurers.values():
                measurer.close()  # which ends what waits for it
            raise
        return {
            device: job.finish(results[device], path, chosen_context, _finals_s(budget_s))
            for device, job in jobs.items()
        }


class _Start:
    """Has devices begin together: nothing is timed on this machine while it thinks of the first programs of others."""

    def __init__(self, num_devices: int) -> None:
        self._barrier = Barrier(max(1, num_devices), timeout=_START_S)

    def wait(self) -> None:
        """Until all are there, or one is never."""
        with suppress(BrokenBarrierError):
            self._barrier.wait()

    def abort(self) -> None:
        self._barrier.abort()


def _finals_s(budget_s: float | None) -> float:
    """How long programs are compared inside a network."""
    return _FINALS_S if budget_s is None else min(_FINALS_S, _FINALS_SHARE * budget_s)


@contextmanager
def _file_for(records: str | os.PathLike[str] | None) -> Iterator[str | os.PathLike[str]]:
    """The file of the records; without one, one for the time of the run."""
    if records is not None:
        yield records
        return
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        yield os.path.join(folder, "records.jsonl")


def _check_effort(trials: int | None, budget_s: float | None) -> None:
    """Before the work that comes before the first trial."""
    if trials is not None:
        whole_number("trials", trials, least=1)
    if budget_s is not None:
        seconds("budget_s", budget_s)


class _Tuning:
    """One network on its way: compiled without a trial at first."""

    def __init__(
        self,
        name: str,
        source: Source,
        shapes: Shapes | None,
        target: Target,
        threads: int,
        exact: bool,
        on_compile: Progress | None,
    ) -> None:
        from tilewright.zoo import inputs_for

        self.name = name
        self.partition = partition_network(source, shapes)
        self._target, self._threads, self._exact, self._report = target, threads, exact, on_compile
        self._compile = partial(
            compile_partition, self.partition, target=target, threads=threads, exact=exact, on_progress=on_compile
        )
        self.untuned = self._compile(records=None)
        self._inputs = inputs_for(self.untuned.model.input_types, read_network(source))

    @cached_property
    def before_s(self) -> float | None:
        """The median latency of a few runs here; None for another machine."""
        from tilewright.runtime import measure

        if not runs_here(self._target):
            return None
        session = InferenceSession(self.untuned.model)
        return measure(lambda: session.run(None, self._inputs), repeats=_REPEATS).median_s

    def finish(
        self, result: NetworksResult, records: str | os.PathLike[str], context: Context | None, finals_s: float
    ) -> TunedNetwork:
        """Compile it with what was found, and run both in turns. Where no task has a kernel nothing was tuned."""
        from tilewright.deploy.choice import compare

        is_here = runs_here(self._target)
        if result.num_new_trials and is_here:
            compare_inside(
                self.partition,
                records,
                self._target,
                self._threads,
                self._inputs,
                context,
                finals_s,
                self._report,
                self._exact,
            )
        tuned = self._compile(records=records, context=context) if self.partition.tasks else self.untuned
        if not is_here:
            return TunedNetwork(self.name, self.untuned, tuned, None, result)
        sessions = InferenceSession(self.untuned.model), InferenceSession(tuned.model)
        return TunedNetwork(self.name, self.untuned, tuned, compare(*sessions, self._inputs), result)


def compare_inside(
    partition: Partition,
    records: str | os.PathLike[str],
    target: Target,
    threads: int,
    inputs: Mapping[str, Any],
    context: Context | str | None = None,
    budget_s: float = _FINALS_S,
    on_progress: Progress | None = None,
    exact: bool = False,
) -> None:
    """Compare programs that are close to the best of their task inside the network, and record them in that order.

    For about `budget_s` seconds after compiling, of which `on_progress` is told.
    """
    from tilewright.deploy.compilation import compile_model
    from tilewright.deploy.finals import settle
    from tilewright.records import RecordLog
    from tilewright.tuning.untuned import default_trace

    def compiled_with(programs: Mapping[str, Trace]) -> CompiledModel:
        best_guess = partial(default_trace, target=target, threads=threads, exact=exact)
        return compile_model(partition, programs, target, threads, default_trace=best_guess, on_progress=on_progress)

    def profile_of(model: CompiledModel) -> Callable[[], list[float]]:
        session = InferenceSession(model)
        is_kernel = [isinstance(step, NativeStep) for step in model.steps for _ in getattr(step, "calls", (step,))]
        return lambda: [entry.seconds for entry, own in zip(session.profile(inputs), is_kernel, strict=True) if own]

    tasks = {weighted.task.hash: weighted.task for weighted in partition.tasks}
    programs = recorded_programs(partition, records, target, threads, context, exact)
    log = RecordLog(records)
    for digest, ranked in settle(programs, list(tasks), compiled_with, profile_of, budget_s).items():
        log.extend(ranked, tasks[digest])


def _distinct(names: Sequence[str]) -> list[str]:
    """Names that tell networks apart.

    >>> _distinct(["a", "b", "a"])
    ['a', 'b', 'a-2']
    """
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found
