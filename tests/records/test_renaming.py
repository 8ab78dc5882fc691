"""Records of a task serve the same task under other names."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from tests.records.samples import record
from tilewright import te
from tilewright.records import Record, fastest_of, in_names_of, names_of
from tilewright.runtime.build import build
from tilewright.schedule import Schedule, Trace
from tilewright.schedule.steps import STEPS
from tilewright.space import Population, SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task, Tensor
from tilewright.tuning.untuned import best_trace

TARGET = Target.parse("llvm -mcpu=haswell")


def layer(x: str, w: str, product: str, result: str, axis: str, *, other_axes: bool = False) -> Task:
    """relu(x w), with the weights constant. With `other_axes` no axes of its two stages share their names."""
    X, W = te.placeholder((24, 32), name=x), te.placeholder((32, 48), name=w, constant=True)
    k = te.reduce_axis(32, axis)
    P = te.compute((24, 48), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), product)
    if other_axes:
        return Task([X, W], te.compute((24, 48), lambda row, column: te.maximum(P[row, column], 0.0), result))
    return Task([X, W], te.compute((24, 48), lambda i, j: te.maximum(P[i, j], 0.0), result))


def tail_sum(x: str, total: str, axis: str) -> Task:
    X, k = te.placeholder((4, 1000), name=x), te.reduce_axis(1000, axis)
    return Task([X], te.compute((4,), lambda i: te.sum(te.exp(X[i, k]), axis=k), total))


OURS = layer("X", "W", "P", "Y", "k")
THEIRS = layer("left", "right", "C", "relu", "r", other_axes=True)


def of(task: Task, trace: Trace, latency_s: float = 1e-3) -> Record:
    return record(task=task.hash, target=str(TARGET), trace=trace, latency_s=latency_s, names=names_of(task))


def test_names_are_those_of_tensors_and_axes() -> None:
    assert names_of(THEIRS) == (("left",), ("right",), ("C", "i", "j", "r"), ("relu", "row", "column"))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(OURS, THEIRS), (THEIRS, OURS), (tail_sum("X", "S", "k"), tail_sum("a", "b", "i0"))],
    ids=["names meet", "names differ", "rfactor"],
)
def test_every_program_of_the_space_is_the_one_of_the_same_row(ours: Task, theirs: Task) -> None:
    assert ours.hash == theirs.hash
    options = SpaceOptions(TARGET, 2)
    kinds: set[str] = set()
    for our_sketch, their_sketch in zip(derive(ours, options), derive(theirs, options), strict=True):
        expected = our_sketch.sample(np.random.default_rng(1), 3)
        recorded = [of(theirs, candidate.trace) for candidate in Population(their_sketch, expected.rows)]
        translated = in_names_of(ours, recorded)
        assert [found.trace for found in translated] == [candidate.trace for candidate in expected]
        assert all(found.names == names_of(ours) for found in translated)
        kinds |= {step.name for found in translated for step in found.trace.steps}
    assert {"split", "vectorize", "parallel"} <= kinds


def by_hand(task: Task) -> Schedule:
    """All the steps that name other stages, several loops, or loops of stages that a step has made."""
    schedule = Schedule(task)
    x, _, product, result = (schedule[names[0]] for names in names_of(task))
    result.fuse(*result.loops)
    cache = product.cache_write()
    i, j, k = cache.loops
    _, inner = cache.split(k, 8)
    cache.reorder(inner, i)
    cache.pragma(j, auto_unroll_max_step=4)
    partial = cache.rfactor(inner)
    copy = x.cache_read(partial)
    copy.compute_at(partial, partial.loops[0])
    copy.unroll(copy.loops[0])
    return schedule


def test_a_schedule_by_hand_is_translated_and_computes_the_same() -> None:
    (found,) = in_names_of(OURS, [of(THEIRS, by_hand(THEIRS).trace)])
    assert found.trace == by_hand(OURS).trace
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((24, 32), np.float32), rng.standard_normal((32, 48), np.float32)
    kernel = build(found.trace.apply(OURS), threads=1)
    np.testing.assert_allclose(kernel(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


def test_the_fastest_record_is_taken_whatever_its_names() -> None:
    slow = of(OURS, Trace(), 2e-3)
    fast = of(THEIRS, by_hand(THEIRS).trace, 1e-3)
    best = fastest_of(OURS, [slow, fast])
    assert best is not None
    assert best == replace(fast, trace=by_hand(OURS).trace, names=names_of(OURS))
    assert best_trace([slow, fast], OURS, TARGET, 2) == best.trace


def test_records_without_names_serve_the_task_whose_names_they_use() -> None:
    old = replace(of(THEIRS, by_hand(THEIRS).trace), names=())
    assert in_names_of(THEIRS, [old]) == [old]
    assert in_names_of(OURS, [old]) == []
    assert fastest_of(OURS, [old]) is None


def test_records_without_names_may_differ_in_the_axes_alone() -> None:
    ours, theirs = tail_sum("X", "S", "k"), tail_sum("X", "S", "t")
    schedule = Schedule(theirs)
    schedule["S"].split("t", 10)
    assert in_names_of(ours, [replace(of(theirs, schedule.trace), names=())]) == []


def test_a_candidate_that_was_illegal_is_not_translated() -> None:
    illegal = Trace.from_json([{"step": "vectorize", "stage": "relu", "arguments": ["nowhere"]}])
    failed = replace(of(THEIRS, illegal), status="INVALID", latency_s=None)
    assert in_names_of(OURS, [failed]) == []
    assert in_names_of(THEIRS, [failed]) == [failed]


def test_a_record_with_names_that_are_not_of_the_task_is_set_aside() -> None:
    damaged = replace(of(THEIRS, Trace()), names=names_of(THEIRS)[1:], source="r.jsonl:7")
    with pytest.warns(UserWarning, match="r.jsonl:7: the record is set aside.*as many names as its task has tensors"):
        assert in_names_of(OURS, [damaged]) == []


def test_of_many_records_that_are_set_aside_few_are_named() -> None:
    damaged = replace(of(THEIRS, Trace()), names=names_of(THEIRS)[1:])
    with pytest.warns(UserWarning, match="set aside") as warned:
        assert in_names_of(OURS, [damaged] * 100) == []
    assert len(warned) == 6
    assert str(warned[-1].message).startswith("95 more records are set aside")


def test_a_record_under_a_name_that_two_tensors_have_is_set_aside() -> None:
    twice = tuple(("T", *own[1:]) for own in names_of(THEIRS))
    with pytest.warns(UserWarning, match="the record is set aside"):
        assert fastest_of(OURS, [replace(of(THEIRS, Trace()), names=twice)]) is None


def test_every_name_in_a_step_is_of_a_known_field() -> None:
    assert {field.name for step in STEPS.values() for field in fields(step)} == {
        *("stage", "consumer", "reader", "readers", "loop", "loops"),
        *("factors", "auto_unroll_max_step", "place", "algorithm"),
    }


def test_a_renamed_tensor_reads_what_is_given() -> None:
    X, Z = te.placeholder((8,), name="X"), te.placeholder((8,), name="Z")
    Y = te.compute((8,), lambda i: X[i] * 2.0, "Y")
    made: dict[Tensor, Tensor] = {X: Z}
    assert str(te.renamed(Y, ["T", "n"], made)) == "T[n] = Z[n] * 2.0"
