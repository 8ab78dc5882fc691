"""Prints and draws what `benchmarks.autotvm` has found: medians over the seeds, a column for each case."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.autotvm_cases import CONVOLUTIONS, Table
from benchmarks.autotvm_outcomes import Outcome
from benchmarks.machine import describe_machine
from benchmarks.suite import geometric_mean
from benchmarks.table import heading, markdown

METHOD = (
    "Each method makes its own trials. Its best program, each program that was its best for a while, and the best one "
    "of the reference are then timed in turns. `reached after` is the first trial whose program is no slower than the "
    "best of the reference, by the medians of the turns; - where there is none. All numbers are medians over the seeds."
)
LIBRARIES = ("torch", "optuna", "xgboost-cpu")
MILESTONES = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class Row:
    """A method on a case, over the seeds."""

    case: str
    method: str
    num_seeds: int
    gflops: tuple[float, ...]
    ratio: float
    reached_after: float
    """Infinite where most seeds did not get so far."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a table must show: of a method, a number over the cases that is at most or at least so much."""

    text: str
    value: float
    passed: bool


def rows_of(outcomes: Sequence[Outcome]) -> list[Row]:
    """The medians, in the order of the outcomes."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.case, outcome.method), []).append(outcome)
    return [_row(case, method, own) for (case, method), own in groups.items()]


def _row(case: str, method: str, own: Sequence[Outcome]) -> Row:
    shortest = min(len(outcome.gflops) for outcome in own)
    gflops = np.median([outcome.gflops[:shortest] for outcome in own], axis=0)
    reached = median(math.inf if outcome.reached_after is None else outcome.reached_after for outcome in own)
    return Row(
        case, method, len(own), tuple(map(float, gflops)), median(outcome.ratio for outcome in own), float(reached)
    )


def demands_of(table: Table, rows: Sequence[Row]) -> list[Demand]:
    """What the table must show, as far as it has been measured."""
    by_method = {method.name: _reached(rows, method.name) for method in table.methods}
    found: list[Demand] = []
    if table.name == "search" and by_method["annealing + trees"]:
        trials = median(by_method["annealing + trees"].values())
        found.append(
            Demand("annealing + trees: trials to the best of random, median case, <= 100", trials, trials <= 100)
        )
    if table.name == "transfer":
        without = by_method[table.reference.name]
        convolutions = without.keys() & {case.name for case in CONVOLUTIONS}
        for method in table.methods[1:]:
            times = [_times(without[case], own) for case, own in by_method[method.name].items() if case in convolutions]
            if times:
                value = median(times)
                text = f"{method.name}: times fewer trials, median of the convolutions, >= 2"
                found.append(Demand(text, value, value >= 2))
    return found


def _reached(rows: Sequence[Row], method: str) -> dict[str, float]:
    return {row.case: row.reached_after for row in rows if row.method == method}


def _times(without: float, own: float) -> float:
    """How many times fewer; 0 where it never got so far.

    >>> _times(64.0, 16.0), _times(64.0, math.inf)
    (4.0, 0.0)
    """
    return without / own


def as_text(table: Table, rows: Sequence[Row]) -> str:
    """Tables in Markdown: how soon, how fast in the end, and how fast after so many trials."""
    cases = list(dict.fromkeys(row.case for row in rows))
    seeds = sorted({row.num_seeds for row in rows})
    about = f"{table.title}. Reference: {table.reference.name}. Seeds: {', '.join(map(str, seeds))}. {METHOD}"
    parts = [
        heading(describe_machine(LIBRARIES), about),
        by_case("reached after", table, rows, cases, lambda row: row.reached_after, "median", median, "{:g}"),
        "",
        by_case("speed by the best of the reference", table, rows, cases, lambda r: r.ratio, "mean", geometric_mean),
        "",
        after_trials(rows),
    ]
    demands = demands_of(table, rows)
    if demands:
        parts += ["", *(f"{'pass' if each.passed else 'FAIL'}: {each.text}: {each.value:.3g}" for each in demands)]
    return "\n".join(parts)


def by_case(
    title: str,
    table: Table,
    rows: Sequence[Row],
    cases: Sequence[str],
    value: Callable[[Row], float],
    summary: str,
    summarized: Callable[[list[float]], float],
    form: str = "{:.2f}",
) -> str:
    """A line for each method, a column for each case, and one for all of them; - where a number is infinite."""
    cells = []
    for method in table.methods:
        own = {row.case: value(row) for row in rows if row.method == method.name}
        if own:
            numbers = [own.get(case) for case in cases] + [summarized(list(own.values()))]
            cells.append([method.name, *("" if each is None else _number(each, form) for each in numbers)])
    return markdown([title, *cases, summary], cells)


def _number(value: float, form: str) -> str:
    return "-" if math.isinf(value) else form.format(value)


def after_trials(rows: Sequence[Row]) -> str:
    """A line for each method and case, a column for each doubling of the trials."""
    most = max(len(row.gflops) for row in rows)
    milestones = [number for number in MILESTONES if number < most] + [most]
    cells = [
        [row.case, row.method, *(f"{row.gflops[n - 1]:.1f}" if n <= len(row.gflops) else "" for n in milestones)]
        for row in rows
    ]
    return markdown(["case", "GFLOP/s after", *map(str, milestones)], cells)


def as_json(table: Table, outcomes: Sequence[Outcome]) -> str:
    """All outcomes with their curves, and what the table must show."""
    demands = demands_of(table, rows_of(outcomes))
    return json.dumps(
        {
            "machine": describe_machine(LIBRARIES),
            "method": METHOD,
            "table": table.name,
            "reference": table.reference.name,
            "demands": [asdict(demand) | {"value": _finite(demand.value)} for demand in demands],
            "cases": [asdict(outcome) for outcome in outcomes],
        },
        indent=1,
    )


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def draw(table: Table, rows: Sequence[Row], folder: Path) -> Path:
    """GFLOP/s over trials, a plot for each case, as one PNG file in the folder."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(row.case for row in rows))
    across = min(len(cases), 4)
    down = -(-len(cases) // across)
    figure = Figure(figsize=(4.5 * across, 3.4 * down), layout="constrained")
    FigureCanvasAgg(figure)
    colours = {method.name: f"C{number}" for number, method in enumerate(table.methods)}
    for number, case in enumerate(cases):
        axes = figure.add_subplot(down, across, number + 1)
        for row in (row for row in rows if row.case == case):
            trials = range(1, len(row.gflops) + 1)
            axes.plot(trials, row.gflops, label=row.method, color=colours[row.method], drawstyle="steps-post")
        axes.set(xlabel="trials", ylabel="best GFLOP/s", title=case, xscale="log", ylim=(0, None))
        axes.grid(alpha=0.3)
        if number == 0:
            axes.legend(fontsize=7, loc="lower right")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"autotvm_{table.name}.png"
    figure.savefig(path, dpi=110)
    return path
