"""The `tilewright` program: its parser, and how a subcommand's end becomes an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import tilewright
from tilewright.cli import bench, compile, dataset, fleet, inspect, model, records, run, target, tune
from tilewright.cli.streams import OutputError, checked_stdout, tolerant_stderr
from tilewright.errors import CodegenError, TilewrightError, UsageError
from tilewright.interrupts import remembered

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141  # as of a program that the signal SIGPIPE ends


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program on `argv` (default: the command line) and return its exit code."""
    parser = build_parser()
    with tolerant_stderr(), remembered():
        try:
            with checked_stdout():
                return _run(parser, argv)
        except OutputError as error:
            if error.is_closed_pipe:
                return EXIT_CLOSED_PIPE
            return _report(parser, f"standard output cannot be written: {error}", EXIT_FAILED)


def _run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    arguments = parser.parse_args(argv)
    try:
        _check_target(arguments)
        arguments.run(arguments)
    except UsageError as error:
        return _report(parser, error, EXIT_USAGE)
    except TilewrightError as error:
        return _report(parser, error, EXIT_FAILED)
    except OSError as error:  # of a place where nobody expects it: a disk that fails, no file descriptors left
        return _report(parser, f"the system refuses: {error}; check the place, and whether it is full", EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return EXIT_OK


def _check_target(arguments: argparse.Namespace) -> None:
    """A target that is none is wrong usage, whatever the subcommand wants of it."""
    if getattr(arguments, "target", target.DEFAULT_TARGET) == target.DEFAULT_TARGET:
        return
    from tilewright.target import Target

    try:
        Target.parse(arguments.target)
    except CodegenError as error:
        raise UsageError(f"--target: {error}") from error


def build_parser() -> argparse.ArgumentParser:
    """The parser with all subcommands; each leaves its function in `arguments.run`."""
    parser = argparse.ArgumentParser(
        prog="tilewright",
        description="From a tensor expression or an ONNX model to native code at library speed.",
    )
    parser.add_argument("--version", action="version", version=f"tilewright {tilewright.__version__}")
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for subcommand in (tune, compile, run, bench, inspect, records, dataset, model, fleet, target):
        subcommand.add_parser(subcommands)
    return parser


def _report(parser: argparse.ArgumentParser, error: TilewrightError | str, exit_code: int) -> int:
    print(f"{parser.prog}: error: {error}", file=sys.stderr)
    return exit_code
