"""Illegal steps: each raises ScheduleError with the rule, the value and the loop nest, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.schedule.programs import best_index, blur, diamond, gather, gemm_relu, padded_sum
from tilewright.errors import ScheduleError
from tilewright.schedule import Schedule

Make = Callable[[], Schedule]
Apply = Callable[[Schedule], object]


def _nothing(s: Schedule) -> None:
    pass


def _attached(s: Schedule) -> None:
    s["C"].compute_at("D", "i")


def _both_parallel(s: Schedule) -> None:
    s["D"].parallel("i")
    s["C"].parallel("i")


def _packed(s: Schedule) -> None:
    s["B"].pack("C")


def _packed_cache(s: Schedule) -> None:
    s["A"].cache_read("C").compute_at("C", "i")
    s["A"].pack("A.cache")


def _input_attached_to_reduction(s: Schedule) -> None:
    s["A"].cache_read("C").compute_at("C", "k")


CASES: dict[str, tuple[Make, Apply, Apply, str]] = {
    "unknown stage": (gemm_relu, _nothing, lambda s: s["X"], "no stage 'X'; the stages are: A, B, C, D"),
    "unknown loop": (
        gemm_relu, _nothing, lambda s: s["D"].split("q", 2), "stage D has no loop 'q' (any more); its loops are: i, j",
    ),
    "loop that was split": (
        gemm_relu, lambda s: s["D"].split("i", 2), lambda s: s["D"].parallel("i"), "its loops are: i.0, i.1, j",
    ),
    "loops of an input": (gemm_relu, _nothing, lambda s: s["A"].split("i", 2), "A is an input: it has no loops"),
    "loops of an inlined stage": (
        padded_sum, lambda s: s["P"].compute_inline(), lambda s: s["P"].split("x", 2), "P is inlined",
    ),
    "split by zero": (gemm_relu, _nothing, lambda s: s["D"].split("i", 0), "is 0; it must be a whole number"),
    "split by a fraction": (gemm_relu, _nothing, lambda s: s["D"].split("i", 2.5), "is 2.5"),  # type: ignore[arg-type]
    "split by a bool": (gemm_relu, _nothing, lambda s: s["D"].split("i", True), "is True"),
    "split by no factor": (gemm_relu, _nothing, lambda s: s["D"].split("i", []), "needs at least one factor"),
    "split by an array with zero": (
        gemm_relu, _nothing, lambda s: s["D"].split("i", np.array([2, 0])), "whole numbers of at least 1",
    ),
    "split by an array without a dimension": (
        gemm_relu, _nothing, lambda s: s["D"].split("i", np.array(4)), "one for each candidate of a population",
    ),
    "split by a matrix": (
        gemm_relu, _nothing, lambda s: s["D"].split("i", np.array([[4]])), "one for each candidate of a population",
    ),
    "split where a stage is attached": (
        gemm_relu, _attached, lambda s: s["D"].split("i", 2), "stage C is attached at loop i",
    ),
    "split of an annotated loop": (
        gemm_relu, lambda s: s["D"].vectorize("j"), lambda s: s["D"].split("j", 2), "loop j is vectorized already",
    ),
    "split of loops that a packed copy follows": (
        gemm_relu, _packed, lambda s: s["C"].split("k", 2), "the layout of B.pack follows the loops of C; pack after",
    ),
    "split around a reader that is packed": (
        gemm_relu, _packed_cache, lambda s: s["C"].reorder("k", "i"), "the layout of A.pack follows",
    ),
    "fuse of nothing": (gemm_relu, _nothing, lambda s: s["D"].fuse(), "fuse needs at least one loop"),
    "fuse of loops that are not neighbours": (
        gemm_relu, lambda s: s["D"].split("j", 2), lambda s: s["D"].fuse("i", "j.1"), "must be neighbours in this",
    ),
    "fuse in the wrong order": (gemm_relu, _nothing, lambda s: s["D"].fuse("j", "i"), "neighbours in this order"),
    "fuse of a spatial loop and a reduction": (
        gemm_relu, _nothing, lambda s: s["C"].fuse("j", "k"), "a spatial loop and a reduction loop do not fuse",
    ),
    "reorder with a loop twice": (gemm_relu, _nothing, lambda s: s["D"].reorder("i", "i"), "names a loop twice: i, i"),
    "parallel reduction": (gemm_relu, _nothing, lambda s: s["C"].parallel("k"), "k is a reduction: threads would race"),
    "parallel in parallel": (
        gemm_relu, lambda s: s["D"].parallel("i"), lambda s: s["D"].parallel("j"), "loops i, j are nested and both",
    ),
    "parallel in parallel across stages": (
        gemm_relu, _both_parallel, _attached, "are nested and both parallel",
    ),
    "parallel inside unroll": (
        gemm_relu, lambda s: s["D"].unroll("i"), lambda s: s["D"].parallel("j"), "cannot run inside a loop that is",
    ),
    "vectorize twice": (
        gemm_relu, lambda s: s["D"].vectorize("i"), lambda s: s["D"].vectorize("j"), "loops i, j are nested and both",
    ),
    "annotate twice": (
        gemm_relu, lambda s: s["D"].unroll("j"), lambda s: s["D"].vectorize("j"), "loop j is unrolled already",
    ),
    "unroll of a long loop": (
        lambda: gemm_relu(2000), _nothing, lambda s: s["D"].unroll("i"), "has 2000 iterations; at most 1024 unroll",
    ),
    "pragma of a fraction": (
        gemm_relu, _nothing, lambda s: s["D"].pragma("i", auto_unroll_max_step=2.5), "is 2.5; it must",  # type: ignore[arg-type]
    ),
    "pragma of a text": (
        gemm_relu, _nothing, lambda s: s["D"].pragma("i", auto_unroll_max_step="9"), "is '9'; it must",  # type: ignore[arg-type]
    ),
    "pragma below zero": (
        gemm_relu, _nothing, lambda s: s["D"].pragma("i", auto_unroll_max_step=-1), "is -1; it must be a whole number",
    ),
    "compute_at of an output": (
        gemm_relu, _nothing, lambda s: s["D"].compute_at("C", "i"), "D is an output: all of it is needed",
    ),
    "compute_at a stage that does not read it": (
        blur, lambda s: s["C"].cache_write(), lambda s: s["B"].compute_at("C", "x"), "C.cache reads B but is not",
    ),
    "compute_at one of two readers": (
        diamond, _nothing, lambda s: s["T"].compute_at("R", "i"), "L reads T but is not computed inside loop i of R",
    ),
    "compute_at itself": (
        blur, _nothing, lambda s: s["B"].compute_at("B", "x"), "B cannot be computed inside B",
    ),
    "compute_at inside a vectorized loop": (
        gemm_relu, lambda s: s["D"].vectorize("j"), lambda s: s["C"].compute_at("D", "j"), "inside a vectorized loop",
    ),
    "compute_inline of an output": (gemm_relu, _nothing, lambda s: s["D"].compute_inline(), "it must be stored"),
    "compute_inline of a reduction": (
        gemm_relu, _nothing, lambda s: s["C"].compute_inline(), "C is a reduction: it cannot be inlined; use",
    ),
    "compute_inline of a packed copy": (
        gemm_relu, _packed, lambda s: s["B.pack"].compute_inline(), "inlining it would undo the packing",
    ),
    "compute_inline of a packed copy's reader": (
        blur, lambda s: s["B"].cache_read("C").schedule["B"].pack("B.cache"),
        lambda s: s["B.cache"].compute_inline(), "follows the loops of B.cache; inline before packing",
    ),
    "compute_inline of a host": (
        blur, lambda s: s["A"].cache_read("B").compute_at("B", "x"), lambda s: s["B"].compute_inline(),
        "stage A.cache is attached to B; move it with compute_root first",
    ),
    "cache_read for a stage that does not read": (
        gemm_relu, _nothing, lambda s: s["A"].cache_read("D"), "D does not read A; its readers are: C",
    ),
    "cache_write where stages are attached to the reduction": (
        gemm_relu, _input_attached_to_reduction, lambda s: s["C"].cache_write(), "moves into the cache; attach them",
    ),
    "cache_write after pack": (gemm_relu, _packed, lambda s: s["C"].cache_write(), "cache before packing"),
    "pack for a stage that does not read": (
        gemm_relu, _nothing, lambda s: s["A"].pack("D"), "D does not read A; its readers are: C",
    ),
    "pack of several reads": (
        blur, _nothing, lambda s: s["A"].pack("B"), "B reads A in several places; pack needs a single one",
    ),
    "pack of a place that is not there": (
        blur, _nothing, lambda s: s["A"].pack("B", 2), "place must be a number from 0 to 1, got 2",
    ),
    "pack of a read at an index from memory": (
        gather, _nothing, lambda s: s["A"].pack("G"), "G reads `A[B[i]]` at an index from memory",
    ),
    "rfactor of a spatial loop": (gemm_relu, _nothing, lambda s: s["C"].rfactor("i"), "i of C is spatial"),
    "rfactor of an argmax": (best_index, _nothing, lambda s: s["best"].rfactor("k"), "best is an argmax"),
    "rfactor where stages are attached": (
        gemm_relu, _input_attached_to_reduction, lambda s: s["C"].rfactor("k"), "attach them after rfactor",
    ),
    "rfactor after pack": (gemm_relu, _packed, lambda s: s["C"].rfactor("k"), "follows the loops of C"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_illegal_step_says_why_and_changes_nothing(name: str) -> None:
    make, prepare, illegal, message = CASES[name]
    s = make()
    prepare(s)
    nest, trace, extents = str(s), s.trace, dict(s.extents)
    with pytest.raises(ScheduleError) as error:
        illegal(s)
    text = str(error.value)
    assert message in text
    assert (str(s), s.trace, s.extents) == (nest, trace, extents)
    if name != "unknown stage":
        assert text.startswith('s["')
        assert text.endswith(f"The loop nest as it stands:\n{nest}")


@pytest.mark.parametrize("loop", [None, 0, ("i",)])
def test_what_is_no_loop_is_told(loop: object) -> None:
    s = gemm_relu()
    for step in (s["D"].fuse, s["D"].reorder, s["D"].vectorize, lambda i: s["C"].compute_at("D", i)):
        with pytest.raises(ScheduleError, match=r"a loop of stage D is given by its name .*, got .*\n.*as it stands"):
            step(loop)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match=r"got Stage\(C\)"):
        s["D"].split(s["C"], 2)  # type: ignore[arg-type]


def test_schedule_goes_on_after_an_illegal_step() -> None:
    s, other = gemm_relu(), gemm_relu()
    for schedule in (s, other):
        schedule["D"].split("i", 4)
        if schedule is s:
            with pytest.raises(ScheduleError):
                s["C"].parallel("k")
            with pytest.raises(ScheduleError):
                s["A"].pack("D")
        schedule["C"].compute_at("D", "i.0")
        schedule["D"].vectorize("j")
    assert str(s) == str(other)
    assert s.trace == other.trace
