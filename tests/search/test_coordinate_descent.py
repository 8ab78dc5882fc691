"""Coordinate descent: along one knob at a time, by measurements that differ for certain."""

from __future__ import annotations

import numpy as np
import pytest

from tests.search.spaces import SKETCHES, TARGET, bowl, no_scores, sketch_of
from tilewright.search import CoordinateDescent, RandomSearch, SearchStrategy
from tilewright.search.significance import is_faster
from tilewright.space import Candidate

POWERS = [1, 2, 4, 8, 16, 32, 64]
SKETCH = sketch_of(POWERS, POWERS, POWERS)
CENTRE = Candidate(SKETCH, (3, 3, 3))


def begun(*told: tuple[Candidate, float]) -> CoordinateDescent:
    search = CoordinateDescent().begin([SKETCH], no_scores, TARGET, seed=1)
    search.tell([candidate for candidate, _ in told], [latency_s for _, latency_s in told])
    return search


def differing(first: Candidate, second: Candidate) -> list[int]:
    return [place for place, (a, b) in enumerate(zip(first.row, second.row, strict=True)) if a != b]


def test_it_asks_for_the_neighbours_of_the_best_along_one_knob_after_the_other() -> None:
    found = begun((CENTRE, 1e-3), (Candidate(SKETCH, (0, 0, 0)), 2e-3)).ask(6)
    knobs = [differing(candidate, CENTRE) for candidate in found]
    assert all(len(knob) == 1 for knob in knobs)
    assert [knobs[0], knobs[2], knobs[4]] == [knobs[1], knobs[3], knobs[5]]
    assert {candidate.row[knob] for candidate, (knob,) in zip(found, knobs, strict=True)} == {2, 4}


def test_it_goes_on_from_a_neighbour_that_is_faster() -> None:
    search = begun((CENTRE, 1e-3))
    found = search.ask(3)
    search.tell(found, [1e-3, 0.5e-3, 1.1e-3])
    assert all(len(differing(candidate, found[1])) == 1 for candidate in search.ask(4))


def test_it_stays_where_a_neighbour_only_seems_faster() -> None:
    search = begun((CENTRE, 1e-3))
    found = search.ask(3)
    search.tell(found, [0.99e-3, 1e-3, 1e-3])
    assert all(len(differing(candidate, CENTRE)) == 1 for candidate in search.ask(3))


@pytest.mark.parametrize(("runs_ms", "moves"), [([0.9, 0.91, 0.89], True), ([0.5, 1.5, 0.7], False)])
def test_single_runs_decide_where_they_are_told(runs_ms: list[float], moves: bool) -> None:
    search = CoordinateDescent().begin([SKETCH], no_scores, TARGET, seed=1)
    search.tell([CENTRE], [1e-3], [[1.0e-3, 1.01e-3, 0.99e-3]])
    (found,) = search.ask(1)
    search.tell([found], [0.9e-3], [[run * 1e-3 for run in runs_ms]])
    centre = found if moves else CENTRE
    assert all(len(differing(candidate, centre)) == 1 for candidate in search.ask(4))


def test_where_no_neighbour_is_faster_it_starts_elsewhere() -> None:
    search = begun((CENTRE, 1e-3))
    neighbours = search.ask(6)
    search.tell(neighbours, [1e-3 + number * 1e-5 for number in range(6)])
    starts = search.ask(4)
    assert len(starts) == 4
    assert all(len(differing(candidate, CENTRE)) > 1 for candidate in starts)
    search.tell(starts, [5e-3, 4e-3, None, 6e-3])
    assert all(len(differing(candidate, starts[1])) == 1 for candidate in search.ask(2))


def test_neighbours_that_are_not_told_yet_are_waited_for() -> None:
    search = begun((CENTRE, 1e-3))
    neighbours, others = search.ask(6), search.ask(2)
    search.tell(others, [2e-3, 3e-3])
    search.tell(neighbours, [1e-3] * 5 + [0.5e-3])
    assert all(len(differing(candidate, neighbours[5])) == 1 for candidate in search.ask(3))


def test_failures_are_no_places_to_go() -> None:
    search = begun((CENTRE, 1e-3))
    search.tell(search.ask(3), [None, float("inf"), None])
    assert all(len(differing(candidate, CENTRE)) == 1 for candidate in search.ask(3))


def test_a_sketch_with_the_same_choices_is_a_neighbour() -> None:
    twin = sketch_of(POWERS, POWERS, POWERS)
    search = CoordinateDescent().begin([SKETCH, twin], no_scores, TARGET)
    search.tell([CENTRE], [1e-3])
    assert Candidate(twin, CENTRE.row) in search.ask(7)


def test_it_comes_to_the_best_of_a_bowl_sooner_than_random() -> None:
    def best_of(search: SearchStrategy) -> float:
        best = np.inf
        for _ in range(12):
            found = search.ask(12)
            search.tell(found, bowl(found))
            best = min([best, *bowl(found)])
        return best

    ours, random = (
        np.median([best_of(strategy.begin(SKETCHES, no_scores, TARGET, seed)) for seed in range(3)])
        for strategy in (CoordinateDescent(), RandomSearch())
    )
    assert ours < random


@pytest.mark.parametrize("seed", range(4))
def test_the_test_is_welchs(seed: int) -> None:
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(seed)
    verdicts = []
    for _ in range(200):
        first = rng.normal(1.0, rng.uniform(0.01, 0.1), rng.integers(2, 12))
        second = rng.normal(rng.uniform(1.0, 1.2), rng.uniform(0.01, 0.1), rng.integers(2, 12))
        p_value = ttest_ind(first, second, equal_var=False).pvalue
        if abs(p_value - 0.05) < 0.003:  # between the rows of the table
            continue
        verdicts.append(is_faster(first.tolist(), second.tolist()))
        assert verdicts[-1] == (p_value < 0.05 and first.mean() < second.mean())
    assert 0 < sum(verdicts) < len(verdicts)


def test_runs_without_spread_are_compared_as_they_are() -> None:
    assert is_faster([1.0, 1.0], [1.1, 1.1])
    assert not is_faster([1.0, 1.0], [1.0, 1.0])
    assert not is_faster([1.1, 1.1], [1.0, 1.0])
