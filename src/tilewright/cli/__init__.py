"""The command line. A subcommand is a module here with `add_parser` and `run`; it imports what it needs in `run`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]

_EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program on `argv` (default: the command line) and return its exit code, also of an early interrupt."""
    try:
        from tilewright.cli import program

        exit_code = program.main(argv)
    except KeyboardInterrupt:
        exit_code = _EXIT_INTERRUPTED
    if exit_code == _EXIT_INTERRUPTED:
        _forget_interrupt()
    return exit_code


def _forget_interrupt() -> None:
    """Let Python end with the exit code that it is told.

    An interrupt in the middle of a text that Python evaluates, as each dataclass has one when it is imported, counts as
    one that nobody handles, even if somebody does further up: `python -m` would end itself by the signal. The next text
    that is evaluated makes it forget that.
    """
    eval("None")
