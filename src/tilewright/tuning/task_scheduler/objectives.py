"""What tuning is for: a function of the latencies of the networks, which is to become small."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright.errors import UsageError
from tilewright.tuning.task_scheduler.network import Network

Objective: TypeAlias = Callable[[Sequence[float]], float]
"""Of the latency of each network in seconds, in their order."""

OBJECTIVES = ("f1", "f2", "f3", "f4")

_STEP = 1e-4


def find_objective(objective: str | Objective, networks: Sequence[Network]) -> Objective:
    """The function that a name stands for, or the function itself.

    f1 is the sum of the latencies, f2 counts a network only as long as it is above its required latency, f3 is minus
    the geometric mean of the speed-ups over the reference latencies. f4 is f1; its tasks stop early.
    """
    if not isinstance(objective, str):
        return objective
    if objective in ("f1", "f4"):
        return math.fsum
    if objective == "f2":
        required_s = [network.required_latency_s or 0.0 for network in networks]
        if not any(required_s):
            raise UsageError("the objective f2 needs the required_latency_s of a network; give it, or use f1")
        return lambda latencies_s: math.fsum(map(max, latencies_s, required_s))
    if objective == "f3":
        reference_s = [_reference_s(network) for network in networks]
        return lambda latencies_s: (
            -_geometric_mean([r / max(s, 1e-12) for r, s in zip(reference_s, latencies_s, strict=True)])
        )
    raise UsageError(f"unknown objective {objective!r}; use one of: {', '.join(OBJECTIVES)}, or a function")


def slopes(objective: Objective, latencies_s: Sequence[float]) -> list[float]:
    """By how much the objective falls for each second that a network becomes faster."""
    now = objective(latencies_s)
    found: list[float] = []
    for position, latency_s in enumerate(latencies_s):
        step_s = _STEP * latency_s
        faster = [*latencies_s[:position], latency_s - step_s, *latencies_s[position + 1 :]]
        found.append((now - objective(faster)) / step_s if step_s > 0 else 0.0)
    return found


def _reference_s(network: Network) -> float:
    if network.reference_latency_s is None:
        raise UsageError(
            f"the objective f3 compares with the reference_latency_s of each network; {network.name} has none"
        )
    return network.reference_latency_s


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
