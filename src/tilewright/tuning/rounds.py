"""Rounds: programs on their way to a measurer and back, of which several may be under way at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tilewright import interrupts
from tilewright.errors import UsageError
from tilewright.measure import Batch, Measurement, MeasureOptions, Measurer, Ticket
from tilewright.measure.local import LocalMeasurer
from tilewright.target import Target


class Round:
    """Programs that are measured together.

    `take` is called with each result, and the index of its program, as soon as it is there; `finish` after the last,
    with all of them in the order of the programs.
    """

    def __init__(
        self,
        batch: Batch,
        take: Callable[[int, Measurement], None],
        finish: Callable[[Sequence[Measurement]], None],
    ) -> None:
        self.batch = batch
        self._take = take
        self._finish = finish
        self._results: dict[int, Measurement] = {}

    def tell(self, index: int, measurement: Measurement) -> None:
        """What came of one of its programs."""
        self._results[index] = measurement
        self._take(index, measurement)
        if len(self._results) == len(self.batch.traces):
            self._finish([self._results[position] for position in range(len(self._results))])


def measure_rounds(measurer: Measurer, next_round: Callable[[], Round | None]) -> None:
    """Keep a measurer busy: ask for a round whenever it has room, until there is none and all results are told."""
    waiting: dict[Ticket, tuple[Round, int]] = {}
    try:
        while True:
            interrupts.check()
            while measurer.has_room and (found := next_round()) is not None:
                waiting |= {ticket: (found, index) for index, ticket in enumerate(measurer.submit(found.batch))}
            if not waiting:
                return
            ticket, measurement = measurer.next_result()
            told, index = waiting.pop(ticket)
            told.tell(index, measurement)
    except BaseException:
        measurer.cancel()
        raise


@contextmanager
def measurer_or_local(
    measurer: Measurer | None, options: MeasureOptions | None, target: Target, threads: int, seed: int
) -> Iterator[Measurer]:
    """The measurer that was given, or that of this machine, which starts at once and is closed in the end."""
    if measurer is None:
        with LocalMeasurer(target, threads, options or MeasureOptions(seed=seed)) as local:
            yield local
        return
    if options is not None:
        raise UsageError("measure has the options of the measurer of this machine, and another is given; give one")
    if not all(hasattr(measurer, name) for name in ("target", "threads", "submit", "next_result")):
        raise UsageError(f"measurer is {measurer!r}; it must be a Measurer, as tilewright.measure describes it")
    if (measurer.target, measurer.threads) != (target, threads):
        raise UsageError(
            f"the measurer is for {measurer.threads} threads on {measurer.target}, and programs for {threads} threads "
            f"on {target} are to be measured; give both the same"
        )
    yield measurer
