"""What a case is: our kernel against its peers for a ratio of speeds, or alone against a limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.peers import Call
from benchmarks.references import Array
from benchmarks.timing import Plan


class WrongResultError(Exception):
    """A kernel did not compute what its reference computes; its speed means nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """Something to time, and the work (flop or bytes) that one call does."""

    call: Call
    work: float


@dataclass(frozen=True, slots=True)
class Contest:
    """Our kernel, which leaves its result in `out`, its peers, and the result that it must give."""

    ours: Run
    peers: Mapping[str, Run]
    out: Array
    expected: Array

    def check(self, name: str) -> None:
        """Run our kernel once and compare its result with the expected one."""
        self.out.fill(np.nan)
        self.ours.call()
        scale = np.abs(self.expected).max()
        error = np.abs(self.out - self.expected).max() / scale
        if not error < 1e-4:
            raise WrongResultError(f"{name}: the kernel's largest error is {error:.1e} of the largest value")


@dataclass(frozen=True, slots=True)
class RatioCase:
    """Our speed divided by the fastest peer's must reach `required`. `prepare` takes the number of threads."""

    name: str
    threads: int
    required: float
    unit: str
    prepare: Callable[[int], Contest]
    needs_torch: bool = False
    settle_s: float | None = None
    """How long each turn rests before it begins; as long as the one library asks for, unless there are several."""


@dataclass(frozen=True, slots=True)
class LimitCase:
    """The median of what `measure` returns, in `unit`, must not exceed `limit`."""

    name: str
    threads: int
    limit: float
    unit: str
    measure: Callable[[Plan], list[float]]


Case = RatioCase | LimitCase
