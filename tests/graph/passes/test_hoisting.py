"""Arithmetic goes before the reshapes and transpositions of what was computed."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto

from tests.graph.passes.checking import ops, run
from tilewright.graph.passes.hoisting import hoist_arithmetic


def parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> net {text}')


def behind(movement: str, arithmetic: str, more: str = "") -> ModelProto:
    """A value that is computed, moved, and goes into arithmetic; `more` are other inputs."""
    numbers = ", ".join(str(n % 7) for n in range(24))
    return parsed(f"""(float[4, 6] x{more}) => (y) <
        float[4] four = {{1, 2, 3, 4}}, float[1] one = {{2}}, float[2, 12] all = {{{numbers}}},
        int64[2] wide = {{2, 12}}, int64[3] cut = {{4, 2, 3}}
    > {{
        computed = Exp(x)
        moved = {movement}
        y = {arithmetic}
    }}""")


RESHAPE = "Reshape(computed, wide)"
TRANSPOSE = "Transpose <perm = [1, 0]> (computed)"


@pytest.mark.parametrize(
    ("movement", "moves"),
    [
        (RESHAPE, "Reshape"),
        ("Flatten(computed)", "Reshape"),
        (TRANSPOSE, "Transpose"),
        ("Transpose(computed)", "Transpose"),
    ],
)
@pytest.mark.parametrize(
    "arithmetic", ["Relu(moved)", "Sin(moved)", "Mul(moved, one)", "PRelu(moved, one)", "Add(moved, moved)"]
)
def test_arithmetic_goes_first(movement: str, moves: str, arithmetic: str) -> None:
    computes, _, _ = arithmetic.partition("(")
    assert ops(run(behind(movement, arithmetic), [hoist_arithmetic])) == ["Exp", computes, moves]


def test_constants_follow_into_the_shape_before() -> None:
    assert ops(run(behind(RESHAPE, "Add(moved, all)"), [hoist_arithmetic])) == ["Exp", "Add", "Reshape"]
    graph = run(behind(TRANSPOSE, "Add(moved, four)"), [hoist_arithmetic])
    assert ops(graph) == ["Exp", "Add", "Transpose"]
    assert graph.constants[graph.nodes[1].inputs[1]].shape == (4, 1)  # no larger than it has to be


def test_an_operand_of_the_same_shape_is_viewed_as_the_other_is() -> None:
    graph = run(behind(RESHAPE, "Mul(moved, z)", ", float[2, 12] z"), [hoist_arithmetic])
    assert ops(graph) == ["Exp", "Reshape", "Mul", "Reshape"]


@pytest.mark.parametrize(
    "proto",
    [
        behind("Reshape(computed, cut)", "Add(moved, z)", ", float[3] z"),  # broadcast, and not known ahead
        behind(TRANSPOSE, "Add(moved, z)", ", float[6, 4] z"),  # not transposed alike
        behind(TRANSPOSE, "Add(moved, z)", ", float[3, 6, 4] z"),  # the result is larger
        behind(RESHAPE, "Softmax(moved)"),
        behind(RESHAPE, "ReduceSum(moved)"),
    ],
)
def test_other_nodes_stay_behind(proto: ModelProto) -> None:
    before = [node.op_type for node in proto.graph.node]
    assert ops(run(proto, [hoist_arithmetic])) == before


def test_inputs_that_are_only_moved_stay_as_they_are() -> None:
    proto = parsed("(float[4, 6] x) => (y) { moved = Transpose(x) y = Relu(moved) }")
    assert ops(run(proto, [hoist_arithmetic])) == ["Transpose", "Relu"]


def test_a_transposition_with_other_readers_is_not_done_twice() -> None:
    text = "(float[4, 6] x) => (y, moved) { computed = Exp(x) moved = Transpose(computed) y = Relu(moved) }"
    assert ops(run(parsed(text), [hoist_arithmetic])) == ["Exp", "Transpose", "Relu"]


def test_both_operands_that_are_transposed_alike_go_first() -> None:
    text = """(float[4, 6] x) => (y) {
        a = Exp(x)
        b = Neg(x)
        s = Transpose(a)
        t = Transpose(b)
        y = Sub(s, t)
    }"""
    assert ops(run(parsed(text), [hoist_arithmetic])) == ["Exp", "Neg", "Sub", "Transpose"]


def test_a_chain_of_movements_is_passed_as_one() -> None:
    text = """(float[4, 6] x) => (y) <int64[3] cut = {4, 2, 3}, int64[2] wide = {2, 12}> {
        computed = Exp(x)
        first = Reshape(computed, cut)
        second = Reshape(first, wide)
        y = Relu(second)
    }"""
    assert ops(run(parsed(text), [hoist_arithmetic])) == ["Exp", "Relu", "Reshape"]
