"""The command line. A subcommand is a module here with `add_parser` and `run`; it imports what it needs in `run`."""

from tilewright.cli.program import main

__all__ = ["main"]
