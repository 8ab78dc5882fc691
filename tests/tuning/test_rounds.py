"""Rounds on their way: with a measurer that takes several at once, and gives results in any order."""

from __future__ import annotations

import signal
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import pytest

from tilewright import interrupts
from tilewright.errors import UsageError
from tilewright.measure import Batch, Measurement, MeasureOptions, Result, Ticket
from tilewright.measure.local import LocalMeasurer
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.testing.measurer_checks import doubling
from tilewright.tuning.rounds import Round, measure_rounds, measurer_or_local
from tilewright.tuning.tuner import Tuner, tune
from tilewright.workloads import parse


class FakeFleet:
    """Measures so many batches at once; any of the programs that are there may be the next to be done."""

    def __init__(self, num_batches: int, seed: int = 0) -> None:
        self.target = Target.native()
        self.threads = 1
        self.num_batches = num_batches
        self.rng = np.random.default_rng(seed)
        self.open: dict[Ticket, tuple[int, Trace]] = {}
        self.num_tickets = 0
        self.num_submitted = 0
        self.most_at_once = 0
        self.was_cancelled = False

    @property
    def has_room(self) -> bool:
        return len({batch for batch, _ in self.open.values()}) < self.num_batches

    def submit(self, batch: Batch) -> list[Ticket]:
        tickets = [self.num_tickets + n for n in range(len(batch.traces))]
        self.open |= {ticket: (self.num_submitted, trace) for ticket, trace in zip(tickets, batch.traces, strict=True)}
        self.num_tickets += len(tickets)
        self.num_submitted += 1
        self.most_at_once = max(self.most_at_once, len({number for number, _ in self.open.values()}))
        self.turns = batch.turns or 1
        return tickets

    def next_result(self) -> Result:
        ticket = int(self.rng.choice(list(self.open)))
        _, trace = self.open.pop(ticket)
        latency_s = (1 + zlib.crc32(str(trace).encode()) % 1000) * 1e-6
        return Result(ticket, Measurement("OK", latency_s, (latency_s,) * self.turns))

    def cancel(self) -> None:
        self.open.clear()
        self.was_cancelled = True

    def close(self) -> None:
        self.cancel()


def rounds(number: int, size: int, told: list[tuple[int, int]], finished: list[int]) -> Iterator[Round]:
    for position in range(number):

        def take(index: int, measurement: Measurement, position: int = position) -> None:
            told.append((position, index))

        def finish(results: Sequence[Measurement], position: int = position) -> None:
            assert len(results) == size
            finished.append(position)

        yield Round(Batch(doubling(), (Trace(),) * size), take, finish)


def test_another_round_is_asked_for_as_soon_as_there_is_room() -> None:
    fleet = FakeFleet(num_batches=3)
    told: list[tuple[int, int]] = []
    finished: list[int] = []
    made = rounds(8, 4, told, finished)
    measure_rounds(fleet, lambda: next(made, None))
    assert fleet.most_at_once == 3
    assert sorted(told) == [(position, index) for position in range(8) for index in range(4)]
    assert told != sorted(told), "results came in another order"
    assert sorted(finished) == list(range(8))
    assert fleet.has_room


def test_an_error_on_the_way_cancels_what_is_left() -> None:
    fleet = FakeFleet(num_batches=2)

    def fail(index: int, measurement: Measurement) -> None:
        raise OSError("no space left")

    made = iter([Round(Batch(doubling(), (Trace(),) * 3), fail, lambda results: None)])
    with pytest.raises(OSError, match="no space left"):
        measure_rounds(fleet, lambda: next(made, None))
    assert fleet.was_cancelled
    assert fleet.has_room


@pytest.mark.parametrize("num_batches", [1, 3])
def test_a_task_is_tuned_with_several_rounds_under_way(num_batches: int) -> None:
    fleet = FakeFleet(num_batches)
    result = tune(parse("gmm:48x40x56"), trials=70, threads=1, measurer=fleet)
    assert fleet.most_at_once == num_batches
    assert len({record.trace for record in result.records}) == 70, "none is measured twice"
    assert result.best.compared_s is not None
    assert not fleet.was_cancelled


def test_results_that_come_in_another_order_teach_the_same() -> None:
    """With one round at a time, what is learned is learned in the order of the candidates."""
    first, second = (
        tune(parse("gmm:48x40x56"), trials=48, threads=1, measurer=FakeFleet(1, seed)).records for seed in (1, 2)
    )
    assert [record.trace for record in first] != [record.trace for record in second]
    assert {record.trace for record in first} == {record.trace for record in second}


def test_trials_under_way_are_counted() -> None:
    tuner = Tuner(parse("gmm:48x40x56"), Target.native(), threads=1)
    first, second = tuner.round(6, None), tuner.round(4, None)
    assert first is not None
    assert second is not None
    assert tuner.num_asked == 10
    first.tell(2, Measurement("OK", 1e-3, (1e-3,)))
    assert (tuner.num_asked, len(tuner.records)) == (10, 1)
    assert not set(first.batch.traces) & set(second.batch.traces)


def test_a_measurer_that_is_given_fits_and_is_left_open() -> None:
    fleet = FakeFleet(1)
    with measurer_or_local(fleet, None, fleet.target, 1, seed=0) as chosen:
        assert chosen is fleet
    assert not fleet.was_cancelled
    with (
        pytest.raises(UsageError, match="the measurer is for 1 threads on .* programs for 2 threads"),
        measurer_or_local(fleet, None, fleet.target, 2, seed=0),
    ):
        pass
    with pytest.raises(UsageError, match="another is given"):
        tune(parse("gmm:8x8x8"), threads=1, measurer=fleet, measure=MeasureOptions())


def test_without_one_it_is_that_of_this_machine() -> None:
    with measurer_or_local(None, None, Target.native(), 1, seed=3) as chosen:
        assert isinstance(chosen, LocalMeasurer)
        assert (chosen.target, chosen.threads) == (Target.native(), 1)


def test_an_interrupt_that_was_dropped_ends_the_rounds_at_the_next_result() -> None:
    fleet = FakeFleet(1)
    task = parse("gmm:16x16x16")
    told: list[int] = []

    def take(index: int, _: Measurement) -> None:
        told.append(index)
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    rounds = iter([Round(Batch(task, (Trace(),) * 3), take, lambda _: None)])
    with interrupts.remembered(), pytest.raises(KeyboardInterrupt):
        measure_rounds(fleet, lambda: next(rounds, None))
    assert len(told) == 1
    assert fleet.was_cancelled
