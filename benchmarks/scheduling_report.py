"""What `benchmarks.scheduling` found: the figures, the verdict, a table, a plot, and a file to go on from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.objective_curve import Point, mean_until, value_at
from benchmarks.suite import milliseconds
from benchmarks.table import heading, markdown

METHOD = (
    "For each seed, every task gets one round of trials; from these same records each strategy goes on alone to the "
    "same number of trials. The value is the sum of the networks' latencies (f1), each the weighted sum of its tasks. "
    "Percentages are of the trials after the first rounds; `area` is the mean value over them, `area by time` the mean "
    "over the seconds that both strategies took. `measured again`: each program that was ever the best of its task has "
    "the latency that it shows when the programs of both strategies are measured in turns, and a task counts with the "
    "fastest so far. `as estimated`: with the latency of its trial, as the scheduler saw it. `networks`: the complete "
    "networks, compiled with the records of each strategy, timed in turns. A ratio is gradient by round-robin, below 1 "
    "where the gradient is faster; that of the median is the median of the seeds' ratios."
)
STRATEGIES = ("gradient", "round_robin")
GRADIENT, ROUND_ROBIN = STRATEGIES
SHARES = (0.25, 0.5, 0.75, 1.0)
END, AREA = "networks", "area"
MAX_END_RATIO = 1.02
MAX_AREA_RATIO = 1.0

Kind = Literal["again_ms", "estimated_ms"]
TITLES: dict[Kind, str] = {"again_ms": "measured again", "estimated_ms": "as estimated"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What results must share to stand in one table."""

    networks: tuple[str, ...]
    subject: str
    """Equal where the tasks, the target and the number of threads are."""
    trials: int
    threads: int


@dataclass(frozen=True, slots=True)
class Run:
    """One strategy with one seed: its curve, and the latencies of the networks in the end."""

    points: tuple[Point, ...]
    networks_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Seed:
    """Both strategies with one seed, after the same first rounds."""

    seed: int
    first_trials: int
    runs: dict[str, Run]

    @property
    def num_trials(self) -> int:
        """That the strategies shared out."""
        return max(run.points[-1].trials for run in self.runs.values())

    @property
    def span_s(self) -> float:
        """The seconds that both strategies took."""
        return min(run.points[-1].elapsed_s for run in self.runs.values())

    def figures(self, strategy: str, kind: Kind) -> dict[str, float]:
        """What stands in the columns of the table, in milliseconds."""
        run = self.runs[strategy]
        values: list[float] = [getattr(point, kind) for point in run.points]
        trials = [point.trials for point in run.points]
        elapsed_s = [point.elapsed_s for point in run.points]
        return {
            "start": values[0],
            **{f"{share:.0%}": value_at(trials, values, share * self.num_trials) for share in SHARES},
            AREA: mean_until(trials, values, self.num_trials),
            "area by time": mean_until(elapsed_s, values, self.span_s),
            END: sum(run.networks_ms.values()),
        }

    def ratios(self, kind: Kind) -> dict[str, float]:
        """The gradient's figures by round-robin's."""
        gradient, round_robin = (self.figures(strategy, kind) for strategy in STRATEGIES)
        return {name: gradient[name] / round_robin[name] for name in gradient}

    @property
    def reached_after(self) -> float | None:
        """The share of the trials after which the gradient was where round-robin ended; None if never."""
        goal_ms = self.runs[ROUND_ROBIN].points[-1].again_ms
        reached = (point.trials for point in self.runs[GRADIENT].points if point.again_ms <= goal_ms)
        first = next(reached, None)
        return None if first is None else first / self.num_trials


def median_ratios(seeds: Sequence[Seed], kind: Kind = "again_ms") -> dict[str, float]:
    """Of each column the median of the seeds' ratios."""
    return _medians([seed.ratios(kind) for seed in seeds])


def passed(seeds: Sequence[Seed]) -> bool:
    """Whether the gradient is no worse in the end, and lower on the way."""
    ratios = median_ratios(seeds)
    return ratios[END] <= MAX_END_RATIO and ratios[AREA] < MAX_AREA_RATIO


def _medians(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: median(found[name] for found in figures) for name in figures[0]}


def as_table(seeds: Sequence[Seed], settings: Settings) -> str:
    """Both kinds of curves, three lines a seed and three for the medians; below them what the gradient must reach."""
    first = ", ".join(dict.fromkeys(str(seed.first_trials) for seed in seeds))
    about = (
        f"{' + '.join(settings.networks)}, {settings.threads} threads: {settings.trials} trials, of which {first} in "
        "the first rounds"
    )
    tables = [part for kind in TITLES for part in (TITLES[kind], "", _table(seeds, kind), "")]
    return "\n".join([heading(describe_machine(()), METHOD), about, "", *tables, *_verdict(seeds)])


def _table(seeds: Sequence[Seed], kind: Kind) -> str:
    rows: list[list[str]] = []
    for seed in seeds:
        for strategy in STRATEGIES:
            rows.append([f"seed {seed.seed}", strategy, *_milliseconds(seed.figures(strategy, kind))])
        rows.append([f"seed {seed.seed}", "ratio", *_ratios(seed.ratios(kind))])
    for strategy in STRATEGIES:
        rows.append(["median", strategy, *_milliseconds(_medians([seed.figures(strategy, kind) for seed in seeds]))])
    rows.append(["median", "ratio", *_ratios(median_ratios(seeds, kind))])
    return markdown(["", "", *median_ratios(seeds, kind)], rows)


def _milliseconds(figures: dict[str, float]) -> list[str]:
    return [milliseconds(value) for value in figures.values()]


def _ratios(figures: dict[str, float]) -> list[str]:
    return [f"{value:.3f}" for value in figures.values()]


def _verdict(seeds: Sequence[Seed]) -> list[str]:
    ratios = median_ratios(seeds)
    reached = ", ".join("never" if seed.reached_after is None else f"{seed.reached_after:.0%}" for seed in seeds)
    end = f"complete networks in the end: {ratios[END]:.3f} of round-robin's latency"
    return [
        f"{end} (must be <= {MAX_END_RATIO}: no worse, and 2 % for noise)",
        f"area, measured again: {ratios[AREA]:.3f} of round-robin's (must be < {MAX_AREA_RATIO:g}: lower on the way)",
        f"the gradient was where round-robin ended, measured again, after this part of the trials: {reached}",
        "pass" if passed(seeds) else "FAIL",
    ]


def as_json(seeds: Sequence[Seed], settings: Settings) -> str:
    """The same as one JSON object, with the whole curves; `read` takes it back."""
    described = [
        {
            "figures_ms": {kind: {s: seed.figures(s, kind) for s in STRATEGIES} for kind in TITLES},
            "ratios": {kind: seed.ratios(kind) for kind in TITLES},
            "reached_after": seed.reached_after,
        }
        | asdict(seed)
        for seed in seeds
    ]
    return json.dumps(
        {
            "machine": describe_machine(()),
            "method": METHOD,
            "settings": asdict(settings),
            "status": "pass" if passed(seeds) else "fail",
            "required": {END: MAX_END_RATIO, AREA: MAX_AREA_RATIO},
            "median_ratios": {kind: median_ratios(seeds, kind) for kind in TITLES},
            "seeds": described,
        },
        indent=2,
    )


def read(path: Path) -> tuple[Settings | None, dict[int, Seed]]:
    """The seeds that a file holds, and their settings; None where there is no file."""
    if not path.exists():
        return None, {}
    data = json.loads(path.read_text())
    settings = Settings(**data["settings"] | {"networks": tuple(data["settings"]["networks"])})
    return settings, {seed["seed"]: _seed(seed) for seed in data["seeds"]}


def _seed(data: dict[str, Any]) -> Seed:
    runs = {
        strategy: Run(tuple(Point(**point) for point in run["points"]), run["networks_ms"])
        for strategy, run in data["runs"].items()
    }
    return Seed(data["seed"], data["first_trials"], runs)


def plot(seeds: Sequence[Seed], settings: Settings, path: Path) -> None:
    """The curves of all seeds against trials and against time as a PNG; the medians are thick."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    ends = {"trials": max(seed.num_trials for seed in seeds), "elapsed_s": min(seed.span_s for seed in seeds)}
    names = {"trials": "trials after the first rounds", "elapsed_s": "seconds after the first rounds"}
    for position, (x, end) in enumerate(ends.items(), start=1):
        axes = figure.add_subplot(1, 2, position)
        grid = np.linspace(0, end, 400)
        for number, strategy in enumerate(STRATEGIES):
            curves = [_sampled(seed.runs[strategy], x, grid) for seed in seeds]
            for curve in curves:
                axes.plot(grid, curve, color=f"C{number}", alpha=0.35, linewidth=0.8)
            axes.plot(grid, np.median(curves, axis=0), color=f"C{number}", linewidth=2, label=strategy)
        axes.set(xlabel=names[x], ylabel="sum of latencies, ms")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(f"{' + '.join(settings.networks)}, programs measured again in turns")
    figure.savefig(path, dpi=150)


def _sampled(run: Run, x: str, grid: np.ndarray) -> list[float]:
    xs = [getattr(point, x) for point in run.points]
    values = [point.again_ms for point in run.points]
    return [value_at(xs, values, at) for at in grid]
