"""The step that puts an algorithm in the place of a stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tests.records.test_renaming import of
from tests.te.algorithms.convolutions import in_double, layer, windows, windows_in_double
from tilewright import te
from tilewright.errors import ScheduleError
from tilewright.ir import lower
from tilewright.records import in_names_of
from tilewright.schedule import Trace
from tilewright.te import Task
from tilewright.testing.interpret import interpret

TASK = layer(6, 4, 5)


def by_winograd(task: Task = TASK, algorithm: str = "winograd2") -> tw.Schedule:
    schedule = tw.Schedule(task)
    schedule["conv"].algorithm(algorithm)
    return schedule


def test_a_trace_keeps_the_algorithm_through_json_and_print() -> None:
    trace = by_winograd().trace
    assert Trace.from_json(trace.to_json()) == trace
    assert str(trace).splitlines()[1] == 's["conv"].algorithm("winograd2")'
    assert not trace.is_exact
    assert trace.error_growth == 2.0
    assert Trace().is_exact
    assert Trace().error_growth == 1.0


def test_weights_are_made_of_the_constant_once() -> None:
    schedule = by_winograd()
    ahead = [line for line in str(schedule).splitlines() if line.startswith("#")]
    assert ahead == [f"# conv.weights{n}: once, by kernel.bind" for n in (0, 1)]
    (pack,) = lower(schedule, check=True).packs
    assert (pack.position, pack.packed.name, pack.packed.shape) == (1, "conv.weights1", (4, 4, 4, 5))


def test_weights_are_packed_in_the_order_of_the_products() -> None:
    schedule = by_winograd()
    schedule["conv.product"].split("c", 2)
    schedule["conv.weights1"].pack("conv.product")
    (pack,) = lower(schedule, check=True).packs
    assert pack.packed.name == "conv.weights1.pack"
    arrays = te.random_inputs(TASK, np.random.default_rng(0))
    kernel = tw.build(schedule, threads=1).bind(W=arrays[1])
    np.testing.assert_allclose(kernel(arrays[0], *arrays[2:]), in_double(arrays), atol=1e-4)


def test_weights_that_several_products_read_are_packed_once() -> None:
    """With stride 2 the products of the taps between have the same weights, in the last place of both dimensions."""
    task = windows((6, 5), (3, 3), 4, 6, stride=2)
    schedule = by_winograd(task, "winograd4s2")
    schedule["conv.product"].split("i3", 2)
    schedule["conv.product"].split("p0", 3)
    schedule["conv.weights1"].pack("conv.product")
    (pack,) = lower(schedule, check=True).packs
    assert (pack.packed.name, pack.packed.shape) == ("conv.weights1.pack", (6, 6, 3, 2, 4))
    data, weights = te.random_inputs(task, np.random.default_rng(0))
    kernel = tw.build(schedule, threads=1).bind(W=weights)
    np.testing.assert_allclose(kernel(data), windows_in_double(data, weights, (6, 5), 0, stride=2), atol=1e-4)


def test_weights_that_something_else_reads_are_transformed_when_the_kernel_runs() -> None:
    X = te.placeholder((1, 6, 6, 4), name="X")
    W = te.placeholder((3, 3, 4, 4), name="W", constant=True)
    r, s, c = te.reduce_axis(3, "r"), te.reduce_axis(3, "s"), te.reduce_axis(4, "c")
    Y = te.compute((1, 4, 4, 4), lambda n, y, x, f: te.sum(X[n, y + r, x + s, c] * W[r, s, c, f], [r, s, c]), "conv")
    Z = te.compute(Y.shape, lambda n, y, x, f: Y[n, y, x, f] + W[0, 0, 0, f], "shifted")
    task = Task([X, W], Z)
    schedule = by_winograd(task)
    assert lower(schedule, check=True).packs == ()
    arrays = te.random_inputs(task, np.random.default_rng(0))
    np.testing.assert_allclose(tw.build(schedule, threads=1)(*arrays), te.evaluate(task, *arrays)[0], atol=1e-4)


@pytest.mark.parametrize(
    ("stage", "algorithm", "message"),
    [
        ("relu", "winograd2", "relu is none"),
        ("conv", "strassen", "there is no algorithm 'strassen'"),
        ("X", "winograd2", "X is an input"),
    ],
)
def test_what_it_cannot_compute_is_an_error_that_says_why(stage: str, algorithm: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        tw.Schedule(TASK)[stage].algorithm(algorithm)


def test_it_comes_before_any_other_step() -> None:
    schedule = tw.Schedule(TASK)
    schedule["conv"].split("f", 2)
    with pytest.raises(ScheduleError, match="make it the first step"):
        schedule["conv"].algorithm("winograd2")
    with pytest.raises(ScheduleError, match="make it the first step"):
        by_winograd()["conv"].algorithm("winograd2")


@pytest.mark.parametrize("arguments", [[], [3], ["winograd2", "winograd4"], [["winograd2"]]])
def test_other_json_is_refused(arguments: list[object]) -> None:
    with pytest.raises(ScheduleError, match="step algorithm"):
        Trace.from_json([{"step": "algorithm", "stage": "conv", "arguments": arguments}])


def test_records_under_other_names_apply() -> None:
    theirs = layer(6, 4, 5)
    schedule = by_winograd(theirs)
    schedule["conv.data1"].split("c", 2)
    names = tuple(tuple(f"{name}_{n}" for n, name in enumerate(own)) for own in te_names(theirs))
    recorded = of(TASK, schedule.trace)
    renamed_trace = replace(recorded, names=names, trace=_in_their_names(schedule.trace))
    (found,) = in_names_of(TASK, [renamed_trace])
    assert found.trace == schedule.trace


def te_names(task: Task) -> list[tuple[str, ...]]:
    return [te.names_in(tensor) for tensor in (*task.inputs, *task.stages)]


def _in_their_names(trace: Trace) -> Trace:
    """The trace with the names that the test gives: each followed by its place among those of its tensor."""
    data = trace.to_json()
    for step in data:
        step["stage"] = step["stage"].replace("conv", "conv_0")
    data[1]["arguments"][0] = "c_7"
    return Trace.from_json(data)


def test_the_interpreter_computes_the_same() -> None:
    arrays = te.random_inputs(TASK, np.random.default_rng(1))
    (found,) = interpret(lower(by_winograd()), *arrays)
    np.testing.assert_allclose(found, in_double(arrays), atol=1e-4)
