"""A suite whose rows are kept: every finished case is written to a JSON file at once, and the file is reported."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from benchmarks import arguments

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Suite(Generic[Row]):
    """How the cases of a suite are run and their rows printed. `key` is the field of a row that names its case."""

    key: str
    make_row: Callable[..., Row]
    run: Callable[[str, argparse.Namespace], Row]
    verdict: Callable[[Row], str]
    as_table: Callable[[Sequence[Row]], str]
    as_json: Callable[[Sequence[Row]], str]
    passed: Callable[[Sequence[Row]], bool]

    def main(self, chosen: Sequence[str], options: argparse.Namespace) -> int:
        """Measure the chosen cases, or only report them, and print all that the file holds of them."""
        if not chosen:
            print("no case matches; run with --list to see all", file=sys.stderr)
            return 2
        if options.list:
            print("\n".join(chosen))
            return 0
        options.records.mkdir(parents=True, exist_ok=True)
        rows = self.read(options.output)
        for number, name in enumerate(chosen if not options.report else [], start=1):
            print(f"{number}/{len(chosen)} {name}", file=sys.stderr, flush=True)
            rows[name] = self.run(name, options)
            options.output.write_text(self.as_json(list(rows.values())))
            print(f"  {self.verdict(rows[name])}", file=sys.stderr, flush=True)
        shown = [rows[name] for name in chosen if name in rows]
        print(self.as_json(shown) if options.format == "json" else self.as_table(shown))
        missing = [name for name in chosen if name not in rows]
        if missing:
            print(f"not measured yet: {', '.join(missing)}", file=sys.stderr)
        return 0 if self.passed(shown) and not missing else 1

    def read(self, path: Path) -> dict[str, Row]:
        """The cases that a file holds already."""
        if not path.exists():
            return {}
        return {case[self.key]: self.make_row(**case) for case in json.loads(path.read_text())["cases"]}


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, name: str, has_threads: bool = True
) -> argparse.Namespace:
    """What is given, with the options that every suite takes. Its files are named after it."""
    if has_threads:
        parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=arguments.positive, default=15, metavar="N")
    parser.add_argument("--records", type=Path, default=Path("results") / name, metavar="DIR")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default: {name}.json in the records' directory")
    parser.add_argument("--report", action="store_true", help="measure nothing: print what the file holds")
    parser.add_argument("--list", action="store_true", help="print the chosen cases")
    options = parser.parse_args(argv)
    options.output = options.output or options.records / f"{name}.json"
    return options


def geometric_mean(ratios: Sequence[float]) -> float:
    """0 where there is none.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else 0.0


def milliseconds(value: float | None) -> str:
    """A time in a table; nothing where it was not measured."""
    return "" if value is None else f"{value:.4g} ms"
