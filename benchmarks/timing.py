"""How the benchmarks time, in words for the tables, and for how long; the turns are in `tilewright.peers`."""

from __future__ import annotations

from dataclasses import dataclass

METHOD = (
    "Each round gives every contestant one turn: with several threads a rest until those of the others sleep, then an "
    "untimed call, then calls for about 10 ms, whose mean is the turn's time. Speeds are from the median turn. A ratio "
    "is the median over the rounds of (our speed / the peer's speed), against the peer whose median turn is fastest."
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure: `rounds` of interleaved turns, `builds` of every kernel whose compile time is measured."""

    rounds: int = 40
    builds: int = 15
