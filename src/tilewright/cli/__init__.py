"""The command line. A subcommand is a module here with `add_parser` and `run`; it imports what it needs in `run`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]

_EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program on `argv` (default: the command line) and return its exit code, also of an early interrupt."""
    try:
        from tilewright.cli import program

        return program.main(argv)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
