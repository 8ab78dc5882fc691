"""Coordinate descent on what was measured: from the best program along one knob at a time, without a cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tilewright.search.base import SearchStrategy, Told
from tilewright.search.operators import mutate
from tilewright.search.options import share
from tilewright.search.points import Points, kinds
from tilewright.search.significance import is_faster
from tilewright.space import Candidate, Population, Sketch

_NUM_MUTATIONS = 4  # of a new start, so that it is not where the last descent was
_STARTS_FACTOR = 4


@dataclass(frozen=True, slots=True)
class _Measured:
    """A program that ran."""

    candidate: Candidate
    latency_s: float
    runs_s: tuple[float, ...]


@dataclass(kw_only=True, eq=False)
class CoordinateDescent(SearchStrategy):
    """Droplet: all neighbours of the centre along a knob, then along the next, until one is faster: the new centre.

    Faster is what Welch's t-test finds so at 5 %, or, where single runs are not told, by more than `noise`. A round is
    filled with the neighbours along the next knobs before those of the first are told. Sketches with the same choices
    count as neighbours too. It starts from the best that is told, or with plain candidates; where no neighbour is
    faster, it starts again from the best with some knobs changed.
    """

    uses_scores: ClassVar[bool] = False

    noise: float = share(0.02)

    _centre: _Measured | None = field(init=False, repr=False)
    _ahead: list[Candidate] = field(init=False, repr=False)  # neighbours of the centre, the last comes first
    _open: set[Candidate] = field(init=False, repr=False)  # neighbours that were given and not told

    def prepare(self) -> None:
        self._leave()

    def ask(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        while self._ahead and len(found) < n:
            found += self.take_new([self._ahead.pop()], 1)
        self._open.update(found)
        return found + self._starts(n - len(found))

    def learn(self, told: Sequence[Told]) -> None:
        self._open.difference_update(each.candidate for each in told)
        ran = [_Measured(each.candidate, each.latency_s, each.runs_s) for each in told if each.latency_s is not None]
        fastest = min(ran, key=lambda measured: measured.latency_s, default=None)
        if fastest is not None and self._is_better(fastest):
            self._go_to(fastest)
        elif not self._ahead and not self._open:
            self._leave()

    def _is_better(self, found: _Measured) -> bool:
        if self._centre is None:
            return True
        if min(len(found.runs_s), len(self._centre.runs_s)) > 1:
            return is_faster(found.runs_s, self._centre.runs_s)
        return found.latency_s < (1 - self.noise) * self._centre.latency_s

    def _go_to(self, centre: _Measured) -> None:
        self._centre = centre
        self._ahead = self._neighbours(centre.candidate)[::-1]
        self._open = set()

    def _leave(self) -> None:
        self._centre = None
        self._ahead = []
        self._open = set()

    def _neighbours(self, centre: Candidate) -> list[Candidate]:
        """Those that are new and legal, along one knob after the other in random order; the sketch counts as one."""
        along_all = [self._along(centre, position) for position in range(len(centre.row))]
        along_all.append(self._in_other_sketches(centre))
        order = self.rng.permutation(len(along_all)).tolist()
        near = Points.of(self.sketches, [candidate for position in order for candidate in along_all[position]])
        return [candidate for candidate in near[near.legal(self.target)].candidates() if candidate not in self.seen]

    def _along(self, centre: Candidate, position: int) -> list[Candidate]:
        """The neighbours along one knob, in random order."""
        near = self.rng.permutation(centre.sketch.knobs[position].all_neighbours(centre.row[position]))
        before, after = centre.row[:position], centre.row[position + 1 :]
        return [Candidate(centre.sketch, (*before, choice, *after)) for choice in near.tolist()]

    def _in_other_sketches(self, centre: Candidate) -> list[Candidate]:
        kind_of = kinds(self.sketches)
        own = kind_of[self.sketches.index(centre.sketch)]
        others = [sketch for sketch, kind in zip(self.sketches, kind_of, strict=True) if kind == own]
        return [Candidate(other, centre.row) for other in others if other is not centre.sketch]

    def _starts(self, n: int) -> list[Candidate]:
        """Where to descend from next."""
        if n < 1:
            return []
        drawn = [self._changed_best(n)] if self.measured else [self._plain(sketch, n) for sketch in self.sketches]
        legal = [candidate for population in drawn for candidate in self.only_legal(population.unique())]
        found = self.take_new([legal[place] for place in self.rng.permutation(len(legal)).tolist()], n)
        return found + self.random_new(n - len(found))

    def _plain(self, sketch: Sketch, n: int) -> Population:
        return sketch.sample_plain(self.rng, _STARTS_FACTOR * n)

    def _changed_best(self, n: int) -> Population:
        changed = Population.of([self.measured[0][0]] * _STARTS_FACTOR * n)
        for _ in range(_NUM_MUTATIONS):
            changed = mutate(self.rng, changed)
        return changed
