"""Which of the fastest programs is the best, and how fast it is: said by different measurements.

The least of many noisy measurements is too small. So the finalists are measured again in turns: every other turn says
which is the best, and the turns in between, which had no part in that, say how long it takes.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tilewright.measure import Measurement
from tilewright.records import Record

# Runs that take so much longer than others of the same program fell into a moment when something else ran, as on
# machines that are shared: for a second or two a program takes twice as long. A trial that was the best is only some
# percent too fast.
_DISTURBED = 1.25


@dataclass(frozen=True, slots=True)
class Final:
    """What came of a finalist: `compared_s` chooses, and `measurement` has only runs that do not."""

    compared_s: float | None
    measurement: Measurement


def final_of(turns: Measurement) -> Final:
    """The two halves of a comparison, for one of its programs.

    >>> final = final_of(Measurement("OK", 1.15, (1.0, 1.3, 1.1, 1.2)))
    >>> final.compared_s, final.measurement.latency_s, final.measurement.runs_s
    (1.05, 1.25, (1.3, 1.2))
    """
    if turns.latency_s is None:
        return Final(None, turns)
    choosing_s, telling_s = turns.runs_s[::2], turns.runs_s[1::2]
    told = replace(turns, latency_s=_undisturbed_median(telling_s), runs_s=telling_s)
    return Final(_undisturbed_median(choosing_s), told)


def _undisturbed_median(runs_s: Sequence[float]) -> float:
    """The median of those that nothing disturbed.

    >>> _undisturbed_median([1.0, 2.0, 2.1])
    1.0
    """
    return statistics.median(run_s for run_s in runs_s if run_s <= _DISTURBED * min(runs_s))


def fastest_first(turns: Sequence[Measurement]) -> list[int]:
    """The positions of those that ran, the fastest over all turns first."""
    ran = [(result.latency_s, position) for position, result in enumerate(turns) if result.latency_s is not None]
    return [position for _, position in sorted(ran)]


def is_disturbed(best: Record, trials: Iterable[Record]) -> bool:
    """Whether a final took so much longer than the program's own trial that it says little, and is to be repeated."""
    trial_s = next((trial.latency_s for trial in trials if trial.trace == best.trace), None)
    return trial_s is not None and best.latency_s is not None and best.latency_s > _DISTURBED * trial_s
