"""Standard output and error of the program: what happens where nobody reads them, the disk is full, or they are closed.

Results that cannot be written are an error. Progress that cannot be is left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO


class OutputError(Exception):
    """Standard output cannot be written; no OSError, so that nobody takes it for one of their own files."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror or str(cause))
        self.is_closed_pipe = isinstance(cause, BrokenPipeError)


@contextlib.contextmanager
def checked_stdout() -> Iterator[None]:
    """Inside, writing to stdout raises OutputError where it fails; all is written when it ends."""
    with contextlib.redirect_stdout(_Stdout(sys.stdout)):
        try:
            yield
        finally:
            sys.stdout.flush()


@contextlib.contextmanager
def tolerant_stderr() -> Iterator[None]:
    """Inside, writing to stderr never fails. What is warned of is said there, as all that the program has to say."""
    with contextlib.redirect_stderr(_Stderr(sys.stderr)), warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _say(warnings.showwarning)
        yield


def is_live() -> bool:
    """Whether stderr is a terminal that takes a line back."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class _Guarded(io.TextIOBase):
    """A stream; one that was closed before the program began takes all and keeps nothing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        return super().fileno() if self._stream is None else self._stream.fileno()  # the first has none, and says so

    def write(self, text: str) -> int:
        if self._stream is not None:
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                encoding = self._stream.encoding
                self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            except OSError as error:
                _discard(self._stream)
                self._failed(error)
        return len(text)

    def flush(self) -> None:
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError as error:
                _discard(self._stream)
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        raise NotImplementedError


class _Stdout(_Guarded):
    def _failed(self, error: OSError) -> None:
        raise OutputError(error) from error


class _Stderr(_Guarded):
    def _failed(self, error: OSError) -> None:
        pass


def _discard(stream: TextIO) -> None:
    """Let what the stream still holds go nowhere, so that Python does not try again when it ends."""
    with contextlib.suppress(OSError):  # a stream in memory has no number
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _say(show: Callable[..., None]) -> Callable[..., None]:
    """Warnings of ours in one line; what libraries tell their developers as Python shows it."""

    def say(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, UserWarning):
            show(message, category, *place, **more)
            return
        start = "\r\x1b[K" if is_live() else ""
        print(f"{start}tilewright: warning: {message}", file=sys.stderr)

    return say
