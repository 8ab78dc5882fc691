"""Plots of cost models: how well each ranks, predicted against measured, and how a new device gains from others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_model_cases import Case
from benchmarks.cost_model_report import Results, by_row
from benchmarks.cost_model_runs import Laboratory, Outcome
from tilewright.cost_model import RandomModel


def draw(results: Results, laboratory: Laboratory, folder: Path) -> list[Path]:
    """The plots of the tables that there are, as PNG files in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    first = [(case, outcome) for case, outcome in results if case.table == "1"]
    if first:
        made += [bars(first, folder / "cost_models.png"), scatter(first, laboratory, folder / "cost_model_scatter.png")]
    for table, name in (("3", "new_device.png"), ("3 of logs", "new_device_logs.png")):
        mine = [(case, outcome) for case, outcome in results if case.table == table]
        if mine:
            made.append(shares(mine, folder / name))
    return made


def bars(results: Results, path: Path) -> Path:
    """top-1 and top-5 of each model, the mean over the seeds."""
    rows = by_row(results)
    names = [_title(model) for (model,) in rows]
    figure = _figure(8, 0.45 * len(names) + 1.2)
    axes = figure.add_subplot()
    places = np.arange(len(names))
    for offset, name, colour in ((-0.2, "top_1", "tab:blue"), (0.2, "top_5", "tab:orange")):
        means = [_mean(outcomes, name) for columns in rows.values() for outcomes in columns.values()]
        axes.barh(places + offset, means, 0.38, label=name.replace("_", "-"), color=colour)
    axes.set_yticks(places, names, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="top-k over held-out networks")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower left")
    return _saved(figure, path)


def scatter(results: Results, laboratory: Laboratory, path: Path) -> Path:
    """Predicted against measured of the model with the highest and with the lowest top-1, random aside."""
    trained = [(case, outcome) for case, outcome in results if not case.model.startswith(RandomModel.name)]
    order = sorted(trained or results, key=lambda result: result[1].rating["top_1"])
    figure = _figure(10, 4.5)
    for number, (case, outcome) in enumerate((order[-1], order[0])):
        predicted, measured = predictions(case, laboratory)
        axes = figure.add_subplot(1, 2, number + 1)
        axes.scatter(predicted, measured, s=3, alpha=0.25, edgecolors="none")
        axes.plot([0, 1], [0, 1], color="black", linewidth=0.5)
        axes.set(
            xlabel="place of the score among those of the task",
            ylabel="place of the measured throughput",
        )
        axes.set_title(f"{_title(case.model)}\ntop-1 {outcome.rating['top_1']:.3f}", fontsize=9)
    return _saved(figure, path)


def predictions(case: Case, laboratory: Laboratory) -> tuple[Any, Any]:
    """Of each program that ran its place in its task, from 0 to 1, by score and by what was measured."""
    model = laboratory.model(case)
    predicted, measured = [np.zeros(0)], [np.zeros(0)]
    for programs in laboratory.data(case).lists:
        ran = np.isfinite(programs.latencies_s)
        predicted.append(_places(programs.scores(model)[ran]))
        measured.append(_places(-programs.latencies_s[ran]))
    return np.concatenate(predicted), np.concatenate(measured)


def shares(results: Results, path: Path) -> Path:
    """top-1 over the share of a device's labels, for each model: alone, with another, with all."""
    name = "peak_1" if results[0][0].table == "3 of logs" else "top_1"
    devices = list(dict.fromkeys(case.row[0] for case, _ in results))
    figure = _figure(5 * len(devices), 4.2)
    for number, device in enumerate(devices):
        axes = figure.add_subplot(1, len(devices), number + 1)
        for row, columns in by_row(results).items():
            if row[0] == device:
                percents = [float(share.rstrip("%")) for share in columns]
                means = [_mean(outcomes, name) for outcomes in columns.values()]
                axes.plot(percents, means, "o-", label=_title(" ".join(row[1:])))
        axes.set(xscale="log", xlabel="labels of the device, %", ylabel="top-1", title=device)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)
    return _saved(figure, path)


def _title(model: str) -> str:
    """The options of a model on a line of their own."""
    return model.replace(":", "\n", 1).replace(",", ", ")


def _places(values: Any) -> Any:
    return np.argsort(np.argsort(values)) / max(len(values) - 1, 1)


def _mean(outcomes: Sequence[Outcome], name: str) -> float:
    return float(np.mean([outcome.rating[name] for outcome in outcomes]))


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=130)
    return path
