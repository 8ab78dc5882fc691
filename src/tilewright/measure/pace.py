"""How fast the machine is at the moment, by one program that is timed again and again."""

from __future__ import annotations

from collections import deque

from tilewright.schedule import Trace

# The fastest of so many last runs counts. Others may be disturbed, and a candidate must not seem fast because the
# reference was slow by chance.
_NUM_RUNS = 3


class Pace:
    """`value` is how many times as long as at first, in `latency_s`, the reference takes now."""

    def __init__(self, reference: Trace, latency_s: float) -> None:
        self.reference = reference
        self.latency_s = latency_s
        self._runs_s: deque[float] = deque(maxlen=_NUM_RUNS)

    @property
    def value(self) -> float:
        return min(self._runs_s) / self.latency_s if self._runs_s else 1.0

    def see(self, latency_s: float) -> None:
        """Take in how long the reference took."""
        self._runs_s.append(latency_s)

    def settle(self, latency_s: float) -> None:
        """The same after many runs, so that those before do not matter any more."""
        self._runs_s.clear()
        self.see(latency_s)
