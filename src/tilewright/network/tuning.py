"""`tune_network`: the tasks of networks are tuned, and what was found is compiled and compared with what was there."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypedDict, overload

from tilewright.arguments import seconds, whole_number
from tilewright.deploy.artifact import save
from tilewright.deploy.compiled import CompiledModel, NativeStep
from tilewright.errors import ModelError, UsageError
from tilewright.network.compiling import CompiledNetwork, compile_partition, recorded_programs, target_or_native
from tilewright.network.inference_session import InferenceSession
from tilewright.network.reading import Source, name_of, partition_network, read_network
from tilewright.target import Target, checked_threads, runs_here

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tilewright.cost_model import CostModel
    from tilewright.deploy.choice import Choice
    from tilewright.deploy.compilation import Progress
    from tilewright.graph.onnx.sizes import Shapes
    from tilewright.measure import Context, Measurer
    from tilewright.partition import Partition
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


# Runs of a network to know its latency before it is tuned.
_REPEATS = 5
# How long its finalists run in turns in the end: of a budget a part, or so many seconds.
_FINALS_SHARE, _FINALS_S = 0.05, 5.0


@dataclass(frozen=True, slots=True, eq=False)
class TunedNetwork:
    """What tuning made of a network. `model` is the faster one of the tuned and the untuned one, as they run here.

    For another machine, whose code does not run here, it is the tuned one, as for a network without inputs to try.
    """

    name: str
    untuned: CompiledNetwork
    tuned: CompiledNetwork
    choice: Choice | None
    """How both ran, in turns; None for another machine, and for a network that does not run on random inputs."""
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
        """Of `model`, measured; what its tasks take, added up, where it was not."""
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

    check_effort(trials, budget_s)
    chosen_context = None if context is None else Context.of(context)
    known = None if prior is None else read_prior(prior, leave_out=records)
    sources = list(network) if isinstance(network, list | tuple) else [network]
    chosen, num_threads = target_or_native(target), checked_threads(threads)
    jobs = [
        NetworkTuning(name, source, shapes, chosen, num_threads, exact, on_compile)
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
    with file_for(records) as path:
        result = scheduler.tune(trials, records=path, budget_s=budget_s, measurer=measurer, on_progress=on_progress)
        found = [job.finish(result, path, chosen_context, finals_s(budget_s)) for job in jobs]
    return found if isinstance(network, list | tuple) else found[0]


def finals_s(budget_s: float | None) -> float:
    """How long programs are compared inside a network."""
    return _FINALS_S if budget_s is None else min(_FINALS_S, _FINALS_SHARE * budget_s)


@contextmanager
def file_for(records: str | os.PathLike[str] | None) -> Iterator[str | os.PathLike[str]]:
    """The file of the records; without one, one for the time of the run."""
    if records is not None:
        yield records
        return
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        yield os.path.join(folder, "records.jsonl")


def check_effort(trials: int | None, budget_s: float | None) -> None:
    """Before the work that comes before the first trial."""
    if trials is not None:
        whole_number("trials", trials, least=1)
    if budget_s is not None:
        seconds("budget_s", budget_s)


class NetworkTuning:
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
        self.name = name
        self.partition = partition_network(source, shapes)
        self._target, self._threads, self._exact, self._report = target, threads, exact, on_compile
        self._compile = partial(
            compile_partition, self.partition, target=target, threads=threads, exact=exact, on_progress=on_compile
        )
        self.untuned = self._compile(records=None)
        self._inputs = self._inputs_to_try(source) if runs_here(target) else None

    def _inputs_to_try(self, source: Source) -> dict[str, Any] | None:
        """Random inputs, if the network runs on such: they hold no strings, and may ask for what it does not do."""
        from tilewright.zoo import inputs_for

        try:
            inputs = inputs_for(self.untuned.model.input_types, read_network(source))
            InferenceSession(self.untuned.model).run(None, inputs)
        except (ModelError, UsageError) as error:
            warnings.warn(
                f"network {self.name} does not run on random inputs, so its kernels are tuned, and the whole is not "
                f"measured; compare it on inputs of yours: {error}",
                stacklevel=2,
            )
            return None
        return inputs

    @cached_property
    def before_s(self) -> float | None:
        """The median latency of a few runs here; None for another machine, and without inputs to try."""
        from tilewright.runtime import measure

        inputs = self._inputs
        if inputs is None:
            return None
        session = InferenceSession(self.untuned.model)
        return measure(lambda: session.run(None, inputs), repeats=_REPEATS).median_s

    def finish(
        self, result: NetworksResult, records: str | os.PathLike[str], context: Context | None, finals_s: float
    ) -> TunedNetwork:
        """Compile it with what was found, and run both in turns. Where no task has a kernel nothing was tuned."""
        from tilewright.deploy.choice import compare

        if result.num_new_trials and self._inputs is not None:
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
        if self._inputs is None:
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
