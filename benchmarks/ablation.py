"""`python -m benchmarks.ablation`: what each part of the tuner gives: a table and a plot of the best speed by trials.

The variants: everything; no fine-tuning (random sampling of the whole space); a limited space (one way to tile, tiles
that divide, nothing packed); no model (evolution under random scores). All trials are kept as records, so that an
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import arguments
from benchmarks.limited_space import limited_space
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from benchmarks.tuned import best_so_far_s, file_name
from tilewright import workloads
from tilewright.cost_model import BoostedTrees, RandomModel
from tilewright.measure import MeasureOptions
from tilewright.measure.local import LocalMeasurer
from tilewright.records import RecordLog
from tilewright.target import Target
from tilewright.tuning.tuner import Tuner, TuneResult

METHOD = (
    "The speed of the best program measured until a trial: the median over the seeds. Each variant makes its own "
    "trials, one variant after the other."
)
WORKLOAD = "c2d:1x14x14x256,256,3x3,s1,p1"
MILESTONES = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class Variant:
    """A tuner with something taken away."""

    name: str
    search: str = "evolutionary"
    has_model: bool = True
    has_whole_space: bool = True


VARIANTS = (
    Variant("full"),
    Variant("no fine-tuning", search="random"),
    Variant("limited space", has_whole_space=False),
    Variant("no model", has_model=False),
)


@dataclass(frozen=True, slots=True)
class Curve:
    """The best GFLOP/s after each trial, the median over the seeds."""

    variant: str
    gflops: tuple[float, ...]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen variants, plot them and print them."""
    options = _parse(argv)
    chosen = [variant for variant in VARIANTS if options.case in variant.name]
    if not chosen:
        print(f"no variant matches; they are {', '.join(variant.name for variant in VARIANTS)}", file=sys.stderr)
        return 2
    options.records.mkdir(parents=True, exist_ok=True)
    curves = [measure(variant, options) for variant in chosen]
    if options.plot is not None:
        plot(curves, options.workload, options.plot)
    print(as_json(curves, options) if options.format == "json" else as_table(curves, options))
    return 0


def measure(variant: Variant, options: argparse.Namespace) -> Curve:
    """Tune with every seed."""
    task = workloads.parse(options.workload)
    speeds = []
    for seed in range(options.seeds):
        print(f"{variant.name}, seed {seed}: {options.trials} trials", file=sys.stderr, flush=True)
        result = run(variant, seed, options)
        speeds.append([task.flop / latency_s / 1e9 for latency_s in best_so_far_s(result)[: options.trials]])
    shortest = min(map(len, speeds))
    medians = np.median([curve[:shortest] for curve in speeds], axis=0)
    return Curve(variant.name, tuple(float(speed) for speed in medians))


def run(variant: Variant, seed: int, options: argparse.Namespace) -> TuneResult:
    """One tuning run of a variant."""
    target = Target.native()
    tuner = Tuner(
        workloads.parse(options.workload),
        target,
        options.threads,
        seed=seed,
        cost_model=BoostedTrees(seed=seed) if variant.has_model else RandomModel(seed=seed),
        search=variant.search,
        workload=options.workload,
    )
    if not variant.has_whole_space:
        tuner.sketches = limited_space(tuner.task, target, options.threads)
        tuner.strategy = tuner.strategy.begin(tuner.sketches, tuner.scoring.scores, target, seed)
    log = RecordLog(options.records / file_name(f"{options.workload}-{variant.name}-{seed}"))
    with LocalMeasurer(target, options.threads, MeasureOptions(seed=seed)) as measurer:
        return tuner.run(options.trials, log, None, measurer, lambda _: None)


def plot(curves: Sequence[Curve], workload: str, path: Path) -> None:
    """The curves as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for curve in curves:
        axes.plot(range(1, len(curve.gflops) + 1), curve.gflops, label=curve.variant, drawstyle="steps-post")
    axes.set(xlabel="trials", ylabel="best GFLOP/s", title=workload, ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)


def as_table(curves: Sequence[Curve], options: argparse.Namespace) -> str:
    """A line a variant, a column for each doubling of the trials."""
    milestones = [n for n in MILESTONES if n < options.trials] + [options.trials]
    header = [f"{options.workload}, GFLOP/s after", *map(str, milestones), "share of full"]
    full = next((curve.gflops[-1] for curve in curves if curve.variant == "full"), None)
    cells = [
        [
            curve.variant,
            *(f"{curve.gflops[min(n, len(curve.gflops)) - 1]:.1f}" for n in milestones),
            "" if full is None else f"{curve.gflops[-1] / full:.2f}",
        ]
        for curve in curves
    ]
    return "\n".join([heading(describe_machine(), METHOD), markdown(header, cells)])


def as_json(curves: Sequence[Curve], options: argparse.Namespace) -> str:
    """The whole curves as one JSON object."""
    return json.dumps(
        {
            "machine": describe_machine(),
            "method": METHOD,
            "workload": options.workload,
            "seeds": options.seeds,
            "curves": [asdict(curve) for curve in curves],
        },
        indent=2,
    )


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.ablation", __doc__)
    parser.add_argument("--workload", default=WORKLOAD)
    parser.add_argument("--trials", type=arguments.positive, default=512, metavar="N")
    parser.add_argument("--seeds", type=arguments.positive, default=3, metavar="N")
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--records", type=Path, default=Path("results/ablation"), metavar="DIR")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the curves to this file; needs matplotlib")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
