"""What a template may ask for: splits, orders, annotations and choices, and what it is told of wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.space.templates.programs import OPTIONS, product, scaled
from tilewright.errors import ScheduleError, UsageError
from tilewright.space import Knobs, Sketch, template
from tilewright.space.waste import MAX_AXIS_WASTE

Function = Callable[[tw.Schedule, Knobs], object]


def sketches_of(function: Function, task: tw.Task | None = None) -> list[Sketch]:
    return template(function).sketches(task or product(), OPTIONS)


def table_of(task: tw.Task, num_parts: int, **options: Any) -> list[list[int]]:
    """Of a knob that cuts the first loop."""

    def cut(s: tw.Schedule, knobs: Knobs) -> None:
        (stage,) = s.active_stages
        stage.split(stage.loops[0], knobs.split("tile", stage.loops[0], num_parts, **options))

    (sketch,) = sketches_of(cut, task)
    table: list[list[int]] = sketch.knobs[0].table.tolist()
    return table


def test_factors_divide_the_loop_and_the_innermost_is_bounded() -> None:
    assert table_of(scaled(12), 2) == [[1], [2], [3], [4], [6], [12]]
    assert table_of(scaled(12), 2, max_inner=4) == [[1], [2], [3], [4]]
    rows = table_of(scaled(12), 3, max_inner=2)
    assert [1, 2] in rows
    assert [6, 2] in rows
    assert all(12 % (a * b) == 0 and b <= 2 for a, b in rows)


def test_any_factors_need_not_divide_but_waste_little() -> None:
    rows = [row[0] for row in table_of(scaled(197), 2, policy="any", max_inner=16)]
    assert {1, 5, 6, 8, 9, 10, 14, 16} <= set(rows)
    assert all(-(-197 // size) * size <= MAX_AXIS_WASTE * 197 for size in rows)


@pytest.mark.parametrize(("extent", "num_parts"), [(1, 2), (1, 4), (7, 5), (4096, 5), (5040, 6)])
@pytest.mark.parametrize("policy", ["factors", "any"])
def test_tables_of_any_loop_have_bounds(extent: int, num_parts: int, policy: str) -> None:
    rows = table_of(scaled(extent), num_parts, policy=policy)
    assert 1 <= len(rows) <= 4096
    assert all(len(row) == num_parts - 1 for row in rows)
    assert [1] * (num_parts - 1) in rows


def test_a_knob_with_one_choice_is_a_knob() -> None:
    def once(s: tw.Schedule, knobs: Knobs) -> None:
        i, _ = s["Y"].loops
        s["Y"].split(i, knobs.split("tile", i, 2))

    (sketch,) = sketches_of(once, scaled(1, 8))
    assert sketch.cardinality == 1
    assert sketch.sample(np.random.default_rng(0), 3).legal(OPTIONS.target).all()


def test_factors_are_taken_together_one_by_one_and_as_products() -> None:
    def cut(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, k = s["C"].loops
        rows = knobs.split("rows", i, 3)
        columns = knobs.split("columns", j, 4)
        assert len(s["C"].split(i, rows)) == 3
        assert len(s["C"].split(j, *columns)) == 4
        assert len(s["C"].split(k, columns[0] * columns[2])) == 2

    (sketch,) = sketches_of(cut)
    population = sketch.sample(np.random.default_rng(0), 5)
    for number in range(5):
        rows, columns = (knob.table[n].tolist() for knob, n in zip(sketch.knobs, population.rows[number], strict=True))
        factors = [step.arguments()[1] for step in population.trace(number).steps]
        assert factors == [rows, columns, [columns[0] * columns[2]]]


def test_numbers_of_two_knobs_do_not_multiply() -> None:
    def mixed(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, _ = s["C"].loops
        knobs.split("a", i, 2) * knobs.split("b", j, 2)

    with pytest.raises(UsageError, match="multiplied by another of its own knob"):
        sketches_of(mixed)


@pytest.mark.parametrize(
    "use",
    [
        bool,
        int,
        range,
        list,
        lambda rows: rows == 4,
        lambda rows: rows > 4,
        lambda rows: rows != 1,
        lambda rows: min(rows, 8),
        lambda rows: rows + 1,
        lambda rows: 64 // rows,
    ],
)
def test_a_number_that_is_open_is_no_number_of_python(use: Callable[[Any], object]) -> None:
    def asking(s: tw.Schedule, knobs: Knobs) -> None:
        use(knobs.split("rows", s["C"].loops[0], 2))

    with pytest.raises(UsageError, match=r"test_knobs.py:\d+: rows\[0\] is a number that is not known yet"):
        sketches_of(asking)


def test_loops_are_put_into_any_order_or_one_of_some() -> None:
    orders: list[str] = []

    def ordered(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, k = s["C"].loops
        s["C"].reorder(*knobs.reorder("order", [i, j, k]))  # once more, which is no step
        orders.append(" ".join(loop.name for loop in s["C"].loops))

    sketches = sketches_of(ordered)
    assert orders[:6] == ["i j k", "i k j", "j i k", "j k i", "k i j", "k j i"]
    assert [len(sketch.steps) for sketch in sketches] == [0, 1, 1, 1, 1, 1]

    def some(s: tw.Schedule, knobs: Knobs) -> None:
        i, _, k = s["C"].loops
        knobs.reorder("order", [i, k], among=[(k, i), ("i", "k")])

    assert [sketch.name for sketch in sketches_of(some)] == ["some order=k i", "some order=i k"]


def test_annotations_are_made_and_returned() -> None:
    def annotated(s: tw.Schedule, knobs: Knobs) -> None:
        i, j = s["Y"].loops
        kinds = knobs.annotate("how", [i, j])
        assert [loop.annotation.replace("serial", "none") for loop in (i, j)] == list(kinds)

    names = [sketch.name for sketch in sketches_of(annotated, scaled(4, 8))]
    assert len(names) == 8
    assert "annotated how.i0=unroll, how.i1=vectorize" in names


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s, k: [k.choice("a", [1]), k.choice("a", [1])], "two knobs are called 'a'"),
        (lambda s, k: [k.split("a", s["C"].loops[0], 2), k.choice("a", [1])], "two knobs are called 'a'"),
        (lambda s, k: k.choice("", [1]), "the name of a knob is ''"),
        (lambda s, k: k.choice(3, [1]), "the name of a knob is 3"),
        (lambda s, k: k.choice("a", []), "values of the knob a is \\[\\]; it must be a list of at least one"),
        (lambda s, k: k.choice("a", "text"), "values of the knob a is 'text'"),
        (lambda s, k: k.choice("a", {1, 2}), "values of the knob a is"),
        (lambda s, k: k.choice("a", range(129)), "the knob a has 129 structures to choose from; it may have 128"),
        (lambda s, k: k.split("a", "i", 2), "the knob a takes loops of the schedule"),
        (lambda s, k: k.split("a", tw.Schedule(product())["C"].loops[0], 2), "the knob a takes loops of the schedule"),
        (lambda s, k: k.split("a", s["C"].loops[0], 1), "num_parts of the knob a is 1; it must be at least 2"),
        (lambda s, k: k.split("a", s["C"].loops[0], 11), "num_parts of the knob a is 11; it must be at most 10"),
        (lambda s, k: k.split("a", s["C"].loops[0], 2.0), "num_parts of the knob a is 2.0"),
        (lambda s, k: k.split("a", s["C"].loops[0], 2, max_inner=0), "max_inner of the knob a is 0"),
        (lambda s, k: k.split("a", s["C"].loops[0], 2, policy="all"), "policy of the knob a is 'all'"),
        (lambda s, k: k.split("b", s["C"].split("i", k.split("a", s["C"].loops[0], 2))[1], 2), "another knob decides"),
        (lambda s, k: k.reorder("a", []), "the loops of the knob a is \\[\\]"),
        (lambda s, k: k.reorder("a", s["C"].loops[0]), "the loops of the knob a is "),
        (lambda s, k: k.reorder("a", [s["C"].loops[0]] * 2), "different loops of one stage, got C.i, C.i"),
        (lambda s, k: k.reorder("a", s["C"].loops, [["i", "j"]]), "has each of i, j, k once"),
        (lambda s, k: k.reorder("a", s["C"].loops, [["i", "j", "j"]]), "has each of i, j, k once"),
        (lambda s, k: k.reorder("a", s["C"].loops, [[1, 2, 3]]), "has each of i, j, k once"),
        (lambda s, k: k.reorder("a", s["C"].split("i", [2] * 5)), "the knob a has 720 structures"),
        (lambda s, k: k.annotate("a", s["C"].loops, ["unrolled"]), "annotations are none, unroll, vectorize, parallel"),
        (lambda s, k: k.annotate("a", s["C"].loops, "unroll"), "among of the knob a is 'unroll'"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for_is_said_with_the_line(ask: Function, message: str) -> None:
    with pytest.raises(UsageError, match=rf"template <lambda>, .*test_knobs.py:\d+: .*{message}"):
        sketches_of(ask)


@pytest.mark.parametrize("ask", ["split", "reorder", "annotate"])
def test_a_loop_that_is_gone_makes_the_structure_illegal(ask: str) -> None:
    def gone(s: tw.Schedule, knobs: Knobs) -> None:
        i, _, _ = s["C"].loops
        s["C"].split(i, 2)
        if ask == "split":
            knobs.split("a", i, 2)
        else:
            getattr(knobs, ask)("a", [i])

    with pytest.raises(ScheduleError, match="stage C has no loop 'i'"):
        sketches_of(gone)


def test_a_loop_in_whose_place_is_another_of_its_name_is_gone() -> None:
    def renamed(s: tw.Schedule, knobs: Knobs) -> None:
        i, _, _ = s["C"].loops
        s["C"].cache_write()
        s["C"].split("i", 2)
        s["C"].fuse("i.0", "i.1")
        knobs.split("a", i, 2)

    with pytest.raises(ScheduleError, match="no loop 'i'"):
        sketches_of(renamed)
