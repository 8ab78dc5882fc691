"""Which of two compiled models of one network is the faster one, as they run here.

Programs are tuned alone. In the network their data may be elsewhere, and a program that was the best of its task can
lose to the untuned one; so both networks are run, in turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.runtime import Timing, interleave

if TYPE_CHECKING:
    from tilewright.deploy.session import Session

_ROUNDS = 9
# A smaller difference is noise, and the tuned programs stay.
_CLEARLY_SLOWER = 1.03


@dataclass(frozen=True, slots=True)
class Choice:
    """Times of the untuned and the tuned network, taken in turns.

    >>> Choice(Timing(1, (1.0, 1.0, 1.2)), Timing(1, (1.1, 1.1, 0.6))).takes_tuned
    False
    """

    untuned: Timing
    tuned: Timing

    @property
    def takes_tuned(self) -> bool:
        """Whether the tuned network is not clearly slower, by the median over the turns."""
        turns = zip(self.tuned.samples_s, self.untuned.samples_s, strict=True)
        return statistics.median(tuned_s / untuned_s for tuned_s, untuned_s in turns) <= _CLEARLY_SLOWER


def compare(untuned: Session, tuned: Session, inputs: Mapping[str, Any]) -> Choice:
    """Run both on the same inputs in turns."""
    calls = {"untuned": partial(untuned.run, None, inputs), "tuned": partial(tuned.run, None, inputs)}
    timings = interleave(calls, rounds=_ROUNDS)
    return Choice(timings["untuned"], timings["tuned"])
