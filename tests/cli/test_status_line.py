"""Progress on a terminal: one line that changes, however narrow; elsewhere plain lines."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import redirect_stderr, suppress

import pytest

from tilewright.cli.status_line import StatusLine
from tilewright.cli.streams import tolerant_stderr


def on_terminal(columns: int, act: Callable[[], None]) -> bytes:
    """What a terminal of that width gets."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(theirs, "w") as stream, redirect_stderr(stream), tolerant_stderr():
        act()
    shown = b""
    with suppress(OSError), open(ours, "rb", buffering=0) as terminal:  # which ends with an error
        while part := terminal.read(1000):
            shown += part
    return shown


def show() -> None:
    line = StatusLine()
    line.show("first")
    line.show("0123456789" * 5)
    line.finish()


@pytest.mark.parametrize(
    ("columns", "shown"), [(80, "0123456789" * 5), (20, "0123456789012345678"), (0, "0123456789" * 5)]
)
def test_a_line_that_changes_is_no_wider_than_the_terminal(
    columns: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert on_terminal(columns, show).decode() == f"\r\x1b[Kfirst\r\x1b[K{shown}\r\n"


def test_a_terminal_that_knows_no_codes_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert on_terminal(20, show).decode() == "first\r\n"
