"""The interpreter of loop nests: it agrees with the reference, and it is strict."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.errors import LoweringError
from tilewright.ir import (
    INPUT,
    LOCAL,
    OUTPUT,
    Block,
    Buffer,
    For,
    Load,
    LoopNest,
    Module,
    Stmt,
    Store,
    Update,
    lower,
)
from tilewright.schedule import PARALLEL, SERIAL
from tilewright.te import Var, assert_matches, evaluate, random_inputs, reduction_size
from tilewright.te.index import Linear
from tilewright.testing.interpret import interpret
from tilewright.testing.programs import FAMILIES, random_task
from tilewright.testing.schedules import Limits, random_schedule

A = Buffer("A", (4,), "float32", INPUT)
C = Buffer("C", (4,), "float32", OUTPUT)
ONE = te.constant(1.0, "float32")
i = Var("int64", "i")
AT_I = Linear({i: 1}, 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_lowered_random_schedules_equal_the_reference(family: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng([seed, 99])
        task = random_task(family, rng, max_points=300)
        schedule = random_schedule(task, rng, 10, Limits(max_points=4000))
        inputs = random_inputs(task, rng)
        outputs = interpret(lower(schedule, check=True), *inputs)
        for tensor, actual, expected in zip(task.outputs, outputs, evaluate(task, *inputs), strict=True):
            try:
                assert_matches(actual, expected, tensor.dtype, reduction_size(task))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}\n{schedule.trace}\n{schedule}") from None


def _run(body: Stmt) -> list[float]:
    module = Module(LoopNest("test", (A, C), body), ())
    (result,) = interpret(module, np.arange(4, dtype=np.float32))
    values: list[float] = result.tolist()
    return values


def _loop(body: Stmt, kind: str = SERIAL) -> For:
    return For(i, 0, 4, kind, body)


def _value(index: Linear) -> Load:
    return Load("float32", A, (index,))


def test_plain_nest_runs() -> None:
    assert _run(_loop(Store(C, (AT_I,), _value(AT_I)))) == [0.0, 1.0, 2.0, 3.0]


def test_index_out_of_bounds_is_refused() -> None:
    with pytest.raises(LoweringError, match=r"A\[i \+ 1\] is out of bounds \(4,\) at i=3"):
        _run(_loop(Store(C, (AT_I,), _value(AT_I + 1))))


def test_branch_that_is_not_taken_reads_nothing() -> None:
    inside = te.Select("float32", te.Const("bool", False), _value(AT_I + 9), ONE)
    assert _run(_loop(Store(C, (AT_I,), inside))) == [1.0] * 4


def test_memory_that_was_never_written_is_not_read() -> None:
    local = Buffer("T", (4,), "float32", LOCAL)
    with pytest.raises(LoweringError, match="element 0 of T is read before it is written"):
        _run(Block((local,), (_loop(Store(C, (AT_I,), Load("float32", local, (AT_I,)))),)))


def test_every_output_element_is_written() -> None:
    with pytest.raises(LoweringError, match=r"C\[3\] is never written"):
        _run(For(i, 0, 3, SERIAL, Store(C, (AT_I,), ONE)))


def test_iterations_in_parallel_do_not_update_one_element() -> None:
    first = Linear({}, 0)
    total = _loop(Block((), (Store(C, (first,), ONE), Update("sum", (C,), (first,), (ONE,)))), PARALLEL)
    with pytest.raises(LoweringError, match="element 0 of C is updated by two iterations in parallel"):
        _run(total)


def test_iterations_in_parallel_do_not_read_each_other() -> None:
    shifted = Load("float32", C, (Linear({i: -1}, 3),))
    body = Block((), (_loop(Store(C, (AT_I,), ONE)), _loop(Store(C, (AT_I,), shifted), PARALLEL)))
    with pytest.raises(LoweringError, match="of C is read from another thread's iteration"):
        _run(body)


def test_overlapping_stores_in_parallel_are_allowed() -> None:
    body = Block((), (_loop(Store(C, (AT_I,), ONE), PARALLEL), _loop(Store(C, (Linear({}, 0),), ONE), PARALLEL)))
    assert _run(body) == [1.0] * 4
