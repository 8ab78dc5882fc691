"""Tasks as JSON: all that `te` can say comes back as it was, and what is no task is refused with its place."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tilewright import ExpressionError, Task, te, workloads
from tilewright.network import partition_network
from tilewright.te.check import MAX_DEPTH
from tilewright.te.task_json import MAX_NODES
from tilewright.te.transform import operands_first
from tilewright.testing.programs import FAMILIES, random_task

A = te.placeholder((4, 8), name="A")
W = te.placeholder((8, 5), name="W", constant=True)
N = te.placeholder((4,), "int64", name="N")
k = te.reduce_axis(8, name="k")


def again(task: Task) -> Task:
    """The task after it was text."""
    return Task.from_json(json.loads(json.dumps(task.to_json(), allow_nan=False)))


def assert_same(task: Task) -> None:
    copied = again(task)
    assert copied.hash == task.hash
    assert copied.name == task.name
    assert copied.flop == task.flop
    for group in ("inputs", "outputs", "stages", "constants"):
        assert list(map(described, getattr(copied, group))) == list(map(described, getattr(task, group)))
    assert copied.to_json() == task.to_json()


def described(tensor: te.Tensor) -> list[object]:
    over = tensor.body.axes if isinstance(tensor.body, te.Reduce) else ()
    axes = [(axis.name, axis.extent, axis.is_reduce) for axis in (*tensor.axes, *over)]
    nodes = [] if tensor.body is None else [(type(e), e.dtype) for e in operands_first(tensor.body)]
    return [str(tensor), tensor.shape, tensor.dtype, tensor.is_constant, axes, nodes]


def test_the_form_is_as_documented() -> None:
    X = te.placeholder((8,), name="A")
    task = Task([X], te.compute((8,), lambda i: X[i] * 2.0, name="B"), name="twice")
    assert task.to_json() == {
        "version": 1,
        "name": "twice",
        "inputs": [0],
        "outputs": [5],
        "nodes": [
            ["placeholder", "A", "float32", [8], False],
            ["axis", "i", 8],
            ["read", 0, [1]],
            ["const", "float32", 2.0],
            ["binary", "mul", 2, 3],
            ["compute", "B", [1], 4],
        ],
    }


def every_kind() -> Task:
    """Every class of expression, tensors with several readers, several outputs, names that are no ASCII."""
    S = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k), name="S")
    P = te.compute((4, 7), lambda y, λ: te.select((λ >= 1) & ~(λ > 5), S[y, λ - 1], -1.0), name="P")
    G = te.compute((4, 5), lambda *i: te.cast(S[N[i[0]], i[1]], "float16") + te.exp(P[i[0], i[1]]), name="G")
    M = te.compute((), lambda: te.argmax(A[0, k], axis=k), name="M")
    two = te.reduce_axis(4, name="r"), te.reduce_axis(5, name="c")
    I = te.compute((1,), lambda o: te.argmin(S[two], axis=two), name="I")  # noqa: E741
    return Task([N, W, A], [G, I, M], name="every kind: ü\n")


def test_every_kind_of_expression_comes_back() -> None:
    task = every_kind()
    bodies = [stage.body for stage in task.stages if stage.body is not None]
    kinds = {type(e) for body in bodies for e in operands_first(body)}
    assert kinds == {te.Axis, te.Const, te.Unary, te.Binary, te.Select, te.Cast, te.Read, te.Reduce}
    assert_same(task)


def test_a_task_from_json_computes_the_same() -> None:
    task = every_kind()
    inputs = te.random_inputs(task, np.random.default_rng(0))
    for mine, theirs in zip(te.evaluate(task, *inputs), te.evaluate(again(task), *inputs), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", te.DTYPES)
@pytest.mark.parametrize(
    "value",
    [
        *(0, 1, -1, 127, 255, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), True, False),
        *(0.0, -0.0, 0.1, 1 / 3, 1e-45, 5e-324, 65504.0, 3.4e38, 1.7e308, math.inf, -math.inf, math.nan),
    ],
)
def test_every_constant_comes_back_exactly(value: float, dtype: str) -> None:
    try:
        constant = te.constant(value, dtype)
    except ExpressionError:
        return  # which the type does not hold
    task = Task([A], te.compute((4,), lambda i: te.select(A[i, 0] > 0.0, constant, constant), name="B"))
    assert_same(task)
    (stage,) = again(task).stages
    assert isinstance(stage.body, te.Select)
    assert isinstance(stage.body.a, te.Const)
    assert stage.body.a is stage.body.b
    assert type(stage.body.a.value) is type(constant.value)
    assert repr(stage.body.a.value) == repr(constant.value)


def test_what_is_shared_stays_shared_and_is_written_once() -> None:
    def doubled(i: te.Expr) -> te.Expr:
        x = A[i, 0]
        for _ in range(300):
            x = x + x
        return x

    task = Task([A], te.compute((4,), doubled, name="B"))
    assert len(task.to_json()["nodes"]) == 305
    copied = again(task)
    assert copied.hash == task.hash
    assert copied.flop == task.flop == 4 * 300
    body = copied.stages[0].body
    assert isinstance(body, te.Binary)
    assert body.a is body.b


def test_an_axis_that_two_computes_reduce_over_stays_one() -> None:
    first = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="first")
    second = te.compute((4,), lambda i: te.max(A[i, k] * first[i], axis=k), name="second")
    one, other = (stage.body for stage in again(Task([A], second)).stages)
    assert isinstance(one, te.Reduce)
    assert isinstance(other, te.Reduce)
    assert one.axes[0] is other.axes[0]


def chain(length: int) -> Callable[[te.Expr], te.Expr]:
    def function(i: te.Expr) -> te.Expr:
        x = A[i, 0]
        for _ in range(length):
            x = x + 1.0
        return x

    return function


def test_an_expression_as_deep_as_is_allowed_comes_back() -> None:
    assert_same(Task([A], te.compute((4,), chain(MAX_DEPTH - 2), name="B")))


def test_a_deeper_one_is_neither_written_nor_read() -> None:
    with pytest.raises(ExpressionError, match=f"at most {MAX_DEPTH} deep; give a part of it a compute of its own"):
        Task([A], te.compute((4,), chain(MAX_DEPTH - 1), name="B")).to_json()
    data = minimal()
    data["nodes"][4:] = [["unary", "neg", n] for n in range(3, 20_000)]
    with pytest.raises(ExpressionError, match="node 402 of the task is .* deep"):
        Task.from_json(data)


def test_many_stages_are_no_depth() -> None:
    tensor = A
    for n in range(3000):
        tensor = te.compute((4, 8), lambda i, j, x=tensor: x[i, j] + 1.0, name=f"T{n}")
    assert_same(Task([A], tensor))


def test_a_task_of_too_many_nodes_is_not_written() -> None:
    tensor = A
    for n in range(MAX_NODES // 5):
        tensor = te.compute((4, 8), lambda i, j, x=tensor: x[i, j] + 1.0, name=f"T{n}")
    with pytest.raises(ExpressionError, match="nodes at most; cut it in two tasks"):
        Task([A], tensor).to_json()


def test_a_variable_that_is_no_axis_is_not_written() -> None:
    stray = te.Tensor("B", (), "int64", (), te.Var("int64", "stray"))
    with pytest.raises(ExpressionError, match="axes and no other variables, got `stray`"):
        Task([], stray).to_json()


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_come_back(family: str) -> None:
    for seed in range(25):
        assert_same(random_task(family, np.random.default_rng(seed)))


@pytest.mark.parametrize("batch", [1, 16])
def test_the_suite_comes_back(batch: int) -> None:
    for _, task in workloads.suite(batch):
        assert_same(task)


@pytest.mark.parametrize("network", ["resnet18", "bert_tiny", "mobilenet_v2"])
def test_the_tasks_of_networks_come_back(network: str) -> None:
    for weighted in partition_network(f"zoo:{network}").tasks:
        assert_same(weighted.task)


def minimal() -> dict[str, Any]:
    """A[i, 0] * 2 over i, of A[4, 8]."""
    B = te.compute((4,), lambda i: A[i, 0] * 2.0, name="B")
    return Task([A], B).to_json()


def test_the_minimal_task_is_what_the_cases_below_change() -> None:
    assert minimal()["nodes"] == [
        ["placeholder", "A", "float32", [4, 8], False],
        ["axis", "i", 4],
        ["const", "int64", 0],
        ["read", 0, [1, 2]],
        ["const", "float32", 2.0],
        ["binary", "mul", 3, 4],
        ["compute", "B", [1], 5],
    ]


@pytest.mark.parametrize(
    ("position", "node", "message"),
    [
        (0, ["placeholder", "A", "float32", [4, 0], False], "dimension 1 of A is 0; an extent must be at least 1"),
        (0, ["placeholder", "A", "float32", [4, 2.0], False], "an extent must be a whole number"),
        (0, ["placeholder", "A", "float32", [4, True], False], "an extent must be a whole number"),
        (0, ["placeholder", "A", "float32", [4, 2**31], False], "must be below"),
        (0, ["placeholder", "A", "float32", [2**30] * 40, False], "less than 2\\*\\*63 elements"),
        (0, ["placeholder", "A", "float32", [1] * 65, False], "64 dimensions and reduce axes at most, got 65"),
        (0, ["placeholder", "A", "float99", [4, 8], False], "unknown dtype 'float99'"),
        (0, ["placeholder", "A b", "float32", [4, 8], False], "'A b' is not an identifier"),
        (0, ["placeholder", "A", "float32", [4, 8], 0], "it is no node"),
        (0, ["placeholder", "A", "float32", [4, 8]], "it is no node"),
        (1, ["axis", "i.0", 4], "axis name 'i.0' is not an identifier"),
        (1, ["axis", "i", 0], "at least 1"),
        (1, ["axis", "i", True], "must be a whole number"),
        (1, ["reduce_axis", "1", 4], "not an identifier"),
        (1, ["var", "i"], "it is no node"),
        (1, {"axis": "i"}, "it is no node"),
        (1, "axis", "it is no node"),
        (1, [], "it is no node"),
        (1, None, "it is no node"),
        (2, ["const", "int64", 8.0], "reads `A\\[i, 8\\]`: index `8` of dimension 1 of tensor A reaches 8..8"),
        (2, ["const", "int64", -1], "reaches -1..-1"),
        (2, ["const", "int8", 0], "takes 2 indices of type int64, got \\(int64, int8\\)"),
        (2, ["const", "int8", 300], "constant 300 does not fit int8"),
        (2, ["const", "int64", 2**63], "does not fit int64"),
        (2, ["const", "int64", 0.5], "not a whole number"),
        (2, ["const", "int64", math.nan], "not a whole number"),
        (2, ["const", "int64", "nan"], "'nan' is no number of type int64"),
        (2, ["const", "int64", True], "True is no number of type int64"),
        (2, ["const", "bool", 1], "1 is no number of type bool"),
        (2, ["const", "float32", None], "None is no number of type float32"),
        (2, ["const", "float32", [1]], "is no number of type float32"),
        (2, ["const", "float64", 10**400], "too large for a number of type float64"),
        (2, ["const", ["int64"], 1], "it is no node"),
        (3, ["read", 0, [1]], "tensor A takes 2 indices of type int64, got \\(int64\\)"),
        (3, ["read", 1, [1, 2]], "node 1 must be of the kind Tensor, got Axis"),
        (3, ["read", 0, [0, 2]], "node 0 must be of the kind Expr, got Tensor"),
        (3, ["read", 0, [1, 3]], "the position of an earlier node was expected, got 3"),
        (3, ["read", 0, [1, 4]], "the position of an earlier node was expected, got 4"),
        (3, ["read", 0, [1, -1]], "the position of an earlier node was expected, got -1"),
        (3, ["read", 0, [1, 2.0]], "the position of an earlier node was expected, got 2.0"),
        (3, ["read", 0, [1, True]], "the position of an earlier node was expected, got True"),
        (3, ["read", 0, 1], "a list of positions of nodes was expected, got 1"),
        (5, ["binary", "mul", 3, 2], "two operands of one type were expected, got \\['float32', 'int64'\\]"),
        (5, ["binary", "mul", 3], "two operands of one type were expected"),
        (5, ["binary", "melt", 3, 4], "unknown operator 'melt'; use one of: add, and, div"),
        (5, ["binary", "mod", 3, 4], "mod of .* needs integers, got float32"),
        (5, ["binary", "lt", 3, 4], None),
        (5, ["binary", ["mul"], 3, 4], "it is no node"),
        (5, ["unary", "melt", 3], "unknown operator 'melt'"),
        (5, ["unary", "exp", 2], "exp needs a float, got int64"),
        (5, ["unary", "exp", 3], None),
        (5, ["cast", "int8", 3], None),
        (5, ["cast", "int9", 3], "unknown dtype 'int9'"),
        (5, ["select", 3, 3, 4], "the condition of select must be a bool, got float32"),
        (5, ["select", 3, 3], "two operands of one type were expected"),
        (5, ["reduce", "sum", [3], [1]], "te.sum reduces over reduce axes, got `i`"),
        (5, ["reduce", "sum", [3], []], "te.sum needs at least one reduce axis"),
        (5, ["reduce", "add", [3], [1]], "unknown operator 'add'"),
        (6, ["compute", "B", [1, 1], 5], "the axes of a compute are its own, each once"),
        (6, ["compute", "B", [], 5], "uses i, an axis of another compute"),
        (6, ["compute", "B", [2], 5], "node 2 must be of the kind Axis, got Const"),
        (6, ["compute", "", [1], 5], "'' is not an identifier"),
        (6, ["compute", "A", [1], 5], "two tensors are called A"),
        (6, ["compute", "B", [1], 6], "the position of an earlier node was expected, got 6"),
        (6, ["compute", "B", [1], 0], "node 0 must be of the kind Expr, got Tensor"),
    ],
)
def test_a_node_that_is_wrong_is_named(position: int, node: Any, message: str | None) -> None:
    data = minimal()
    data["nodes"][position] = node
    if message is None:
        assert_same(Task.from_json(data))
        return
    with pytest.raises(ExpressionError, match=message) as raised:
        Task.from_json(data)
    assert len(str(raised.value)) < 600
    if "two tensors" not in message:
        assert str(raised.value).startswith("node ")


def reducing(node: list[Any], *, second: bool = False) -> dict[str, Any]:
    """max over k of A[i, k], or another reduction."""
    S = te.compute((4,), lambda i: te.max(A[i, k], axis=k), name="S")
    data = Task([A], S).to_json()
    assert data["nodes"][4] == ["reduce", "max", [3], [2]]
    data["nodes"][4] = node
    if second:  # of the same spatial axis, which is the first one's
        data["nodes"] += [["compute", "T", [1], 4]]
        data["outputs"] = [5, 6]
    return data


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (["reduce", "max", [3, 3], [2]], "te.max reduces 1 value, got 2"),
        (["reduce", "max", [], [2]], "te.max reduces 1 value, got 0"),
        (["reduce", "argmax", [3], [2]], "te.argmax reduces 2 values, got 1"),
        (["reduce", "argmax", [3, 3], [2]], "te.argmax keeps an index, which must be an int64, got float32"),
        (["reduce", "sum", [3], [2, 2]], "names the same reduce axis twice"),
        (["reduce", "sum", [3], [1]], "reduces over reduce axes, got `i`"),
        (["unary", "neg", 3], "a reduce axis outside its reduction"),
    ],
)
def test_a_reduction_that_is_wrong_is_named(node: list[Any], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        Task.from_json(reducing(node))


def test_an_axis_belongs_to_one_compute() -> None:
    assert_same(Task.from_json(reducing(["reduce", "min", [3], [2]])))
    with pytest.raises(ExpressionError, match="node 6 .*the axes of a compute are its own"):
        Task.from_json(reducing(["reduce", "min", [3], [2]], second=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "of version 2, and this tilewright reads version 1; use a newer one"),
        ({"version": None}, "of version None"),
        ({"name": 7}, "the name of a task is 7"),
        ({"nodes": {}}, "the nodes of a task are a list of 50000 at most"),
        ({"nodes": [["axis", "i", 1]] * (MAX_NODES + 1)}, "the nodes of a task are a list of 50000 at most"),
        ({"nodes": []}, "the position of an earlier node was expected, got 0"),
        ({"inputs": []}, "placeholder A is read but not among the inputs"),
        ({"inputs": [0, 0]}, "tensor A is given twice as input"),
        ({"inputs": [6]}, "input B is computed"),
        ({"inputs": 0}, "a list of positions of nodes was expected"),
        ({"outputs": []}, "a task needs at least one output"),
        ({"outputs": [0]}, "output A is a placeholder"),
        ({"outputs": [1]}, "node 1 must be of the kind Tensor, got Axis"),
        ({"outputs": [7]}, "the position of an earlier node was expected, got 7"),
        ({"colour": "red"}, "an object with version, name, inputs, outputs, nodes"),
    ],
)
def test_a_field_that_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        Task.from_json(minimal() | change)


@pytest.mark.parametrize("data", [None, [], "task", 1, {}, {"version": 1}])
def test_what_is_no_task_at_all_is_refused(data: object) -> None:
    with pytest.raises(ExpressionError, match="the JSON of a task is an object with"):
        Task.from_json(data)


def sites(tree: Any) -> Iterator[tuple[Any, Any]]:
    for place in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, place
        yield from sites(tree[place])


@pytest.mark.parametrize(
    "value", [None, True, -1, 0, 1, 5, 2**64, 0.5, math.nan, "", "i", "float64", "sum", [], [0], {}]
)
def test_any_value_in_any_place_makes_another_task_or_an_error_of_ours(value: Any) -> None:
    data = every_kind().to_json()
    for number in range(sum(1 for _ in sites(data))):
        changed = copy.deepcopy(data)
        holder, place = list(sites(changed))[number]
        holder[place] = value
        try:
            task = Task.from_json(changed)
        except ExpressionError:
            continue
        assert_same(task)


def test_a_long_index_is_not_evaluated_at_a_million_points() -> None:
    """Which would show that the index is 0, and take a gigabyte."""
    long = te.placeholder((8,), name="L")
    with pytest.raises(ExpressionError, match="reaches -67108800..67108800"):
        te.compute((1 << 20,), lambda i: long[sum([i - i] * 64, te.constant(0, "int64"))], name="B")
