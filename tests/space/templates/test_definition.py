"""A template as sketches: its structures, what is illegal of them, and errors that say where they come from."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.space.templates.programs import OPTIONS, blocked, product, scaled
from tilewright.errors import ScheduleError, UsageError
from tilewright.schedule import Trace
from tilewright.space import Knobs, Population, Sketch, sketches_from_json, sketches_to_json, template
from tilewright.te import assert_matches, evaluate, random_inputs, reduction_size


def steps(sketch: Sketch) -> list[str]:
    return [str(step) for step in sketch.steps]


def test_a_choice_of_structure_gives_a_sketch_for_each_value_and_a_split_a_knob() -> None:
    plain, unrolled = blocked.sketches(product(), OPTIONS)
    assert [plain.name, unrolled.name] == ["blocked unroll=False", "blocked unroll=True"]
    assert steps(plain) == [
        's["C"].split("i", tile_i[0])',
        's["C"].split("j", tile_j[0])',
        's["C"].reorder("i.0", "j.0", "k", "i.1", "j.1")',
        's["C"].vectorize("j.1")',
    ]
    assert steps(unrolled) == [*steps(plain), 's["C"].unroll("i.1")']
    assert {knob.name: knob.table[:, 0].tolist() for knob in plain.knobs} == {
        "tile_i": [1, 2, 3, 4, 6, 8, 12, 16, 24, 48],
        "tile_j": [1, 2, 4, 8, 16, 32, 64],
    }
    assert plain.knobs == unrolled.knobs, "what decides the same is one knob"


def test_candidates_compute_what_numpy_computes() -> None:
    task = product()
    rng = np.random.default_rng(0)
    inputs = random_inputs(task, rng)
    (expected,) = evaluate(task, *inputs)
    for sketch in blocked.sketches(task, OPTIONS):
        population = sketch.sample(rng, 40)
        for candidate in population[population.legal(OPTIONS.target)][:4]:
            kernel = tw.build(candidate.trace.apply(task), "llvm -mcpu=native", threads=2)
            assert_matches(kernel(*inputs), expected, "float32", reduction_size(task))


def test_a_trace_prints_as_python_to_paste_and_is_found_again() -> None:
    task = product()
    sketches = blocked.sketches(task, OPTIONS)
    candidate = sketches[1].sample(np.random.default_rng(0), 1)[0]
    namespace: dict[str, Any] = {"tw": tw, "task": task}
    exec(str(candidate.trace), namespace)
    assert namespace["s"].trace == candidate.trace
    read = Trace.from_json(json.dumps(candidate.trace.to_json()))
    again = blocked.sketches(task, OPTIONS)
    assert again[0].candidate_of(read) is None
    found = again[1].candidate_of(read)
    assert found is not None
    assert found.row == candidate.row


def test_sketches_of_templates_go_through_json() -> None:
    task = product()
    sketches = blocked.sketches(task, OPTIONS)
    read = sketches_from_json(json.loads(json.dumps(sketches_to_json(sketches))), task, OPTIONS)
    for sketch, other in zip(sketches, read, strict=True):
        assert (sketch.name, steps(sketch)) == (other.name, steps(other))
        rows = sketch.sample(np.random.default_rng(0), 3).rows
        assert Population(other, rows).trace(1) == Population(sketch, rows).trace(1)


def test_the_names_of_its_parameters_are_its_own_and_it_may_call_another() -> None:
    @tw.template
    def outer(schedule: tw.Schedule, choices: Knobs) -> None:
        blocked(schedule, choices)
        schedule["C"].parallel("i.0")

    assert outer.name == "outer"
    assert [steps(sketch)[-1] for sketch in outer.sketches(product(), OPTIONS)] == ['s["C"].parallel("i.0")'] * 2


def test_structures_that_come_to_the_same_are_one_sketch() -> None:
    @tw.template
    def same(s: tw.Schedule, knobs: Knobs) -> None:
        knobs.choice("nothing", [1, 2, 3])
        s["C"].vectorize("j")

    assert len(same.sketches(product(8, 8, 8), OPTIONS)) == 1


def test_a_template_that_leaves_nothing_open_is_one_program() -> None:
    @tw.template
    def fixed(s: tw.Schedule, knobs: Knobs) -> None:
        s["C"].parallel("i")

    (sketch,) = fixed.sketches(product(), OPTIONS)
    assert (sketch.name, sketch.cardinality) == ("fixed", 1)
    assert template(lambda s, knobs: None).sketches(product(), OPTIONS)[0].steps == ()


def test_a_template_that_is_illegal_for_some_rows_costs_these_rows() -> None:
    @tw.template
    def unrolled(s: tw.Schedule, knobs: Knobs) -> None:
        (i,) = s["Y"].loops
        _, inner = s["Y"].split(i, knobs.split("tile", i, 2))
        s["Y"].unroll(inner)

    (sketch,) = unrolled.sketches(scaled(4096), OPTIONS)
    every = Population(sketch, np.arange(sketch.cardinality)[:, None])
    legal = every.legal(OPTIONS.target)
    assert sketch.knobs[0].table[legal, 0].tolist() == [2**n for n in range(11)]
    for candidate, is_legal in zip(every, legal, strict=True):
        if is_legal:
            candidate.trace.apply(sketch.task)
        else:
            with pytest.raises(ScheduleError, match="at most 1024 unroll"):
                candidate.trace.apply(sketch.task)


def test_rows_that_unroll_to_more_than_can_be_compiled_are_illegal() -> None:
    @tw.template
    def unrolled(s: tw.Schedule, knobs: Knobs) -> None:
        for loop in s["Y"].loops:
            s["Y"].unroll(s["Y"].split(loop, knobs.split(loop.name, loop, 2))[1])

    (sketch,) = unrolled.sketches(scaled(128, 128), OPTIONS)
    every = Population(sketch, np.stack(np.unravel_index(np.arange(64), (8, 8)), axis=1))
    sizes = 2 ** every.rows.sum(axis=1)
    np.testing.assert_array_equal(every.legal(OPTIONS.target), sizes <= 8192)


def test_structures_that_are_illegal_are_left_out() -> None:
    @tw.template
    def annotated(s: tw.Schedule, knobs: Knobs) -> None:
        i, j = s["Y"].loops
        knobs.annotate("how", [i, j], among=("none", "vectorize", "parallel"))

    names = [sketch.name.removeprefix("annotated ") for sketch in annotated.sketches(scaled(4, 8), OPTIONS)]
    combinations = itertools.product(("none", "vectorize", "parallel"), repeat=2)
    illegal = [("vectorize", "vectorize"), ("parallel", "parallel"), ("vectorize", "parallel")]
    assert names == [f"how.i0={a}, how.i1={b}" for a, b in combinations if (a, b) not in illegal]


def test_a_space_of_more_than_a_billion_rows_is_not_listed() -> None:
    @tw.template
    def large(s: tw.Schedule, knobs: Knobs) -> None:
        for loop in s["Y"].loops:
            s["Y"].split(loop, knobs.split(f"tile_{loop.name}", loop, 4))

    (sketch,) = large.sketches(scaled(1024, 1024, 1024, 1024), OPTIONS)
    assert sketch.cardinality > 10**9
    population = sketch.sample(np.random.default_rng(0), 1000)
    assert population.legal(OPTIONS.target).all()


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [3, None, "text", lambda: None, lambda s: None, lambda s, knobs, more: None])
def test_a_template_is_a_function_of_two(given: Any) -> None:
    with pytest.raises(UsageError, match="a template is a function of"):
        tw.template(given)


def test_a_split_of_a_loop_that_is_gone_says_so_and_where() -> None:
    @tw.template
    def twice(s: tw.Schedule, knobs: Knobs) -> None:
        i, _, _ = s["C"].loops
        s["C"].split(i, knobs.split("first", i, 2))
        s["C"].split(i, knobs.split("second", i, 2))

    where = r"template twice is legal for task product; .*test_definition.py:\d+: "
    with pytest.raises(ScheduleError, match=f"no program of {where}stage C has no loop 'i'"):
        twice.sketches(product(), OPTIONS)


def test_no_legal_row_says_why() -> None:
    @tw.template
    def too_wide(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, k = s["C"].loops
        s["C"].reorder(k, i, j)
        s["C"].unroll(i)
        s["C"].vectorize(j)
        s["C"].split(k, knobs.split("depth", k, 2))

    with pytest.raises(ScheduleError, match="too_wide: none of its 6 candidates is worth building: register tiles"):
        too_wide.sketches(product(), OPTIONS)


def test_of_several_reasons_the_first_is_said() -> None:
    @tw.template
    def wrong(s: tw.Schedule, knobs: Knobs) -> None:
        s["C"].vectorize(knobs.choice("loop", ["x", "y", "z"]))

    with pytest.raises(ScheduleError, match="no loop 'x'(.|\n)*and 2 more structures are not"):
        wrong.sketches(product(), OPTIONS)


def test_an_exception_of_its_own_names_the_line_and_is_kept() -> None:
    @tw.template
    def broken(s: tw.Schedule, knobs: Knobs) -> None:
        _helper()

    with pytest.raises(UsageError, match=r"broken raised KeyError at .*test_definition.py:\d+: 'missing'") as caught:
        broken.sketches(product(), OPTIONS)
    assert isinstance(caught.value.__cause__, KeyError)
    line = int(str(caught.value).partition("test_definition.py:")[2].partition(":")[0])
    assert line == _helper.__code__.co_firstlineno + 1, "where it was raised"


def _helper() -> None:
    raise KeyError("missing")


def test_an_interrupt_is_no_error_of_the_template() -> None:
    @tw.template
    def interrupted(s: tw.Schedule, knobs: Knobs) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted.sketches(product(), OPTIONS)


def test_what_depends_on_an_open_extent_is_told_to_be_a_choice() -> None:
    @tw.template
    def depends(s: tw.Schedule, knobs: Knobs) -> None:
        i, _, _ = s["C"].loops
        _, inner = s["C"].split(i, knobs.split("tile", i, 2))
        if inner.extent > 8:
            s["C"].unroll(inner)

    with pytest.raises(UsageError, match="let a knobs.choice decide"):
        depends.sketches(product(), OPTIONS)


def test_a_number_made_of_an_open_extent_is_refused() -> None:
    @tw.template
    def computed(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, _ = s["C"].loops
        _, inner = s["C"].split(i, knobs.split("tile", i, 2))
        s["C"].split(j, inner.extent)

    with pytest.raises(UsageError, match="factors of split is made of the extent of a loop that a knob decides"):
        computed.sketches(product(), OPTIONS)


@pytest.mark.parametrize("has_structures", [False, True])
def test_a_template_that_asks_for_something_else_each_time_is_refused(has_structures: bool) -> None:
    calls = itertools.count()

    @tw.template
    def fickle(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, _ = s["C"].loops
        loop = (i, j)[next(calls) % 2]
        s["C"].split(loop, knobs.split(f"tile_{loop.name}", loop, 2))
        if has_structures:
            knobs.choice("structure", [1, 2])

    with pytest.raises(UsageError, match="asks for other knobs when it is run again"):
        fickle.sketches(product(), OPTIONS)


def test_a_random_order_of_steps_is_found_out() -> None:
    rng = random.Random(0)

    @tw.template
    def shuffled(s: tw.Schedule, knobs: Knobs) -> None:
        s["Y"].reorder(*rng.sample(s["Y"].loops, 6))

    with pytest.raises(UsageError, match="when it is run again"):
        shuffled.sketches(scaled(2, 3, 2, 3, 2, 3), OPTIONS)


def test_too_many_structures_are_refused_and_counted() -> None:
    @tw.template
    def many(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, k = s["C"].loops
        knobs.reorder("order", [i, j, k])
        s["C"].split(i, 1 + knobs.choice("a", range(5)))
        s["C"].split(j, 1 + knobs.choice("b", range(6)))

    with pytest.raises(UsageError, match=r"many \(.*\) has more than 128 structures \(order has 6, a has 5, b has 6\)"):
        many.sketches(product(8, 8, 8), OPTIONS)


def test_too_many_structures_end_even_where_none_is_legal() -> None:
    @tw.template
    def illegal(s: tw.Schedule, knobs: Knobs) -> None:
        for n in range(3):
            knobs.choice(f"choice_{n}", range(100))
        s["C"].vectorize("nowhere")

    with pytest.raises(UsageError, match="has more than 1024 structures"):
        illegal.sketches(product(2, 2, 2), OPTIONS)


def test_a_function_of_which_nothing_would_run_is_refused() -> None:
    def yielding(s: tw.Schedule, knobs: Knobs) -> Iterator[int]:
        yield 1

    async def awaited(s: tw.Schedule, knobs: Knobs) -> None: ...

    for function in (yielding, awaited):
        with pytest.raises(UsageError, match=f"{function.__name__} has a yield in it or is async"):
            template(function)
