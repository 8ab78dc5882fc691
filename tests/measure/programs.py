"""A small task, and traces of it that tests can tell apart."""

from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.measure import MeasureOptions, Measurer
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task

SIZE = 4096
BAD = Trace()  # the compilers in `compilers` do their worst on a trace without steps


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


def measurer(compiler: str | None = None, **options: float) -> Measurer:
    """A measurer of the task whose candidates go through a function of `compilers`."""
    chosen = MeasureOptions(num_builders=2, **options)  # type: ignore[arg-type]
    if compiler is not None:
        chosen = MeasureOptions(num_builders=2, compiler=f"tests.measure.compilers:{compiler}", **options)  # type: ignore[arg-type]
    return Measurer(scale_task(), Target.native(), 2, chosen)
