"""`SequentialMeasurer`: the measurer of one machine, made of any `Builder` and `Runner`."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.errors import UsageError
from tilewright.measure.measurement import Measurement
from tilewright.measure.protocols import Batch, Builder, Built, Result, Runner, Ticket
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task

_LEAST_TURNS = 2  # one of which chooses, and one tells
_LONGEST_COMPARISON_S = 20.0


class SequentialMeasurer:
    """Builds one batch after the other, and times its programs one after the other.

    A batch is built before any of it is timed, so that building never disturbs timing; what was built lately, as the
    finalists of a task were, is not built again. Programs that do not compile
    have their results first; the others follow in the order of the batch, those of a comparison at its end.
    """

    def __init__(self, builder: Builder, runner: Runner, target: Target, threads: int) -> None:
        self.target = target
        self.threads = threads
        self._builder = builder
        self._runner = runner
        self._shelf = _Shelf()
        self._waiting: deque[Iterator[Result]] = deque()  # of each batch what is left of it
        self._num_tickets = 0
        self._num_open = 0

    @property
    def has_room(self) -> bool:
        return self._num_open == 0

    def submit(self, batch: Batch) -> list[Ticket]:
        tickets = list(range(self._num_tickets, self._num_tickets + len(batch.traces)))
        self._num_tickets += len(tickets)
        self._num_open += len(tickets)
        self._waiting.append(self._measure(batch, tickets))
        return tickets

    def next_result(self) -> Result:
        if not self._num_open:
            raise UsageError("there is no result to wait for; submit a batch first")
        try:
            while (result := next(self._waiting[0], None)) is None:
                self._waiting.popleft()
        except BaseException:
            # An interrupt leaves the builder and the runner in the middle of something.
            self.cancel()
            raise
        self._num_open -= 1
        return result

    def cancel(self) -> None:
        self._waiting.clear()
        self._num_open = 0
        self._builder.reset()
        self._runner.reset()

    def close(self) -> None:
        self.cancel()

    def _measure(self, batch: Batch, tickets: list[Ticket]) -> Iterator[Result]:
        self._runner.prepare(batch.task, batch.context)
        built = {i: known for i, trace in enumerate(batch.traces) if (known := self._shelf.find(batch.task, trace))}
        others = [index for index in range(len(tickets)) if index not in built]
        for position, outcome in self._builder.build(batch.task, [batch.traces[index] for index in others]):
            index = others[position]
            if isinstance(outcome, Built):
                built[index] = outcome
                self._shelf.put(batch.task, batch.traces[index], outcome)
            else:
                yield Result(tickets[index], outcome)
        in_order = {tickets[index]: built[index] for index in sorted(built)}
        if batch.turns is None:
            yield from self._run_each(in_order, batch.best_latency_s)
        else:
            yield from self._compare(in_order, batch.turns)

    def _run_each(self, built: dict[Ticket, Built], best_latency_s: float | None) -> Iterator[Result]:
        for ticket, kernel in built.items():
            measurement = time_program(self._runner, kernel, best_latency_s)
            if _is_faster(measurement, best_latency_s):
                best_latency_s = measurement.latency_s
            yield Result(ticket, measurement)

    def _compare(self, built: dict[Ticket, Built], turns: int) -> Iterator[Result]:
        yield from map(Result, built, time_in_turns(self._runner, list(built.values()), turns))


class _Shelf:
    """The programs that were built last, as many as fit into `max_bytes`."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._built: dict[tuple[int, Trace], tuple[Task, Built]] = {}  # by the task itself: names count

    def find(self, task: Task, trace: Trace) -> Built | None:
        known = self._built.get((id(task), trace))
        return None if known is None else known[1]

    def put(self, task: Task, trace: Trace, built: Built) -> None:
        self._num_bytes += built.binary.num_bytes
        self._built[id(task), trace] = (task, built)
        while self._num_bytes > self._max_bytes:
            _, oldest = self._built.pop(next(iter(self._built)))
            self._num_bytes -= oldest.binary.num_bytes


def time_program(runner: Runner, built: Built, best_latency_s: float | None) -> Measurement:
    """Time a program; one that seems to be the best once more, and only that counts: it may have been luck."""
    measurement = runner.run(built, best_latency_s)
    return runner.run(built, best_latency_s) if _is_faster(measurement, best_latency_s) else measurement


def time_in_turns(runner: Runner, programs: Sequence[Built], turns: int) -> list[Measurement]:
    """Time programs in short turns, one after the other in each; one that fails has no more.

    Programs that take seconds, as on a slow board, have two turns and no more than fit into a while: what disturbs a
    short run is little beside a long one.
    """
    found: dict[int, Measurement] = {}
    until_s = time.monotonic() + _LONGEST_COMPARISON_S
    for turn in range(turns):
        if turn >= _LEAST_TURNS and time.monotonic() > until_s:
            break
        for index, program in enumerate(programs):
            before = found.get(index)
            if before is None or before.latency_s is not None:
                found[index] = _joined(before, runner.take_turn(program))
    return [found[index] for index in range(len(programs))]


def _joined(before: Measurement | None, turn: Measurement) -> Measurement:
    if turn.latency_s is None:
        return turn
    runs_s = (*(before.runs_s if before else ()), turn.latency_s)
    return replace(turn, latency_s=statistics.median(runs_s), runs_s=runs_s)


def _is_faster(measurement: Measurement, best_latency_s: float | None) -> bool:
    return measurement.latency_s is not None and (best_latency_s is None or measurement.latency_s < best_latency_s)
