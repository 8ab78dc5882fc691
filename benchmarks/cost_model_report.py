"""The tables of cost models, from what came of their cases: Markdown, or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from benchmarks.cost_model_cases import Case
from benchmarks.cost_model_runs import Outcome
from benchmarks.table import heading, markdown

Results = Sequence[tuple[Case, Outcome]]

TITLES = {
    "1": "Networks that no model has learned from",
    "2": "Losses and networks, as TLP's ablation",
    "3": "A new device with a share of its labels: top-1 / top-5",
    "3 of logs": "A new device of logs of other tools: the mean over tasks of best / found, top-1 / top-5",
}
METHOD = (
    "top-k: the time that networks take with the best measured program of each task, over the time with the best of "
    "the k that a model likes most, weighted over networks; pairwise: pairs in the right order, the mean over tasks. "
    "Training is in seconds of one processor, without features; scoring in candidates a second of one processor, with "
    "features. Random is what a blind choice gives on average."
)


def as_table(results: Results, machine: Mapping[str, str], devices: Mapping[str, str]) -> str:
    """The tables one after the other, under the machine and the devices that the data is from."""
    used = {name: text for name, text in devices.items() if any(case.device in (name, None) for case, _ in results)}
    parts = [heading({**machine, **{f"device {name}": text for name, text in used.items()}}, METHOD)]
    for table in dict.fromkeys(case.table for case, _ in results):
        mine = [(case, outcome) for case, outcome in results if case.table == table]
        parts += [
            f"Table {table}. {TITLES[table]}",
            "",
            _by_share(mine) if table.startswith("3") else _by_network(mine),
        ]
        parts.append("")
    return "\n".join(parts).rstrip()


def as_json(results: Results, machine: Mapping[str, str]) -> str:
    """All that is known of each case."""
    cases = [
        {"table": case.table, "model": case.model, "row": case.row, "column": case.column, "seed": case.seed}
        | asdict(outcome)
        for case, outcome in results
    ]
    return json.dumps({"machine": dict(machine), "method": METHOD, "cases": cases}, indent=1)


def spread(values: Sequence[float]) -> str:
    """The mean, and half of how far they are apart, if there are several.

    >>> spread([0.9]), spread([0.90, 0.94])
    ('0.900', '0.920 ±0.020')
    """
    mean = f"{sum(values) / len(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ±{(max(values) - min(values)) / 2:.3f}"


def by_row(results: Results) -> dict[tuple[str, ...], dict[str, list[Outcome]]]:
    """The outcomes of all seeds, by row and column, as far as there was enough to learn from."""
    rows: dict[tuple[str, ...], dict[str, list[Outcome]]] = {}
    for case, outcome in results:
        columns = rows.setdefault(case.row, {})
        if outcome.rating:
            columns.setdefault(case.column, []).append(outcome)
    return rows


def _by_network(results: Results) -> str:
    networks = list(results[0][1].rating["networks"])
    devices = list(results[0][1].rating["devices"]) if results[0][0].device is None else []
    header = [
        "model",
        "top-1",
        "top-5",
        "pairwise",
        *devices,
        *networks,
        "training s",
        "parameters",
        "scored/s",
        "learned from",
    ]
    cells = []
    for (model,), columns in by_row(results).items():
        (outcomes,) = columns.values()
        ratings = [outcome.rating for outcome in outcomes]
        cells.append(
            [
                model,
                *(spread([rating[name] for rating in ratings]) for name in ("top_1", "top_5", "pairwise")),
                *(_pair([rating["devices"][device] for rating in ratings]) for device in devices),
                *(_pair([rating["networks"][network] for rating in ratings]) for network in networks),
                f"{sum(outcome.training_s for outcome in outcomes) / len(outcomes):.0f}",
                str(outcomes[0].num_parameters),
                "-" if outcomes[0].per_second is None else f"{outcomes[0].per_second:.0f}",
                str(outcomes[0].num_programs),
            ]
        )
    return markdown(header, cells)


def _by_share(results: Results) -> str:
    shares = list(dict.fromkeys(case.column for case, _ in results))
    names = ("peak_1", "peak_5") if results[0][0].table == "3 of logs" else ("top_1", "top_5")
    cells = []
    for row, columns in by_row(results).items():
        found = [[outcome.rating for outcome in columns.get(share, [])] for share in shares]
        cells.append([*row, *(_pair(ratings, names) if ratings else "too few" for ratings in found)])
    return markdown(["device", "model", "learned from", *shares], cells)


def _pair(ratings: Sequence[Mapping[str, float]], names: tuple[str, str] = ("top_1", "top_5")) -> str:
    return " / ".join(f"{sum(rating[name] for rating in ratings) / len(ratings):.3f}" for name in names)
