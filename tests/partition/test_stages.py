"""The stages of a kernel: what is written into what, results in the order they are read, places that are divided."""

from __future__ import annotations

import numpy as np

from tilewright import te
from tilewright.partition.split_axes import split_axes
from tilewright.partition.stages import inlined, merge, with_structural_names
from tilewright.te import Task, Tensor, evaluate, random_inputs

X = te.placeholder((4, 6, 8), name="X")
W = te.placeholder((8, 10), name="W", constant=True)


def product(name: str = "product") -> Tensor:
    k = te.reduce_axis(8, "k")
    return te.compute((4, 6, 10), lambda b, i, j: te.sum(X[b, i, k] * W[k, j], axis=k), name)


def printed(*outputs: Tensor) -> list[str]:
    return [str(tensor) for tensor in te.topological_order(outputs) if tensor.body is not None]


def check_same(before: Tensor, after: Tensor, inputs: list[Tensor]) -> None:
    arrays = random_inputs(Task(inputs, before), np.random.default_rng(0))
    (expected,) = evaluate(Task(inputs, before), *arrays)
    (found,) = evaluate(Task(inputs, after), *arrays)
    np.testing.assert_array_equal(found, expected)


def test_elementwise_stages_are_one() -> None:
    P = product()
    E = te.compute(P.shape, lambda *i: te.exp(P[i]), "E")
    Y = te.compute(P.shape, lambda *i: E[i] * P[i] + E[i], "Y")
    (merged,) = merge([Y])
    assert printed(merged) == [
        "product[b, i, j] = sum(X[b, i, k] * W[k, j], axis=[k])",
        "Y[i0, i1, i2] = exp(product[i0, i1, i2]) * product[i0, i1, i2] + exp(product[i0, i1, i2])",
    ]
    check_same(Y, merged, [X, W])


def test_reads_at_one_place_share_one_node() -> None:
    E = te.compute(X.shape, lambda *i: te.exp(X[i]), "E")
    Y = te.compute(X.shape, lambda *i: E[i] * E[i], "Y")
    (merged,) = merge([Y])
    assert Task([X], merged).flop == 2 * 4 * 6 * 8


def test_a_stage_that_is_read_again_and_again_stays() -> None:
    E = te.compute((8,), lambda j: te.exp(W[j, 0]), "E")
    Y = te.compute(X.shape, lambda b, i, j: X[b, i, j] * E[j], "Y")
    k = te.reduce_axis(8, "k")
    S = te.compute((4, 6), lambda b, i: te.sum(Y[b, i, k], axis=k), "S")
    assert [line.split("[")[0] for line in printed(*merge([S]))] == ["E", "Y", "S"]


def test_a_window_keeps_the_stage_it_reads() -> None:
    E = te.compute(X.shape, lambda *i: te.exp(X[i]), "E")
    Y = te.compute((4, 6, 7), lambda b, i, j: E[b, i, j] + E[b, i, j + 1], "Y")
    assert len(printed(*merge([Y]))) == 2


def test_movements_go_into_reductions() -> None:
    T = te.compute((6, 4, 8), lambda i, b, k: X[b, i, k], "T")
    S = te.compute((6, 4, 5), lambda i, b, k: T[i, b, k + 2], "S")
    k = te.reduce_axis(5, "k")
    Y = te.compute((6, 4), lambda i, b: te.sum(S[i, b, k], axis=k), "Y")
    (merged,) = merge([Y])
    assert printed(merged) == ["Y[i, b] = sum(X[b, i, k + 2], axis=[k])"]
    check_same(Y, merged, [X])


def test_a_transposed_result_is_the_order_of_the_loops() -> None:
    P = product()
    T = te.compute((6, 4, 10), lambda i, b, j: P[b, i, j], "T")
    Y = te.compute(T.shape, lambda *i: te.maximum(T[i], 0.0), "Y")
    (merged,) = merge([Y])
    assert printed(merged) == [
        "product[i, b, j] = sum(X[b, i, k] * W[k, j], axis=[k])",
        "Y[i0, i1, i2] = max(product[i0, i1, i2], 0.0)",
    ]
    check_same(Y, merged, [X, W])


def test_a_transposition_alone_leaves_no_stage() -> None:
    P = product()
    T = te.compute((6, 4, 10), lambda i, b, j: P[b, i, j], "T")
    (merged,) = merge([T])
    assert printed(merged) == ["product[i, b, j] = sum(X[b, i, k] * W[k, j], axis=[k])"]
    check_same(T, merged, [X, W])


def test_vectors_of_results_stay_together() -> None:
    P = product()
    T = te.compute((4, 10, 6), lambda b, j, i: P[b, i, j], "T")
    (merged,) = merge([T])
    assert [tensor.shape for tensor in te.topological_order([merged]) if tensor.body is not None] == [
        (4, 6, 10),
        (4, 10, 6),
    ]


def test_dimensions_of_one_are_read_at_their_own_axis() -> None:
    A = te.placeholder((1, 6), name="A")
    k = te.reduce_axis(6, "k")
    S = te.compute((1, 1), lambda n, m: te.sum(A[n, k], axis=k), "S")
    Y = te.compute((1, 6), lambda n, j: A[0, j] - S[0, 0], "Y")
    assert printed(*merge([Y]))[-1] == "Y[n, j] = A[n, j] - S[n, 0]"


def test_sums_have_what_is_computed_first_and_constants_last() -> None:
    P = product()
    bias = te.placeholder((10,), name="bias", constant=True)
    other = te.placeholder((4, 6, 10), name="other")
    one = te.compute(P.shape, lambda *i: bias[i[2]] + (other[i] + P[i]), "Y")
    two = te.compute(P.shape, lambda *i: (P[i] + other[i]) + bias[i[2]], "Y")
    assert printed(*merge([one])) == printed(*merge([two]))


def test_divided_places_become_axes_of_results_and_inputs() -> None:
    G = te.placeholder((3, 2, 8), name="G")
    V = te.placeholder((8, 3, 5), name="V", constant=True)
    bias = te.placeholder((15,), name="bias", constant=True)
    other = te.placeholder((2, 15), name="other")
    k = te.reduce_axis(8, "k")
    P = te.compute((3, 2, 5), lambda g, i, f: te.sum(G[g, i, k] * V[k, g, f], axis=k), "P")
    Y = te.compute((2, 15), lambda i, f: P[f // 5, i, f % 5] * other[i, f] + bias[f], "Y")
    (fused,) = inlined([Y])
    finer, inputs = split_axes(fused)
    assert {old.name: new.shape for old, new in inputs.items()} == {"other": (2, 3, 5), "bias": (3, 5)}
    (merged,) = merge([finer])
    assert printed(merged) == [
        "P[i, g, f] = sum(G[g, i, k] * V[k, g, f], axis=[k])",
        "Y[i, f_0, f_1] = P[i, f_0, f_1] * other[i, f_0, f_1] + bias[f_0, f_1]",
    ]
    g, o, v, b = random_inputs(Task([G, other, V, bias], Y), np.random.default_rng(0))
    (expected,) = evaluate(Task([G, other, V, bias], Y), g, o, v, b)
    task = Task([G, inputs[other], V, inputs[bias]], merged)
    (found,) = evaluate(task, g, o.reshape(2, 3, 5), v, b.reshape(3, 5))
    np.testing.assert_array_equal(found.reshape(2, 15), expected)


def test_places_that_do_not_divide_stay() -> None:
    k = te.reduce_axis(8, "k")
    P = te.compute((4, 6, 2), lambda b, i, f: te.sum(X[b, i, k] * W[k, f], axis=k), "P")
    Y = te.compute((4, 6, 3), lambda b, i, f: P[b, i, f % 2], "Y")
    finer, inputs = split_axes(Y)
    assert finer is Y
    assert not inputs


def test_names_follow_from_the_computation() -> None:
    P = product("anything")
    Y = te.compute(P.shape, lambda a, b, c: te.maximum(P[a, b, c], 0.0), "whatever")
    placeholders, (named,) = with_structural_names([Y])
    assert [tensor.name for tensor in placeholders.values()] == ["x0", "w0"]
    assert printed(named) == [
        "sum0[i0, i1, i2] = sum(x0[i0, i1, r0] * w0[r0, i2], axis=[r0])",
        "map0[i0, i1, i2] = max(sum0[i0, i1, i2], 0.0)",
    ]
    assert Task(list(placeholders.values()), named).hash == Task([X, W], Y).hash
