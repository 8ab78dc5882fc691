"""`tilewright dataset import`: add logs of other tools to a dataset."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.cli import network
from tilewright.cli.status_line import StatusLine
from tilewright.cli.table import one_line
from tilewright.errors import TilewrightError, UsageError

if TYPE_CHECKING:
    from tilewright.records.dataset import Imported

_SUFFIXES = (".json", ".jsonl", ".log", ".gz", ".xz")


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to the parser of `tilewright dataset`."""
    parser = actions.add_parser(
        "import",
        help="add logs of Ansor, TenSet or AutoTVM",
        description="Add the programs of logs of Ansor (and so of TenSet) and of AutoTVM to a dataset. Lines that are "
        "no records are counted. A log that is there already adds nothing.",
    )
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a file, plain or as .gz or .xz, or a folder with such files"
    )
    parser.add_argument(
        "--device", required=True, metavar="NAME", help="what ran the programs; most logs do not say it"
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the dataset; made if there is none")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Import, and print what was found."""
    from tilewright.records.dataset import DatasetFolder, checked_name, import_logs

    device = checked_name(arguments.device)
    network.check_place("-o", arguments.output, is_folder=True)
    files = _distinct([file for log in arguments.logs for file in _files(log, arguments.output)])
    line = StatusLine()

    def show(found: Imported, path: str) -> None:
        line.show(f"{found.num_records} records, {found.num_broken} broken lines  {one_line(path)}")

    try:
        found = import_logs(files, DatasetFolder.create(arguments.output), device, show)
    except KeyboardInterrupt:
        line.finish()
        print(f"interrupted; what was read is in {arguments.output}: the same command goes on", file=sys.stderr)
        raise
    line.finish()
    print(summary(found, arguments.output))
    if not found.num_records:
        raise TilewrightError(f"no line is a record of Ansor or AutoTVM, in {len(files)} files; check what they are")


def _distinct(files: Sequence[Path]) -> list[Path]:
    """Each file once, whatever it is called; UsageError where one must not be read."""
    found: dict[str, Path] = {}
    for file in files:
        if not os.access(file, os.R_OK):
            raise UsageError(f"LOG is {str(file)!r}, which must not be read; make it readable, or leave it out")
        found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _files(log: str, output: str) -> list[Path]:
    """The logs that an argument names; the dataset may stand among them, as it does when the same command goes on."""
    if not log:
        raise UsageError("LOG is empty; name a file or a folder")
    if os.path.isdir(log):
        found = sorted(_logs_in(log, os.path.realpath(output)))
        if not found:
            raise UsageError(f"LOG is the folder {log}, which has no file that ends in {', '.join(_SUFFIXES)}")
        return found
    if not os.path.exists(log):
        raise UsageError(f"LOG is {log!r}, and there is no such file or folder")
    return [Path(log)]


def _logs_in(folder: str, dataset: str) -> Iterator[Path]:
    """The logs in a folder and in those inside; a link to a folder, which may lead in a circle, is named and left."""

    def refuse(error: OSError) -> None:
        raise UsageError(
            f"LOG is {folder!r}, and its folder {error.filename!r} must not be read ({error.strerror}); make it "
            "readable, or name the others"
        ) from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        for link in (Path(place, name) for name in folders if os.path.islink(os.path.join(place, name))):
            print(f"left out: {one_line(str(link))} is a link to a folder; name that, too", file=sys.stderr)
        for path in (Path(place, name) for name in names):
            if path.suffix.lower() in _SUFFIXES and path.is_file() and not _is_inside(path, dataset):
                yield path


def _is_inside(path: Path, folder: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(folder)


def summary(found: Imported, folder: str) -> str:
    """What was read and added, and what was not."""
    lines = [
        f"records: {found.num_records} of {len(found.workloads)} workloads, {found.num_failed} of them failures",
        f"added: {found.num_added} programs that were not there",
        f"broken lines: {found.num_broken}",
        *(f"  {one_line(message)}" for message in found.broken),
    ]
    if found.num_broken > len(found.broken):
        lines.append(f"  and {found.num_broken - len(found.broken)} more")
    return "\n".join([*lines, f"dataset: {folder}"])
