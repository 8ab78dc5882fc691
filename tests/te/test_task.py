"""Tasks: what is accepted, the order of stages, the count of operations."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from tilewright import ExpressionError, Task, te

A = te.placeholder((4, 8), name="A")
B = te.placeholder((8, 5), name="B", constant=True)
k = te.reduce_axis(8, name="k")
C = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
D = te.compute((4, 5), lambda i, j: te.maximum(C[i, j], 0.0), name="D")
E = te.compute((4, 5), lambda i, j: D[i, j] + C[i, j], name="E")


def test_stages_come_producers_first() -> None:
    task = Task([A, B], [E], name="chain")
    assert [t.name for t in task.stages] == ["C", "D", "E"]
    assert task.name == "chain"
    assert task.constants == (B,)


def test_one_output_needs_no_list() -> None:
    assert Task([A, B], D).outputs == (D,)


def test_tasks_of_the_same_tensors_are_equal() -> None:
    assert Task([A, B], D) == Task([A, B], [D])
    assert Task([A, B], D) != Task([A, B], E)
    assert len({Task([A, B], D), Task([A, B], D)}) == 1


def test_a_task_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Task([A, B], D).name = "other"  # type: ignore[misc]


def test_a_task_survives_pickling() -> None:
    task = Task([A, B], E)
    copy = pickle.loads(pickle.dumps(task))
    assert copy.hash == task.hash
    assert copy.stages[-1] is copy.outputs[0]


def test_a_long_chain_of_stages_is_no_problem() -> None:
    tensor = A
    for n in range(3000):
        tensor = te.compute((4, 8), _plus_one(tensor), name=f"T{n}")
    task = Task([A], tensor)
    assert len(task.stages) == 3000
    assert len(task.hash) == 32


def _plus_one(tensor: te.Tensor) -> Callable[..., te.Expr]:
    return lambda i, j: tensor[i, j] + 1.0


A2 = te.placeholder((4, 8), name="A")
clash = te.compute((4, 8), lambda i, j: A[i, j] + A2[i, j], name="S")

ERRORS: list[tuple[Callable[[], object], str]] = [
    (lambda: Task([A, B], []), "at least one output"),
    (lambda: Task([A], [A]), "output A is a placeholder; the outputs of a task are computed tensors"),
    (lambda: Task([A, C], [D]), "input C is computed; the inputs of a task are placeholders"),
    (lambda: Task([A], [D]), "placeholder B is read but not among the inputs"),
    (lambda: Task([A, B, A2], [D]), "input A is not read by any output"),
    (lambda: Task([A, A, B], [D]), "tensor A is given twice as input"),
    (lambda: Task([A, B], [D, D]), "tensor D is given twice as output"),
    (lambda: Task([A, A2], clash), r"two tensors are called A: `A: float32\[4, 8\]` and"),
    (lambda: Task([A, 3], D), "input 1 of a task must be a tensor, got 3"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("build", "message"), ERRORS)
def test_wrong_inputs_and_outputs_are_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        build()


def _pointwise(body: Callable[..., te.ExprLike]) -> Task:
    return Task([A], te.compute((4, 8), body, name="P"))


FLOPS: list[tuple[Task, float]] = [
    (Task([A, B], C), 2.0 * 4 * 5 * 8),
    (Task([A, B], D), 2.0 * 4 * 5 * 8 + 20),
    (_pointwise(lambda i, j: te.exp(A[i, j]) * 2.0 + 1.0), 3.0 * 32),
    (_pointwise(lambda i, j: A[i // 2 * 2, j]), 0.0),
    (_pointwise(lambda i, j: te.select(i + j > 3, A[i, j], 0.0)), 0.0),
    (_pointwise(lambda i, j: te.select(A[i, j] > 0.0, A[i, j], -A[i, j] * 0.1)), 2.0 * 32),
    (Task([A], te.compute((4,), lambda i: te.argmax(A[i, k], axis=k), name="P")), 32.0),
]


@pytest.mark.parametrize(("task", "flop"), FLOPS)
def test_operations_on_elements_are_counted(task: Task, flop: float) -> None:
    assert task.flop == flop


def test_a_shared_value_is_counted_once() -> None:
    def body(i: te.Axis, j: te.Axis) -> te.Expr:
        x = te.exp(A[i, j])
        return x * x

    assert _pointwise(body).flop == 64


def test_a_task_of_many_stages_is_pickled_and_is_the_same() -> None:
    x = te.placeholder((4,), name="x", constant=True)
    y = x
    for n in range(200):
        y = te.compute((4,), lambda i, y=y: y[i] * 0.5 + 0.25, name=f"y{n}")
    task = Task([x], [y], name="chain")
    again = pickle.loads(pickle.dumps(task))
    assert (again.hash, again.name, again.constants[0].name) == (task.hash, "chain", "x")
    assert copy.copy(task) is copy.deepcopy(task) is task
