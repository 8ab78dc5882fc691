"""`Measurer`: traces in, measurements out. Start here; then `building`, `running`, and the processes behind them."""

from __future__ import annotations

import math
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
from tilewright.measure.pace import Pace
from tilewright.measure.processes import ForkServer
from tilewright.measure.running import Runner
from tilewright.schedule import Trace
from tilewright.target import Target, default_threads
from tilewright.te import Task

# So many candidates are timed between two runs of the reference.
_REFERENCE_EVERY = 8
# So often the first candidate of all is measured again.
_FIRST_REPEATS = 2


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
        pace: Pace | None = None,
    ) -> list[Measurement]:
        """One measurement for each trace.

        `best_latency_s` is the best so far, at a pace of one: candidates much slower are timed briefly, and outputs are
        checked where a candidate could beat it or comes near. `on_result` is called with the trace's index as soon as a
        measurement is there: first for those that do not compile, then in the order of the traces.

        The reference of `pace` is timed before the first of them and every now and then. A candidate that seems to be
        the best is timed once more, right after the reference, and only that counts: the machine may have sped up.
        Without a best the first candidate is measured several times, and the fastest time counts: others are compared
        with it.
        """
        report = on_result or (lambda index, measurement: None)
        results: dict[int, Measurement] = {}
        with self._workers_discarded_on_error():
            asked = [*traces] if pace is None else [*traces, pace.reference]
            built = self._build(asked, results, lambda index, m: report(index, m) if index < len(traces) else None)
            reference = built.pop(len(traces), None)
            for position, index in enumerate(sorted(built)):
                if position % _REFERENCE_EVERY == 0:
                    self._time_reference(reference, pace)
                measurement = self._run(built[index], best_latency_s, pace)
                if reference is not None and _is_faster(measurement, best_latency_s):
                    self._time_reference(reference, pace)
                    measurement = self._run(built[index], best_latency_s, pace)
                if _is_faster(measurement, best_latency_s):
                    best_latency_s = measurement.steady_latency_s
                results[index] = measurement
                report(index, measurement)
        return [results[index] for index in range(len(traces))]

    def _time_reference(self, built: Built | None, pace: Pace | None) -> None:
        if built is not None and pace is not None:
            latency_s = self._runner.run(built, None).latency_s
            if latency_s is not None:
                pace.see(latency_s)

    def _run(self, built: Built, best_latency_s: float | None, pace: Pace | None) -> Measurement:
        if best_latency_s is None:
            return self._run_first(built)
        at = 1.0 if pace is None else pace.value
        return replace(self._runner.run(built, best_latency_s * at), pace=at)

    def _run_first(self, built: Built) -> Measurement:
        """The fastest of several, since others are compared with it."""
        runs = []
        for _ in range(1 + _FIRST_REPEATS):
            runs.append(self._runner.run(built, None))
            if runs[-1].latency_s is None:
                return runs[-1]
        return min(runs, key=lambda run: run.steady_latency_s)

    def compare(self, traces: Sequence[Trace], rounds: int = 5) -> list[Measurement]:
        """Measure finalists against each other: in turns, fully, each output checked in each round.

        What disturbs the machine for a moment then hits all of them, and some programs suffer less from it: all samples
        count, whatever state the machine is in. `latency_s` is the median over all rounds.
        """
        results: dict[int, Measurement] = {}
        with self._workers_discarded_on_error():
            built = self._build(traces, results, lambda index, measurement: None)
            for _ in range(rounds):
                for index in sorted(built):
                    before = results.get(index)
                    if before is None or before.status == OK:
                        results[index] = _joined(before, self._runner.run(built[index], None, in_any_state=True))
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


def _joined(before: Measurement | None, now: Measurement) -> Measurement:
    if before is None or now.status != OK:
        return now
    runs_s = before.runs_s + now.runs_s
    return replace(now, latency_s=statistics.median(runs_s), runs_s=runs_s)


def _is_faster(measurement: Measurement, best_latency_s: float | None) -> bool:
    return measurement.steady_latency_s < (math.inf if best_latency_s is None else best_latency_s)
