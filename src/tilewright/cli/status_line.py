"""Progress on stderr: one line that changes on a terminal, plain lines every few seconds elsewhere."""

from __future__ import annotations

import os
import sys
import time

from tilewright.cli.streams import is_live

_PLAIN_EVERY_S = 2.0


class StatusLine:
    """What a command is doing at the moment. The first and the last text are always shown."""

    def __init__(self) -> None:
        self.is_live = is_live()
        self._next_s = 0.0
        self._is_open = False

    def show(self, text: str, *, is_last: bool = False) -> None:
        """Show the text, or leave it out where the last line is recent and nobody watches."""
        now_s = time.monotonic()
        if not self.is_live and not is_last and now_s < self._next_s:
            return
        self._next_s = now_s + _PLAIN_EVERY_S
        start, end = ("\r\x1b[K", "") if self.is_live else ("", "\n")
        print(f"{start}{text[: _width() if self.is_live else None]}", end=end, file=sys.stderr, flush=True)
        self._is_open = self.is_live

    def say(self, text: str) -> None:
        """Show the text on a line of its own, which stays."""
        start = "\r\x1b[K" if self._is_open else ""
        print(f"{start}{text}", file=sys.stderr, flush=True)
        self._is_open = False

    def finish(self) -> None:
        """Whatever is printed next begins on a line of its own."""
        if self._is_open:
            print(file=sys.stderr)
        self._is_open = False


def _width() -> int | None:
    """What fits into a line of the terminal: only one can be taken back. None where that is not known."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return None
    return columns - 1 if columns > 1 else None
