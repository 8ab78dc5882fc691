"""Prints results: a table to read, or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from benchmarks.results import LimitResult, NotRun, RatioResult, Result
from benchmarks.timing import METHOD

_HEADER = ("case", "threads", "ours", "peer", "ratio", "must reach", "")


def format_table(machine: Mapping[str, str], results: Sequence[Result]) -> str:
    """A Markdown table under the description of the machine."""
    return "\n".join([heading(machine, METHOD), markdown(_HEADER, [_row(result) for result in results])])


def heading(machine: Mapping[str, str], method: str) -> str:
    """What stands above a table: the machine, and how it was measured."""
    return "\n".join([*(f"{name}: {value}" for name, value in machine.items()), "", method, ""])


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(_line(line, widths) for line in lines)


def format_json(machine: Mapping[str, str], results: Sequence[Result]) -> str:
    """The same as one JSON object."""
    cases = [_as_json(result) for result in results]
    return json.dumps({"machine": dict(machine), "method": METHOD, "cases": cases}, indent=2)


def all_passed(results: Sequence[Result]) -> bool:
    """True if every measured case reached what it must; one that was not run counts as neither."""
    return all(isinstance(result, NotRun) or result.passed for result in results)


def _row(result: Result) -> tuple[str, ...]:
    head = (result.name, str(result.threads))
    match result:
        case NotRun():
            return (*head, "", "", "", "", f"not run: {result.reason}")
        case LimitResult():
            limit = f"<= {result.limit:g} {result.unit}"
            return (*head, f"{result.ours:.1f} {result.unit}", "", "", limit, _mark(result))
        case RatioResult():
            peer = f"{result.peer_speed:.1f} {result.unit} {result.peer}"
            required = f">= {result.required:.2f}"
            return (*head, f"{result.ours:.1f} {result.unit}", peer, f"{result.ratio:.2f}", required, _mark(result))


def _mark(result: RatioResult | LimitResult) -> str:
    return "pass" if result.passed else "FAIL"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def _as_json(result: Result) -> dict[str, object]:
    if isinstance(result, NotRun):
        return {"status": "not run"} | asdict(result)
    return {"status": "pass" if result.passed else "fail"} | asdict(result)
