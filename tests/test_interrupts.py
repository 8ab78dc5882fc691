"""Interrupts that Python drops are noticed a step later."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

import pytest

from tilewright import interrupts


def dropped() -> None:
    """An interrupt as it ends inside a destructor."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_dropped_interrupt_counts_once_at_the_next_check() -> None:
    with interrupts.remembered():
        interrupts.check()
        dropped()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()


def test_an_interrupt_is_one_at_once_too() -> None:
    with interrupts.remembered(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_nothing_stays_behind() -> None:
    with interrupts.remembered():
        dropped()
    interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_somebody_else_stays() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with interrupts.remembered():
            signal.raise_signal(signal.SIGINT)
            interrupts.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_a_thread_leaves_signals_alone() -> None:
    entered: list[bool] = []

    def run() -> None:
        with interrupts.remembered():
            entered.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert entered == [True]
