"""`tilewright records`: look into record files, join them, thin them out, export them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.cli.network import check_place
from tilewright.cli.table import one_line, table
from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from tilewright.records import Key, Record
    from tilewright.te import Task

_HASH_DIGITS = 12


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser("records", help="look into record files", description="Look into record files.")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    summary = "one line for each task: trials (a program that was measured again is one), failures and the best latency"
    shown = _add_action(actions, "list", summary)
    shown.set_defaults(run=run_list)
    best = _add_action(actions, "best", "the best record of each task, with the trace to paste")
    best.add_argument("--task", default="", metavar="HASH", help="only tasks whose hash begins so")
    best.set_defaults(run=run_best)
    merge = _add_action(actions, "merge", "add the records of all files to another")
    merge.add_argument("-o", "--output", required=True, metavar="OUT", help="made if it does not exist")
    merge.set_defaults(run=run_merge)
    prune = _add_action(actions, "prune", "keep only the fastest records of each task, in each file")
    prune.add_argument("--keep", type=int, default=1, metavar="N", help="records of each task; default: %(default)s")
    prune.set_defaults(run=run_prune)
    tasks = _add_action(actions, "tasks", "the tasks that the files hold: operations, records and the best latency")
    tasks.add_argument("--format", choices=("table", "json"), default="table", help="json has the whole tasks")
    tasks.set_defaults(run=run_tasks)
    export = _add_action(actions, "export", "print the records for other programs")
    export.add_argument("--format", choices=("csv", "json"), default="csv", help="default: %(default)s")
    export.set_defaults(run=run_export)


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    parser.add_argument("files", nargs="+", metavar="FILE")
    return parser


def run_list(arguments: argparse.Namespace) -> None:
    from tilewright.records import group_by_task

    rows: list[tuple[str, ...]] = [("workload", "task", "threads", "trials", "failed", "best", "context", "target")]
    rows += [_summary(key, records) for key, records in group_by_task(_read(arguments.files)).items()]
    print(table(_without_warm(rows)))


def run_best(arguments: argparse.Namespace) -> None:
    from tilewright.records import fastest, group_by_task

    groups = group_by_task(_read(arguments.files))
    chosen = {key: records for key, records in groups.items() if key.task.startswith(arguments.task)}
    if arguments.task and not chosen:
        known = ", ".join(dict.fromkeys(key.task[:_HASH_DIGITS] for key in groups)) or "none"
        raise TilewrightError(
            f"no record is of a task whose hash begins with {arguments.task!r}; the tasks are {known}"
        )
    found = {key: record for key, records in chosen.items() if (record := fastest(records)) is not None}
    if not found:
        num_failed = sum(map(len, chosen.values()))
        raise TilewrightError(f"there is no best program: {num_failed} records, and none of them is of one that ran")
    for key, record in found.items():
        assert record.latency_s is not None
        name = record.workload or "task"
        where = f"{key.target}, {key.threads} threads{_context(key)}"
        print(one_line(f"# {name} {key.task} on {where}: {_milliseconds(record.latency_s)}"))
        print(record.trace)


def run_tasks(arguments: argparse.Namespace) -> None:
    from tilewright.records import group_by_task, read_contents

    contents = read_contents(*arguments.files)
    groups = group_by_task(contents.records)
    tasks = [
        (line.task(), {key: records for key, records in groups.items() if key.task == line.hash})
        for line in contents.tasks.values()
    ]
    if arguments.format == "json":
        print(json.dumps([_task_json(task, measured) for task, measured in tasks], indent=1))
    else:
        print(_task_table(tasks))


def run_merge(arguments: argparse.Namespace) -> None:
    from tilewright.records import merge

    check_place("-o", arguments.output)
    print(f"{arguments.output}: {merge(arguments.files, arguments.output)} records")


def run_prune(arguments: argparse.Namespace) -> None:
    from tilewright.records import prune

    for file in arguments.files:
        before, after = prune(file, arguments.keep)
        print(f"{file}: {after} of {before} records kept")


def run_export(arguments: argparse.Namespace) -> None:
    from tilewright.records import export

    sys.stdout.write(export(_read(arguments.files), arguments.format))


def _read(files: Sequence[str]) -> list[Record]:
    from tilewright.records import read_records

    return [record for file in files for record in read_records(file)]


def _summary(key: Key, records: list[Record]) -> tuple[str, ...]:
    from tilewright.records import latest

    trials = latest(records)
    num_failed = sum(record.latency_s is None for record in trials)
    name = next((record.workload for record in records if record.workload), "-")
    counts = (str(key.threads), str(len(trials)), str(num_failed))
    return (name, key.task[:_HASH_DIGITS], *counts, _best(records), key.context, key.target)


def _task_table(tasks: Sequence[tuple[Task, Mapping[Key, list[Record]]]]) -> str:
    """A line for each task, or for each target, number of threads and context that it was measured with."""
    from tilewright.records import WARM

    rows: list[tuple[str, ...]] = [("task", "name", "flop", "records", "best", "threads", "context", "target")]
    for task, measured in tasks:
        name = task.name or "-"
        head = (task.hash[:_HASH_DIGITS], name, f"{task.flop:.4g}")
        if not measured:
            rows.append((*head, "0", "-", "-", WARM, "-"))
        for key, records in measured.items():
            rows.append((*head, str(len(records)), _best(records), str(key.threads), key.context, key.target))
    return table(_without_warm(rows))


def _task_json(task: Task, measured: Mapping[Key, list[Record]]) -> dict[str, Any]:
    """All that is known of a task, for other programs."""
    from tilewright.records import fastest

    groups = [
        {
            "target": key.target,
            "threads": key.threads,
            "context": key.context,
            "records": len(records),
            "best_latency_s": None if (best := fastest(records)) is None else best.latency_s,
        }
        for key, records in measured.items()
    ]
    return {"task": task.hash, "name": task.name, "flop": task.flop, "measured": groups, "definition": task.to_json()}


def _best(records: Sequence[Record]) -> str:
    from tilewright.records import fastest

    best = fastest(records)
    return "none valid" if best is None or best.latency_s is None else _milliseconds(best.latency_s)


def _context(key: Key) -> str:
    from tilewright.records import WARM

    return "" if key.context == WARM else f", {key.context}"


def _without_warm(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows, of which the first names the columns; that all is warm goes without saying."""
    from tilewright.records import WARM

    at = rows[0].index("context")
    is_said = any(row[at] != WARM for row in rows[1:])
    return rows if is_said else [row[:at] + row[at + 1 :] for row in rows]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"
