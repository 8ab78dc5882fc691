"""`python -m tilewright.testing.fuzz KIND`: seeded cases of one kind, or of all kinds in turn."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.testing.fuzz import harness, schedules
from tilewright.testing.fuzz.harness import Failure, Limits, Subject, Tally
from tilewright.testing.programs import FAMILIES

ALL = "all"
KINDS = {
    "graphs": ("graphs", "Graphs", "random ONNX graphs, against onnxruntime"),
    "onnx": ("onnx_files", "OnnxFiles", "changed ONNX files, imported, compiled and run"),
    "records": ("record_files", "RecordFiles", "changed record files: read, listed, tuned from and compiled"),
    "schedules": ("schedules", "Schedules", "random schedules of random programs, against NumPy"),
    "artifacts": ("artifacts", "Artifacts", "compiled models changed behind their checksums: refused, or they run"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tilewright.testing.fuzz",
        description="Random cases, each in a process of its own.",
        epilog="; ".join(f"{kind}: {what}" for kind, (_, _, what) in KINDS.items()),
    )
    parser.add_argument("kind", choices=[*KINDS, ALL], nargs="?", default=ALL, help="what to try (default: all)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run, all kinds together (60)")
    parser.add_argument("--cases", type=int, help="how many cases of a kind at most (as many as time allows)")
    parser.add_argument("--seed", type=int, help="the seed of the first case; the next has the next (any)")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run cases (1)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the files of failed cases are put")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how the result is printed")
    parser.add_argument("--program", choices=FAMILIES, help="schedules: only this family of programs")
    parser.add_argument("--target", default=schedules.NATIVE, help=f"schedules: a target ({schedules.NATIVE})")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}", file=sys.stderr, flush=True)
    kinds = list(KINDS) if options.kind == ALL else [options.kind]
    tallies = {kind: _run(kind, seed, options.seconds / len(kinds), options) for kind in kinds}
    return 1 if any(tally.failures for tally in tallies.values()) else 0


def _run(kind: str, seed: int, seconds: float, options: argparse.Namespace) -> Tally:
    subject = _subject(kind, options)
    limits = Limits(seconds, options.cases, max(1, options.jobs), is_first_failure_last=kind == "schedules")

    def on_failure(failure: Failure) -> None:
        where = failure.place or "an unknown place"
        print(f"{kind:<10} seed {failure.seed}: {failure.kind} at {where}", file=sys.stderr, flush=True)
        if options.keep is not None:
            harness.keep(subject, failure, options.keep / kind)

    tally = harness.run(subject, seed, limits, lambda *args: _tell(kind, *args), on_failure)
    if options.format == "json":
        print(harness.to_json(tally, kind, seed))
        return tally
    print(harness.describe(tally, kind, lambda failed: _replay_command(kind, failed, subject)), flush=True)
    if isinstance(subject, schedules.Schedules):
        for failure in tally.failures:
            schedules.report(subject.case(failure.seed))
    return tally


def _subject(kind: str, options: argparse.Namespace) -> Subject:
    if kind == "schedules":
        return schedules.Schedules(schedules.Case(0, options.program, options.target))
    module, name, _ = KINDS[kind]
    made: Any = getattr(import_module(f"tilewright.testing.fuzz.{module}"), name)()
    subject: Subject = made
    return subject


def _replay_command(kind: str, seed: int, subject: Subject) -> str:
    if isinstance(subject, schedules.Schedules):
        return subject.case(seed).replay_command()
    return f"python -m tilewright.testing.fuzz {kind} --seed {seed} --cases 1"


def _tell(kind: str, elapsed_s: float, tally: Tally) -> None:
    print(f"{kind:<10} {harness.progress_line(elapsed_s, tally)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
