"""A small task, and traces of it that tests can tell apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import tilewright as tw
from tilewright import te
from tilewright.measure import Batch, Measurement, MeasureOptions, Measurer
from tilewright.measure.local import LocalMeasurer
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task

SIZE = 4096
BAD = Trace()  # the compilers in `compilers` do their worst on a trace without steps


@cache
def scale_task() -> Task:
    a = te.placeholder((SIZE,), name="A")
    b = te.compute((SIZE,), lambda i: a[i] * 2.0 + 1.0, name="B")
    return tw.Task([a], [b], name="scale")


def good(factor: int = 16) -> Trace:
    s = tw.Schedule(scale_task())
    _, inner = s["B"].split("i", factor)
    s["B"].vectorize(inner)
    return Trace(s.steps)


def illegal() -> Trace:
    return Trace.from_json([{"step": "vectorize", "stage": "B", "arguments": ["no_such_loop"]}])


def measurer(compiler: str | None = None, **options: float) -> LocalMeasurer:
    """A measurer whose candidates go through a function of `compilers`."""
    chosen = MeasureOptions(num_builders=2, **options)  # type: ignore[arg-type]
    if compiler is not None:
        chosen = MeasureOptions(num_builders=2, compiler=f"tests.measure.local.compilers:{compiler}", **options)  # type: ignore[arg-type]
    return LocalMeasurer(Target.native(), 2, chosen)


def measure(
    m: Measurer,
    traces: Sequence[Trace],
    best_latency_s: float | None = None,
    on_result: Callable[[int, Measurement], None] = lambda index, measurement: None,
) -> list[Measurement]:
    """Measure programs of the task; `on_result` is called with the index of each as its result arrives."""
    tickets = m.submit(Batch(scale_task(), tuple(traces), best_latency_s=best_latency_s))
    found: dict[int, Measurement] = {}
    while len(found) < len(traces):
        ticket, measurement = m.next_result()
        found[tickets.index(ticket)] = measurement
        on_result(tickets.index(ticket), measurement)
    return [found[index] for index in range(len(traces))]
