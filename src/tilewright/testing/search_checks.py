"""What every search strategy must do. A strategy's tests subclass `SearchChecks` and say how to make the strategy.

```python
class TestMySearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return MySearch(option=3)
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from tilewright import te
from tilewright.schedule.steps import ReorderStep, UnrollStep, VectorizeStep
from tilewright.search import Scorer, SearchStrategy
from tilewright.space import (
    Candidate,
    Decision,
    Population,
    Sketch,
    SpaceOptions,
    TileKnob,
    as_programs,
    derive,
    open_split,
)
from tilewright.target import Target

_MAX_ROUNDS = 20


def near_the_middle(population: Population) -> npt.NDArray[np.float64]:
    """Scores that are the higher the nearer the choices are to the middle of each table."""
    middles = np.asarray([knob.cardinality / 2 for knob in population.sketch.knobs])
    scores: npt.NDArray[np.float64] = -(np.abs(population.rows - middles) / middles).sum(axis=1)
    return scores


def all_alike(population: Population) -> npt.NDArray[np.float64]:
    return np.zeros(len(population))


class SearchChecks(ABC):
    """The conformance checks; `make` gives a new strategy each time, always with the same options."""

    target: ClassVar[Target] = Target.parse("llvm -mcpu=haswell")

    @abstractmethod
    def make(self) -> SearchStrategy: ...

    def begin(self, sketches: Sequence[Sketch], scorer: Scorer, seed: int) -> SearchStrategy:
        return self.make().begin(sketches, scorer, self.target, seed)

    def test_searches_of_one_strategy_know_nothing_of_each_other(self) -> None:
        strategy, sketches = self.make(), large_space(self.target)
        first, second = (strategy.begin(sketches, near_the_middle, self.target, seed=1) for _ in range(2))
        found = first.ask(8)
        first.tell(found, [1e-3] * 8)
        assert second.ask(8) == found

    @pytest.mark.parametrize("scorer", [near_the_middle, all_alike])
    def test_it_gives_as_many_as_asked_and_none_twice(self, scorer: Scorer) -> None:
        search = self.begin(large_space(self.target), scorer, seed=1)
        found = [candidate for n in (16, 1, 0, 7, 16) for candidate in search.ask(n)]
        assert len(found) == len(set(found)) == 40

    def test_what_is_the_same_program_is_given_once(self) -> None:
        search = self.begin(large_space(self.target), all_alike, seed=1)
        first = search.ask(24)
        search.tell(first, [1.0 + place for place in range(len(first))])
        found = [*first, *search.ask(24)]
        assert len(set(as_programs(found))) == len(found) == 48

    def test_candidates_are_legal_ones_of_the_sketches(self) -> None:
        sketches = large_space(self.target)
        for candidate in self.begin(sketches, near_the_middle, seed=1).ask(32):
            assert candidate.sketch in sketches
            assert Population.of([candidate]).legal(self.target).all()

    def test_the_same_seed_gives_the_same_candidates(self) -> None:
        sketches = large_space(self.target)
        assert self._rounds(sketches, seed=7) == self._rounds(sketches, seed=7)

    def _rounds(self, sketches: list[Sketch], seed: int) -> list[Candidate]:
        search = self.begin(sketches, near_the_middle, seed)
        first = search.ask(8)
        search.tell(first, [1.0 + n if n % 3 else None for n in range(8)])
        return first + search.ask(8)

    def test_what_was_told_is_not_given(self) -> None:
        sketches = large_space(self.target)
        told = self.begin(sketches, near_the_middle, seed=3).ask(32)
        search = self.begin(sketches, near_the_middle, seed=3)
        search.tell(told, [None] * 32)
        assert not set(told) & set(search.ask(32))

    @pytest.mark.parametrize("latency_s", [None, float("inf"), 1e-3])
    def test_it_goes_on_when_all_fail_and_when_all_are_alike(self, latency_s: float | None) -> None:
        search = self.begin(large_space(self.target), near_the_middle, seed=1)
        for _ in range(3):
            found = search.ask(8)
            assert len(found) == 8
            search.tell(found, [latency_s] * 8, [[] if latency_s is None else [latency_s] * 3] * 8)

    def test_rounds_may_overlap(self) -> None:
        search = self.begin(large_space(self.target), near_the_middle, seed=1)
        under_way = search.ask(8)
        found = list(under_way)
        for _ in range(3):
            more = search.ask(8)
            search.tell(under_way, [1e-3 + number * 1e-5 for number in range(8)])
            found += more
            under_way = more
        assert len(set(found)) == 32

    @pytest.mark.parametrize("latency_s", [None, 1e-3])
    def test_a_space_of_one_program_is_given_once(self, latency_s: float | None) -> None:
        (sketch,) = single_program(self.target)
        search = self.begin([sketch], near_the_middle, seed=1)
        assert search.ask(4) == [Candidate(sketch, ())]
        search.tell([Candidate(sketch, ())], [latency_s])
        assert search.ask(4) == []

    def test_a_small_space_comes_to_its_end(self) -> None:
        sketches = small_space(self.target)
        search = self.begin(sketches, near_the_middle, seed=1)
        found: list[Candidate] = []
        for _ in range(_MAX_ROUNDS):
            more = search.ask(4)
            search.tell(more, [1e-3] * len(more))
            found += more
        assert not more
        assert len(found) == len(set(found)) <= sum(sketch.cardinality for sketch in sketches)
        assert len(found) > 4

    def test_asking_for_more_than_there_is_gives_all(self) -> None:
        sketches = small_space(self.target)
        everything = {c for sketch in sketches for c in all_of(sketch) if Population.of([c]).legal(self.target).all()}
        search = self.begin(sketches, near_the_middle, seed=1)
        search.tell(search.ask(3), [1e-3, None, 2e-3])
        assert len(search.seen | set(search.ask(1000))) == len(everything) > 4
        assert search.ask(1) == []

    def test_sketches_may_have_other_knobs_or_none(self) -> None:
        sketches = unequal_sketches(self.target)
        search = self.begin(sketches, all_alike, seed=1)
        found: set[Candidate] = set()
        for _ in range(6):
            more = search.ask(8)
            assert all(Population.of([candidate]).legal(self.target).all() for candidate in more)
            assert not found & set(more)
            found.update(more)
            search.tell(more, [1e-3 + sum(candidate.row) * 1e-5 for candidate in more])
        assert len(found) == 48
        assert {candidate.sketch for candidate in found} == set(sketches)

    def test_a_space_without_legal_programs_has_none_to_give(self) -> None:
        assert self.begin([without_legal_programs(self.target)], near_the_middle, seed=1).ask(4) == []

    def test_a_sketch_that_is_added_is_searched(self) -> None:
        search = self.begin(single_program(self.target), near_the_middle, seed=1)
        search.tell(search.ask(1), [1e-3])
        sketch = large_space(self.target)[0]
        search.add(sketch)
        assert [candidate.sketch for candidate in search.ask(4)] == [sketch] * 4

    def test_it_says_whether_it_uses_scores(self) -> None:
        asked: list[int] = []

        def scorer(population: Population) -> npt.NDArray[np.float64]:
            asked.append(len(population))
            return near_the_middle(population)

        search = self.begin(large_space(self.target), scorer, seed=1)
        search.tell(search.ask(4), [1e-3] * 4)
        search.ask(4)
        assert bool(asked) == search.uses_scores


def large_space(target: Target) -> list[Sketch]:
    """Several sketches with many candidates each."""
    a, b = te.placeholder((96, 128), name="A"), te.placeholder((128, 64), name="B")
    k = te.reduce_axis(128, name="k")
    c = te.compute((96, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return derive(te.Task([a, b], c), SpaceOptions(target, threads=2))


def small_space(target: Target) -> list[Sketch]:
    """A few programs."""
    x, k = te.placeholder((4096,), name="X"), te.reduce_axis(4096, name="k")
    return derive(te.Task([x], te.compute((), lambda: te.sum(x[k], axis=k), name="S")), SpaceOptions(target, threads=2))


def single_program(target: Target) -> list[Sketch]:
    """One sketch without knobs."""
    x = te.placeholder((4, 4), name="X")
    task = te.Task([x], te.compute((4, 4), lambda i, j: x[i, j] + 1.0, name="Y"))
    return derive(task, SpaceOptions(target, threads=2))


def all_of(sketch: Sketch) -> list[Candidate]:
    """Every candidate, legal or not."""
    return [Candidate(sketch, row) for row in product(*(range(knob.cardinality) for knob in sketch.knobs))]


def unequal_sketches(target: Target) -> list[Sketch]:
    """Of one task: a sketch of some knobs, one of a knob, one of a knob that has one choice, and one without."""
    first = large_space(target)[0]
    splits = [(open_split("C", "i", Decision(TileKnob("C.i", sizes))),) for sizes in ([1, 2, 3, 4, 6, 8, 12, 16], [8])]
    return [first, *(Sketch(first.task, steps, first.options) for steps in (*splits, ()))]


def without_legal_programs(target: Target) -> Sketch:
    """A sketch whose register tiles are all too large."""
    x, w = te.placeholder((256, 32), name="X"), te.placeholder((32, 64), name="W")
    k = te.reduce_axis(32, name="k")
    task = te.Task([x, w], te.compute((256, 64), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="C"))
    steps = (
        open_split("C", "i", Decision(TileKnob("C.i", [64, 128, 256]))),
        ReorderStep("C", ("i.0", "k", "i.1", "j")),
        UnrollStep("C", "i.1"),
        VectorizeStep("C", "j"),
    )
    return Sketch(task, steps, SpaceOptions(target, threads=2))
