"""Grid search: everything, in order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.search.spaces import SKETCHES, TARGET, no_scores, sketch_of
from tilewright.search import GridSearch, grid
from tilewright.space import Population


def test_rows_come_in_order_and_one_of_each_sketch_in_turn() -> None:
    first, second = sketch_of([1, 2], [1, 2]), sketch_of([1, 2, 4])
    search = GridSearch().begin([first, second], no_scores, TARGET)
    found = [(candidate.sketch, candidate.row) for n in (1, 4, 10) for candidate in search.ask(n)]
    assert found == [
        (first, (0, 0)),
        (second, (0,)),
        (first, (1, 0)),
        (second, (1,)),
        (first, (0, 1)),
        (second, (2,)),
        (first, (1, 1)),
    ]
    assert search.ask(1) == []


def test_all_that_is_legal_is_given_and_nothing_else() -> None:
    sketch = SKETCHES[0]
    search = GridSearch().begin([sketch], no_scores, TARGET)
    found = Population.of(search.ask(500))
    assert found.legal(TARGET).all()
    weights = np.cumprod([1, *(knob.cardinality for knob in sketch.knobs)])[:-1]
    numbers = found.rows @ weights
    assert (np.diff(numbers) > 0).all()
    between = np.arange(numbers[-1])
    rows = np.stack([between // w % knob.cardinality for w, knob in zip(weights, sketch.knobs, strict=True)], axis=1)
    assert Population(sketch, rows).legal(TARGET).sum() == 499


def test_what_was_told_is_passed_over() -> None:
    sketch = sketch_of([1, 2, 4, 8])
    search = GridSearch().begin([sketch], no_scores, TARGET)
    search.tell(list(sketch.sample(np.random.default_rng(0), 1)) + search.ask(1), [1e-3, None])
    rest = search.ask(9)
    assert len(search.seen) == 4
    assert [candidate.row for candidate in rest] == sorted(candidate.row for candidate in rest)


def test_a_space_of_more_rows_than_can_be_counted_through_is_begun_at_once() -> None:
    sketch = sketch_of(*[range(1, 65)] * 8)
    assert sketch.cardinality > 10**14
    assert [candidate.row[:2] for candidate in GridSearch().begin([sketch], no_scores, TARGET).ask(3)] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]


def test_a_sketch_whose_rows_are_illegal_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "_MAX_ILLEGAL", 2**12)
    illegal, legal = sketch_of(*[range(1, 65)] * 8), sketch_of([1, 2])
    looked_at: list[int] = []

    def is_legal(population: Population, target: object) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        looked_at.append(len(population))
        return np.full(len(population), population.sketch is legal)

    monkeypatch.setattr(Population, "legal", is_legal)
    found = GridSearch().begin([illegal, legal], no_scores, TARGET).ask(9)
    assert [candidate.sketch for candidate in found] == [legal, legal]
    assert sum(looked_at) < 2**14
