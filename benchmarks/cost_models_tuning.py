"""`python -m benchmarks.cost_models_tuning`: what networks come to when each cost model guides their tuning.

Table 4 of cost models: a case is a network and a number of trials. Each model is trained on --data without any task of
the networks, of all devices or of one, adapts to what is measured, and tunes the network from nothing; then the
networks of all models run in turns. boosted-trees, analytical and random are not trained: the first learns from the
trials alone. Every finished case is written to a JSON file at once, and a network that was tuned is not tuned again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from benchmarks import arguments, suite
from benchmarks.cost_model_cases import MODELS as RANKED
from benchmarks.cost_model_cases import Case
from benchmarks.cost_model_runs import Laboratory, Settings
from benchmarks.machine import describe_machine
from benchmarks.suite import Suite, geometric_mean, milliseconds
from benchmarks.table import heading, markdown
from tilewright.cost_model import AnalyticalModel
from tilewright.errors import TilewrightError
from tilewright.network import InferenceSession, compile_partition, name_of, partition_network, read_network
from tilewright.peers import take_turns
from tilewright.records.dataset import Corpus, Split
from tilewright.schedule import Trace
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.task_scheduler import Network, NetworkProgress, TaskScheduler
from tilewright.tuning.untuned import search_untuned
from tilewright.zoo import inputs_for

NETWORKS = ("zoo:resnet18", "zoo:mobilenet_v2", "zoo:bert_tiny")
TRIALS = (32, 64, 300)
REFERENCE = "boosted-trees"
UNTRAINED = (REFERENCE, "analytical", "random")
MODELS = tuple(dict.fromkeys([*UNTRAINED, *(model for model in RANKED[1] if ":" not in model)]))
METHOD = (
    "Each model tunes the network with so many trials in all, from nothing. The networks that come of it run in turns; "
    "`latency` is the median, and the ratios are those of boosted-trees by the model's: above 1 the model is better. "
    "`tuning` is the time of all, with what learning and scoring take. A task without a trial has the program that the "
    "analytical model chooses."
)


@dataclass(frozen=True, slots=True)
class Tuned:
    """A network that one model tuned."""

    tuning_s: float
    curve: tuple[tuple[int, float], ...]
    """Trials, and what the network took by the programs that were the best until then, in seconds."""
    latency_ms: float = 0.0
    """End to end, in turns with the others."""


@dataclass(frozen=True, slots=True)
class Row:
    """One network with so many trials, tuned by all models."""

    case: str
    models: dict[str, Tuned] = field(default_factory=dict)
    failure: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and measure the chosen cases, and print all that the file holds of them."""
    parser = arguments.parser("benchmarks.cost_models_tuning", __doc__)
    parser.add_argument("--data", nargs="+", default=["datasets/zoo"], metavar="FOLDER")
    parser.add_argument("--device", metavar="D", help="that is learned from (default: all of the data)")
    parser.add_argument("--models", nargs="+", default=list(MODELS), metavar="NAME[:OPTIONS]")
    parser.add_argument("--trials", nargs="+", type=arguments.positive, default=list(TRIALS), metavar="N")
    parser.add_argument("--epochs", type=arguments.positive, metavar="N", help="of networks (default: what each has)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves; needs matplotlib")
    options = suite.parse(parser, argv, "cost_models_tuning")
    cases = [f"{network} {trials}" for network in NETWORKS for trials in options.trials]
    kept = Suite("case", row_of, run, verdict, as_table, as_json, lambda rows: not any(row.failure for row in rows))
    status = kept.main([case for case in cases if options.case in case], options)
    if options.plot is not None:
        print(f"plot: {draw(list(kept.read(options.output).values()), options.plot)}", file=sys.stderr)
    return status


def run(case: str, options: argparse.Namespace) -> Row:
    """Tune one network with every model, and run what came of it in turns."""
    network, trials = case.rsplit(" ", 1)
    try:
        tuned = {spec: tune(network, int(trials), spec, options) for spec in options.models}
        return measured(Row(case, tuned), network, int(trials), options)
    except TilewrightError as error:
        return Row(case, failure=str(error).splitlines()[0])


def records_of(network: str, trials: int, spec: str, options: argparse.Namespace) -> Path:
    """The file of the trials of one tuning."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in spec)
    found: Path = options.records / f"{name_of(network)}-{trials}-{name}-{options.seed}.jsonl"
    return found


def tune(network: str, trials: int, spec: str, options: argparse.Namespace) -> Tuned:
    """What one model makes of a network, or made of it before."""
    records = records_of(network, trials, spec, options)
    kept = records.with_suffix(".json")
    if kept.exists():
        return tuned_of(json.loads(kept.read_text()))
    records.unlink(missing_ok=True)  # what was stopped begins anew: its time is not known
    cost_model = spec if spec.partition(":")[0] in UNTRAINED else str(trained(spec, options))
    print(f"  {spec}: tuning {network} with {trials} trials", file=sys.stderr, flush=True)
    partition = partition_network(network)
    curve: list[tuple[int, float]] = []

    def keep(progress: NetworkProgress) -> None:
        (latency_s,) = progress.latencies_s.values()
        curve.append((progress.num_trials, latency_s))

    scheduler = TaskScheduler(
        [Network(name_of(network), partition.tasks)],
        target=Target.native(),
        threads=options.threads,
        seed=options.seed,
        cost_model=cost_model,
    )
    result = scheduler.tune(trials, records=records, on_progress=keep)
    found = Tuned(result.elapsed_s, tuple(curve))
    kept.write_text(json.dumps(asdict(found)))
    return found


def trained(spec: str, options: argparse.Namespace) -> Path:
    """The file of a model that has learned from none of the networks; trained once."""
    settings = Settings(options.epochs, options.threads)
    laboratory = Laboratory(Corpus.open(options.data), settings, options.records / "models")
    hold_out = tuple(name_of(network) for network in NETWORKS)
    split = Split(hold_out=hold_out, device=options.device, others=None if options.device is None else ())
    case = Case("4", spec, (spec,), "", split, options.device)
    laboratory.outcome(case)
    return laboratory.model_path(case)


def measured(row: Row, network: str, trials: int, options: argparse.Namespace) -> Row:
    """With the latencies of the compiled networks, taken in turns."""
    partition = partition_network(network)
    target = Target.native()
    sessions = {
        spec: InferenceSession(
            compile_partition(
                partition,
                str(records_of(network, trials, spec, options)),
                target,
                options.threads,
                default_trace=partial(analytical_trace, target=target, threads=options.threads),
            ).model
        )
        for spec in row.models
    }
    feed = inputs_for(next(iter(sessions.values())).model.input_types, read_network(network))
    calls = {spec: partial(session.run, None, feed) for spec, session in sessions.items()}
    timings = take_turns(calls, options.rounds, settle_s=0.0)
    latencies_ms = {spec: 1e3 * timing.median_s for spec, timing in timings.items()}
    return replace(
        row, models={spec: replace(tuned, latency_ms=latencies_ms[spec]) for spec, tuned in row.models.items()}
    )


def analytical_trace(task: Task, *, target: Target, threads: int) -> Trace:
    """The program of a task of which there is no trial."""
    return search_untuned(derive(task, SpaceOptions(target, threads)), model=AnalyticalModel()).trace


# --- what is printed --------------------------------------------------------------------------------------------------


def tuned_of(fields: Mapping[str, object]) -> Tuned:
    """From its JSON."""
    curve = fields["curve"]
    assert isinstance(curve, list)
    return Tuned(**{**fields, "curve": tuple((number, latency_s) for number, latency_s in curve)})  # type: ignore[arg-type]


def row_of(models: Mapping[str, Mapping[str, object]], **fields: str) -> Row:
    """A row from its JSON."""
    return Row(models={spec: tuned_of(tuned) for spec, tuned in models.items()}, **fields)


def verdict(row: Row) -> str:
    if row.failure:
        return f"failed: {row.failure}"
    best = min(row.models, key=lambda spec: row.models[spec].latency_ms)
    return f"fastest: {best}, {milliseconds(row.models[best].latency_ms)}"


def as_table(rows: Sequence[Row]) -> str:
    """A line for each model: latency and its ratio, tuning time and its ratio, in each case; then geometric means."""
    ran = [row for row in rows if not row.failure and REFERENCE in row.models]
    specs = dict.fromkeys(spec for row in ran for spec in row.models)
    header = ["model", *(row.case for row in ran), "latency, mean ratio", "tuning, mean ratio"]
    cells = [[spec, *(_cell(row, spec) for row in ran), *_means(ran, spec)] for spec in specs]
    failures = [f"{row.case}: failed: {row.failure}" for row in rows if row.failure]
    return "\n".join([heading(describe_machine([]), METHOD), markdown(header, cells), *failures])


def _cell(row: Row, spec: str) -> str:
    if spec not in row.models:
        return "-"
    latency, tuning = _ratios(row, spec)
    tuned = row.models[spec]
    return f"{milliseconds(tuned.latency_ms)} {latency:.3f}; {tuned.tuning_s:.0f} s {tuning:.2f}"


def _ratios(row: Row, spec: str) -> tuple[float, float]:
    """Of latency and of tuning time, the reference by this model."""
    reference, tuned = row.models[REFERENCE], row.models[spec]
    return reference.latency_ms / tuned.latency_ms, reference.tuning_s / tuned.tuning_s


def _means(rows: Sequence[Row], spec: str) -> list[str]:
    ratios = [_ratios(row, spec) for row in rows if spec in row.models]
    return [f"{geometric_mean(each):.3f}" for each in zip(*ratios, strict=True)]


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object, with the curves; `Suite.read` takes it back."""
    return json.dumps(
        {"machine": describe_machine([]), "method": METHOD, "cases": [asdict(row) for row in rows]}, indent=1
    )


def draw(rows: Sequence[Row], path: Path) -> Path:
    """Latency over trials of the cases with most trials, by what was measured of the tasks."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    longest: dict[str, Row] = {}
    for row in rows:
        network, trials = row.case.rsplit(" ", 1)
        if not row.failure and (network not in longest or int(trials) > int(longest[network].case.rsplit(" ", 1)[1])):
            longest[network] = row
    figure, axes = pyplot.subplots(1, max(len(longest), 1), figsize=(5 * max(len(longest), 1), 4), squeeze=False)
    for axis, row in zip(axes[0], longest.values(), strict=False):
        least_s = min(tuned.curve[-1][1] for tuned in row.models.values())
        for spec, tuned in row.models.items():
            numbers, latencies_s = zip(*tuned.curve, strict=True)
            style = {"linewidth": 2, "color": "black"} if spec.startswith("factor-trees") else {"linewidth": 1}
            axis.plot(numbers, [least_s / latency_s for latency_s in latencies_s], label=spec, **style)
        axis.set(title=row.case, xlabel="trials", ylabel="speed by that of the best in the end")
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


if __name__ == "__main__":
    sys.exit(main())
