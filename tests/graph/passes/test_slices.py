"""A Split becomes slices, and a reshape that cuts a slice further goes before it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.graph.passes.checking import ops, run
from tilewright.graph.passes.slices import reshape_before_slices, split_into_slices


def parsed(text: str, opset: int = 18) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> net {text}')


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_a_split_is_a_slice_for_each_output(axis: int, opset: int) -> None:
    even = f"<num_outputs = 3, axis = {axis}>" if opset >= 18 else f"<axis = {axis}>"
    graph = run(parsed(f"(float[2, 9] x) => (a, b, c) {{ a, b, c = Split {even} (x) }}", opset), [split_into_slices])
    assert ops(graph) == ["Slice"] * 3
    assert [graph.constants[graph.nodes[2].inputs[n]].tolist() for n in (1, 2, 3)] == [[6], [9], [1]]


def test_a_split_along_the_default_axis_into_parts_of_their_own_sizes() -> None:
    text = "(float[5, 2] x) => (a, b) { sizes = Constant <value_ints = [1, 4]> () a, b = Split (x, sizes) }"
    graph = run(parsed(text), [split_into_slices])
    assert ops(graph) == ["Slice"] * 2
    assert [graph.types[name].shape for name in ("a", "b")] == [(1, 2), (4, 2)]  # type: ignore[union-attr]


def test_a_split_with_a_part_without_elements_stays() -> None:
    text = "(float[5, 2] x) => (a, b) { sizes = Constant <value_ints = [0, 5]> () a, b = Split (x, sizes) }"
    assert ops(run(parsed(text), [split_into_slices])) == ["Split"]


def test_a_part_that_is_read_twice_and_given_out_is_sliced_once() -> None:
    text = """(float[2, 6] x) => (a, y, z) {
        a, b = Split <num_outputs = 2, axis = 1> (x)
        y = Add(a, b)
        z = Mul(a, a)
    }"""
    assert ops(run(parsed(text), [split_into_slices])) == ["Slice", "Slice", "Add", "Mul"]


def sliced(shape: str, start: int, end: int, step: int = 1, axis: int = 1) -> ModelProto:
    """A part of [5, 24, 3], reshaped."""
    return parsed(f"""(float[5, 24, 3] x) => (y) {{
        start = Constant <value_ints = [{start}]> ()
        end = Constant <value_ints = [{end}]> ()
        axes = Constant <value_ints = [{axis}]> ()
        steps = Constant <value_ints = [{step}]> ()
        part = Slice(x, start, end, axes, steps)
        shape = Constant <value_ints = {shape}> ()
        y = Reshape(part, shape)
    }}""")


@pytest.mark.parametrize(
    ("shape", "start", "end", "whole"),
    [
        ("[5, 2, 4, 3]", 8, 16, (5, 6, 4, 3)),
        ("[5, 2, 4, 3]", -16, -8, (5, 6, 4, 3)),
        ("[5, 2, 4, 3]", -99, 8, (5, 6, 4, 3)),  # from before the axis: from its beginning
        ("[5, 2, 2, 2, 3]", 0, 8, (5, 6, 2, 2, 3)),
        ("[5, 1, 8, 3]", 16, 99, (5, 3, 8, 3)),
        ("[5, 8, 1, 3]", 7, 15, (5, 24, 1, 3)),
    ],
)
def test_a_reshape_that_cuts_the_sliced_axis_goes_first(
    shape: str, start: int, end: int, whole: tuple[int, ...]
) -> None:
    graph = run(sliced(shape, start, end), [reshape_before_slices])
    assert ops(graph) == ["Reshape", "Slice"]
    known = graph.types[graph.nodes[0].outputs[0]]
    assert known is not None
    assert known.shape == whole


@pytest.mark.parametrize(
    "proto",
    [
        sliced("[5, 2, 4, 3]", 6, 14),  # not at a border of the blocks
        sliced("[5, 8, 3, 1]", 8, 16),  # cuts another axis
        sliced("[5, 24]", 8, 16),  # joins axes
        sliced("[5, 3, 8]", 8, 16),  # moves borders
        sliced("[5, 2, 4, 3]", 8, 24, step=2),
        sliced("[5, 2, 4, 3]", 15, 7, step=-1),
    ],
)
def test_other_reshapes_stay_behind(proto: ModelProto) -> None:
    assert ops(run(proto, [reshape_before_slices])) == ["Slice", "Reshape"]


def test_a_part_with_other_readers_stays_for_them() -> None:
    text = """(float[5, 24] x) => (y, z) {
        a, b, c = Split <num_outputs = 3, axis = 1> (x)
        shape = Constant <value_ints = [5, 2, 4]> ()
        y = Reshape(b, shape)
        z = Neg(b)
    }"""
    graph = run(parsed(text), [split_into_slices, reshape_before_slices])
    assert sorted(ops(graph)) == ["Neg", "Reshape", "Slice", "Slice"]
    assert np.prod(graph.types["y"].shape) == 40  # type: ignore[union-attr]
