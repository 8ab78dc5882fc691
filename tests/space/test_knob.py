"""Knobs of each kind: samples, neighbours and points of whole populations."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import ScheduleError
from tilewright.space import Decision, Knob, TileKnob, UnrollKnob, VectorKnob
from tilewright.space.tile_tables import exact_tilings, tilings

KNOBS = [
    TileKnob("tiles", tilings(56, 3, (1, 2, 4, 6, 8))),
    TileKnob("sizes", exact_tilings(36, 1)),
    TileKnob("one tile", [[2, 7]]),
    VectorKnob("widths", [8, 16, 32, 64]),
    VectorKnob("one width", [5]),
    UnrollKnob("steps", (0, 16, 64)),
]


def all_choices(knob: Knob, times: int = 1) -> np.ndarray:
    return np.tile(np.arange(knob.cardinality), times)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
class TestEveryKind:
    def test_samples_are_choices_and_all_of_them_turn_up(self, knob: Knob) -> None:
        chosen = knob.sample(np.random.default_rng(0), 20 * knob.cardinality)
        assert set(chosen.tolist()) == set(range(knob.cardinality))

    def test_plain_samples_are_plain_choices(self, knob: Knob) -> None:
        chosen = knob.sample_plain(np.random.default_rng(0), 20 * knob.cardinality)
        assert set(chosen.tolist()) == set(knob.plain_choices.tolist())

    def test_a_neighbour_is_another_choice_if_there_is_another(self, knob: Knob) -> None:
        choices = all_choices(knob)
        found = knob.neighbours(np.random.default_rng(0), choices)
        assert ((found >= 0) & (found < knob.cardinality)).all()
        assert (found != choices).all() == (knob.cardinality > 1)

    def test_all_neighbours_are_those_that_are_drawn(self, knob: Knob) -> None:
        for choice in (0, knob.cardinality - 1):
            drawn = knob.neighbours(np.random.default_rng(0), np.full(1000, choice))
            assert set(knob.all_neighbours(choice).tolist()) == set(drawn.tolist()) - {choice}

    def test_neighbours_lie_no_further_than_other_choices_do_on_average(self, knob: Knob) -> None:
        choices = all_choices(knob, times=100)
        neighbours = knob.neighbours(np.random.default_rng(0), choices)
        near = np.abs(knob.encode(neighbours) - knob.encode(choices)).sum(axis=1)
        points = knob.encode(all_choices(knob))
        distances = np.abs(points[:, None] - points).sum(axis=2)
        assert near.mean() <= 1.1 * distances.sum() / max(1, np.count_nonzero(distances))

    def test_any_choice_can_be_reached_by_neighbours(self, knob: Knob) -> None:
        rng = np.random.default_rng(0)
        reached = np.zeros(1000, np.int64)
        seen = {0}
        for _ in range(60):
            reached = knob.neighbours(rng, reached)
            seen.update(reached.tolist())
        assert seen == set(range(knob.cardinality))

    def test_points_are_one_for_each_choice_and_differ(self, knob: Knob) -> None:
        points = knob.encode(all_choices(knob))
        assert points.shape == knob.table.shape
        assert len(np.unique(points, axis=0)) == knob.cardinality

    def test_nobody_has_no_choices(self, knob: Knob) -> None:
        nothing = np.zeros(0, np.int64)
        rng = np.random.default_rng(0)
        assert len(knob.sample(rng, 0)) == len(knob.neighbours(rng, nothing)) == len(knob.encode(nothing)) == 0


def test_a_factor_moved_from_one_level_to_another_makes_a_neighbour() -> None:
    knob = TileKnob("C.i", tilings(64, 3, (4, 8)))
    start = int(np.flatnonzero((knob.table == (2, 4, 8)).all(axis=1))[0])
    found = knob.table[np.unique(knob.neighbours(np.random.default_rng(0), np.full(500, start)))]
    assert {(4, 2, 8), (1, 8, 8), (2, 8, 4), (4, 4, 4), (2, 2, 8)} <= set(map(tuple, found.tolist()))
    assert (1, 1, 8) not in set(map(tuple, found.tolist())), "two steps down"


def test_plain_tilings_cut_a_loop_at_most_once_beside_the_innermost_tile() -> None:
    knob = TileKnob("C.i", tilings(1024, 3, (1, 6, 8)))
    chosen = knob.table[knob.sample_plain(np.random.default_rng(0), 500)]
    assert (np.count_nonzero(chosen[:, :2] > 1, axis=1) <= 1).all()
    assert (chosen == (1, 171, 6)).all(axis=1).any()


def test_a_table_stays_as_it_is() -> None:
    sizes = np.asarray([8, 16])
    knob = VectorKnob("S.j", sizes)
    sizes[0] = 4
    assert knob.table.tolist() == [[8], [16]]
    with pytest.raises(ValueError, match="read-only"):
        knob.table[0] = 4


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (), (2, 2, 2)])
def test_a_knob_without_a_row_for_each_choice_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ScheduleError, match=r"a row of numbers for each choice.*that of C\.i has the shape \["):
        TileKnob("C.i", np.ones(shape, np.int64))


def test_a_decision_is_the_product_of_some_columns() -> None:
    knob = TileKnob("C.i", [[1, 2, 3], [4, 5, 6]])
    choices = np.asarray([1, 0, 1])
    assert Decision(knob).values(choices).tolist() == [4, 1, 4]
    assert Decision(knob, (1, 2)).values(choices).tolist() == [30, 6, 30]
    assert str(Decision(knob, (1, 2))) == "C.i[1, 2]"


def test_knobs_with_the_same_name_and_table_are_two_decisions() -> None:
    assert VectorKnob("S.j", [8]) != VectorKnob("S.j", [8])
