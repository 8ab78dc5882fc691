"""`Job`: a program on its way through the fleet, or several that are compared."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Form: TypeAlias = "dict[str, Any]"


@dataclass(slots=True, eq=False)
class Job:
    """A program to measure, or several to compare with each other; `tickets` has a number for each."""

    tickets: tuple[int, ...]
    setup: str
    traces: tuple[str, ...]
    best: Best
    turns: int | None = None
    built: list[Form | None] = field(default_factory=list)
    told: set[int] = field(default_factory=set)
    num_attempts: int = 0
    is_open: bool = True


@dataclass(slots=True)
class Best:
    """The best latency of the programs of a batch, and what was known before.

    By the `batch`, a name that no other has, a machine knows the best of what it has measured itself in the meantime.
    """

    latency_s: float | None
    batch: str = ""


def go_together(a: Job, b: Job) -> bool:
    """Whether a machine may be given both at once."""
    return a.setup == b.setup and a.turns is None and b.turns is None and not a.num_attempts and not b.num_attempts


def jobs_of(message: Form) -> list[Job]:
    """The jobs of a message that submits a batch: one for each program, or one for all of a comparison."""
    best = Best(message["best_latency_s"], uuid.uuid4().hex)
    tickets, traces, setup = message["tickets"], [json.dumps(trace) for trace in message["traces"]], message["setup"]
    if message["turns"] is not None:
        return [Job(tuple(tickets), setup, tuple(traces), best, message["turns"])] if tickets else []
    return [Job((ticket,), setup, (trace,), best) for ticket, trace in zip(tickets, traces, strict=True)]
