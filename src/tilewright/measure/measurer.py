"""`Measurer`: traces in, measurements out. Start here; then `building`, `running`, and the processes behind them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType

from tilewright.errors import CodegenError
from tilewright.measure.building import Builders
from tilewright.measure.measurement import OK, Measurement
from tilewright.measure.messages import BuildFailed, Built, Setup
from tilewright.measure.options import MeasureOptions
from tilewright.measure.processes import ForkServer
from tilewright.measure.running import Runner
from tilewright.schedule import Trace
from tilewright.target import Target, default_threads
from tilewright.te import Task


class Measurer:
    """Compiles candidates of a task in several processes and times them in one, a batch at a time.

    A batch is built before any of it is timed, so that building never disturbs timing. Whatever a candidate does to
    the process that compiles or runs it costs that candidate alone. The processes start with the `with` block, or
    when they are first needed, and none is left after it. `turn_to` makes it measure another task.
    """

    def __init__(self, task: Task, target: Target, threads: int, options: MeasureOptions | None = None) -> None:
        if not target.is_native:
            raise CodegenError(
                f"candidates are measured on this machine, which cannot run code for {target}; "
                "use target='llvm -mcpu=native'"
            )
        chosen = options or MeasureOptions()
        self._setup = Setup(task, target, threads, chosen)
        self._server = ForkServer(self._setup)
        self._builders = Builders(self._server, chosen.num_builders or default_threads(), chosen.build_timeout_s)
        self._runner = Runner(self._server, chosen)

    def __enter__(self) -> Measurer:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._discard_workers()
        self._server.close()

    def turn_to(self, task: Task) -> None:
        """Measure candidates of this task from now on.

        Workers are forked anew, which takes milliseconds, and hold the arrays of this task alone.
        """
        if task is self._setup.task:
            return
        self._setup = replace(self._setup, task=task)
        self._discard_workers()
        self._server.set_up(self._setup)

    def measure(
        self,
        traces: Sequence[Trace],
        best_latency_s: float | None = None,
        on_result: Callable[[int, Measurement], None] | None = None,
    ) -> list[Measurement]:
        """One measurement for each trace.

        `best_latency_s` is the best so far: candidates much slower are timed briefly, and outputs are checked where a
        candidate could beat it or comes near. `on_result` is called with the trace's index as soon as a measurement is
        there: first for those that do not compile, then in the order of the traces. A candidate that seems to be the
        best is timed once more, and only that counts: what made it seem so may have been luck.
        """
        report = on_result or (lambda index, measurement: None)
        results: dict[int, Measurement] = {}
        with self._workers_discarded_on_error():
            built = self._build(traces, results, report)
            for index in sorted(built):
                measurement = self._runner.run(built[index], best_latency_s)
                if _is_faster(measurement, best_latency_s):
                    measurement = self._runner.run(built[index], best_latency_s)
                if _is_faster(measurement, best_latency_s):
                    best_latency_s = measurement.latency_s
                results[index] = measurement
                report(index, measurement)
        return [results[index] for index in range(len(traces))]

    def compare(self, traces: Sequence[Trace], turns: int) -> list[Measurement]:
        """Measure programs against each other, in turns: what disturbs the machine for a moment then hits all of them.

        Each output is checked in each turn. `runs_s` has one number for each turn.
        """
        results: dict[int, Measurement] = {}
        with self._workers_discarded_on_error():
            built = self._build(traces, results, lambda index, measurement: None)
            for _ in range(turns):
                for index in sorted(built):
                    before = results.get(index)
                    if before is None or before.status == OK:
                        results[index] = _joined(before, self._runner.run(built[index], is_turn=True))
        return [results[index] for index in range(len(traces))]

    def _build(
        self, traces: Sequence[Trace], results: dict[int, Measurement], report: Callable[[int, Measurement], None]
    ) -> dict[int, Built]:
        """Build all traces; failures are reported and put among the results."""
        self._runner.start()  # it makes inputs and reference meanwhile
        built: dict[int, Built] = {}
        for index, outcome in self._builders.build(traces):
            if isinstance(outcome, BuildFailed):
                results[index] = Measurement(outcome.status, error=outcome.error, build_s=outcome.build_s)
                report(index, results[index])
            else:
                built[index] = outcome
        return built

    @contextmanager
    def _workers_discarded_on_error(self) -> Iterator[None]:
        """An interrupt leaves workers in the middle of something: the next call starts with new ones."""
        try:
            yield
        except BaseException:
            self._discard_workers()
            raise

    def _discard_workers(self) -> None:
        self._builders.discard()
        self._runner.discard()


def _joined(before: Measurement | None, turn: Measurement) -> Measurement:
    if turn.latency_s is None:
        return turn
    runs_s = (*(before.runs_s if before else ()), turn.latency_s)
    return replace(turn, latency_s=statistics.median(runs_s), runs_s=runs_s)


def _is_faster(measurement: Measurement, best_latency_s: float | None) -> bool:
    return measurement.latency_s is not None and (best_latency_s is None or measurement.latency_s < best_latency_s)
