"""Options that several benchmarks take."""

from __future__ import annotations

import argparse


def parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that all have."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    made.add_argument("--format", choices=("table", "json"), default="table")
    made.add_argument("--case", default="", metavar="SUBSTRING", help="only the cases whose name contains it")
    return made


def positive(text: str) -> int:
    """A whole number above 0."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value
