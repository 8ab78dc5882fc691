"""Nodes whose operands cannot fit the operator are refused when a model is read: no kernel reads what is not there."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tilewright.errors import ModelError
from tilewright.network import InferenceSession, compile_network


def parsed(text: str, opset: int = 20) -> onnx.ModelProto:
    """A model of one node `r = ...` whose result is read once more."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> net {text}')
    model.graph.node.append(onnx.helper.make_node("Neg", ["r"], ["y"]))
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info("y"))
    return model


RESHAPES = {
    "more elements": (
        "float[4] x",
        "{4096}",
        "",
        r"the shape \(4096,\) has 4096 elements, but the input's \(4,\) has 4",
    ),
    "far more": ("float[4] x", "{268435456}", "", "has 268435456 elements"),
    "fewer": ("float[4] x", "{3}", "", r"the shape \(3,\) has 3 elements"),
    "-1 that does not divide": ("float[4] x", "{-1, 3}", "", "incompatible"),
    "two of -1": ("float[4] x", "{-1, -1}", "", "multiple -1"),
    "negative": ("float[4] x", "{-2, -2}", "", "-2"),
    "0 that keeps": ("float[4] x", "{0, 2}", "", r"the shape \(4, 2\) has 8 elements"),
    "0 beyond the input": ("float[4] x", "{4, 0}", "", "position of 0"),
    "0 as it is": ("float[4] x", "{4, 0}", "<allowzero = 1>", r"the shape \(4, 0\) has 0 elements"),
}


@pytest.mark.parametrize("case", RESHAPES)
def test_reshape_to_another_number_of_elements(case: str) -> None:
    given, shape, attributes, message = RESHAPES[case]
    length = shape.count(",") + 1
    text = f"({given}) => () <int64[{length}] s = {shape}> {{ r = Reshape {attributes} (x, s) }}"
    expected = rf"r = Reshape\(x, s\).* does not fit its inputs x: float32\[4\], .*{message}.*; correct the model"
    with pytest.raises(ModelError, match=expected):
        compile_network(parsed(text), threads=1)


MISFITS = [
    (20, "(float[2, 3] x) => () <int64[1] s = {0}> { r = Squeeze(x, s) }", "must be 1"),
    (11, "(float[2, 3] x) => () { r = Squeeze <axes = [0]> (x) }", "must be 1"),
    (20, "(float[2, 3] x) => () <int64[2] s = {0, -4}> { r = Unsqueeze(x, s) }", "more than once"),
    (11, "(float[2, 3] x) => () { r = Unsqueeze <axes = [7]> (x) }", "beyond the bounds"),
    (20, "(float[2, 3] x) => () { r = Flatten <axis = 3> (x) }", "Invalid value"),
    (20, "(float[2, 3] x) => () <int64[2] s = {4, 3}> { r = Expand(x, s) }", "Incompatible"),
    (20, "(float[2, 3] x) => () { r = Transpose <perm = [0]> (x) }", "has 1 numbers where it needs 2"),
    (20, "(float[2, 3] x) => () <int64[2] s = {-1, 3}> { r, q = Split(x, s) }", r"the shape \(-1, 3\)"),
    (20, "(float[2, 3] x) => () <int64[4] s = {-3, 0, 0, 0}> { r = Pad(x, s) }", r"the shape \(-1, 3\)"),
    (
        20,
        "(float[1, 1, 4, 4] x) => () { r = MaxPool <kernel_shape = [7, 7]> (x) }",
        "does not fit into its padded input",
    ),
    (20, "(float[2, 3] x) => () <int64[1] i = {7}> { r = Gather(x, i) }", "the index 7 is outside of 2 elements"),
    (20, "(float[2, 3] x) => () <int64 i = {-3}> { r = Gather(x, i) }", "the index -3 is outside of 2 elements"),
    (20, "(float[2, 3] x) => () <int64[1, 1] i = {9}> { r = GatherElements(x, i) }", "the index 9"),
    (20, "(float[2, 3] x) => () <int64[1, 2] i = {0, 5}> { r = GatherND(x, i) }", "the index 5 is outside of 2 x 3"),
    (20, "(float[2, 3] x, float[1] u) => () <int64[1, 2] i = {0, 5}> { r = ScatterND(x, i, u) }", "the index 5"),
    (20, "(float[2, 3] x, float[2] u) => () <int64[1, 2] i = {0, 0}> { r = ScatterND(x, i, u) }", "updates"),
    (20, "(float[2, 3] x, float[1, 1] u) => () <int64[1, 1] i = {5}> { r = ScatterElements(x, i, u) }", "the index 5"),
    (20, "(float[2, 3] x, float[1, 4] u, int64[1, 4] i) => () { r = ScatterElements(x, i, u) }", "updates"),
    (20, "(float[1, 6, 2, 2] x) => () { r = DepthToSpace <blocksize = 2> (x) }", "6 channels are not blocks of 2 x 2"),
    (20, "(float[1, 4, 3, 3] x) => () { r = SpaceToDepth <blocksize = 2> (x) }", "3 x 3 is not cut into blocks"),
    (20, "(float[1, 2, 5] x, float[4, 3, 3] w) => () { r = Conv(x, w) }", "another number of channels"),
    (20, "(float[1, 2, 5] x, float[3, 1, 3] w) => () { r = Conv <group = 2> (x, w) }", "3 channels are not 2 groups"),
    (20, "(float[1, 2, 5] x, float[4, 2, 3] w) => () { r = Conv <group = 0> (x, w) }", "not 0 groups"),
    (20, "(float[1, 2, 5] x, float[3, 2, 3] w) => () { r = ConvTranspose(x, w) }", "an input of 2 channels"),
    (20, "(float[1, 2, 5] x, float[3] s) => () { r = InstanceNormalization(x, s, s) }", "do not fit 2 channels"),
    (21, "(float[1, 4, 5] x, float[4] s) => () { r = GroupNormalization <num_groups = 3> (x, s, s) }", "3 groups"),
    (20, "(float[4, 2] x, int64[5] n) => () { r = ReverseSequence(x, n) }", "for 2 sequences"),
]


@pytest.mark.parametrize(("opset", "text", "message"), MISFITS)
def test_operands_that_do_not_fit_are_refused(opset: int, text: str, message: str) -> None:
    with pytest.raises(
        ModelError, match=rf"node r.* does not fit its inputs x: float32\[.*{message}.*; correct the model"
    ):
        compile_network(parsed(text, opset), threads=1)


FITTING = [
    (20, "(float[1, 3] x) => () <int64[2] s = {0, -2}> { r = Squeeze(x, s) }", (3,)),
    (20, "(float[4, 2] x) => () <int64[2] s = {1, -1}> { r = ReduceSum(x, s) }", (4, 1)),
    (20, "(float[2, 3] x) => () <int64[4] s = {-1, -1, 0, 1}> { r = Pad(x, s) }", (1, 3)),
    (
        20,
        "(float[4] x) => () <int64 a = {5}, int64 b = {2}, int64 c = {1}> { z = Range(a, b, c) r = Gather(x, z) }",
        (0,),
    ),
]


@pytest.mark.parametrize(("opset", "text", "shape"), FITTING)
def test_unusual_operands_that_fit(opset: int, text: str, shape: tuple[int, ...]) -> None:
    session = InferenceSession(compile_network(parsed(text, opset), threads=1))
    (x,) = session.get_inputs()
    assert session.run(None, {"x": np.ones(x.shape, np.float32)})[0].shape == shape
