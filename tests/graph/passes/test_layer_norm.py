"""Layer normalisations that were written out are found, with their scale and shift."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.graph.onnx_models import model, node, random, tensor
from tests.graph.passes.checking import ops, run


def written_out(
    axes: list[int], square: str = "Pow", quotient: str = "Div", width: tuple[int, ...] = (8,), opset: int = 18
) -> onnx.ModelProto:
    constants: dict[str, Any] = {"two": np.float32(2), "epsilon": np.float32(1e-3)}
    constants |= {"scale": random(width, 1), "shift": random(width, 2)}
    mean: dict[str, Any] = {"axes": axes}
    extra: list[str] = []
    if opset >= 18:
        constants["axes"], extra, mean = np.array(axes), ["axes"], {}
    nodes = [
        node("ReduceMean", ["x", *extra], ["m"], **mean),
        node("Sub", ["x", "m"], ["d"]),
        node("Pow", ["d", "two"], ["q"]) if square == "Pow" else node("Mul", ["d", "d"], ["q"]),
        node("ReduceMean", ["q", *extra], ["v"], **mean),
        node("Add", ["v", "epsilon"], ["e"]),
        node("Sqrt", ["e"], ["r"]),
    ]
    if quotient == "Div":
        nodes.append(node("Div", ["d", "r"], ["n"]))
    else:
        nodes += [node("Reciprocal", ["r"], ["i"]), node("Mul", ["i", "d"], ["n"])]
    nodes += [node("Mul", ["n", "scale"], ["s"]), node("Add", ["s", "shift"], ["y"])]
    return model(nodes, [tensor("x", [2, 4, 8])], ["y"], constants, opset=opset)


@pytest.mark.parametrize("square", ["Pow", "Mul"])
@pytest.mark.parametrize("quotient", ["Div", "Reciprocal"])
@pytest.mark.parametrize("opset", [11, 18])
def test_layer_norm_is_found(square: str, quotient: str, opset: int) -> None:
    graph = run(written_out([-1], square, quotient, opset=opset))
    (norm,) = graph.nodes
    assert norm.op == "LayerNormalization"
    assert norm.attributes["epsilon"] == pytest.approx(1e-3)
    np.testing.assert_array_equal(graph.constants[norm.inputs[1]], random((8,), 1))
    np.testing.assert_array_equal(graph.constants[norm.inputs[2]], random((8,), 2))


@pytest.mark.parametrize("width", [(8,), (4, 8), (1, 4, 8), (4, 1), ()])
def test_layer_norm_over_two_axes_is_found(width: tuple[int, ...]) -> None:
    assert ops(run(written_out([1, 2], width=width))) == ["LayerNormalization"]


@pytest.mark.parametrize("name", ["epsilon", "two"])
def test_an_epsilon_or_exponent_of_more_axes_adds_them(name: str) -> None:
    proto = written_out([-1])
    (number,) = (tensor for tensor in proto.graph.initializer if tensor.name == name)
    number.dims[:] = [1, 1, 1, 1]
    assert "LayerNormalization" not in ops(run(proto))


def test_scale_of_each_row_stays_outside() -> None:
    assert ops(run(written_out([-1], width=(4, 8)))) == ["LayerNormalization", "Mul", "Add"]


def test_norm_over_another_axis_stays_written_out() -> None:
    assert "LayerNormalization" not in ops(run(written_out([1])))


def test_norm_of_channels_is_found_where_they_are_last() -> None:
    constants: dict[str, Any] = {"w": random((6, 3, 2, 2)), "axes": np.array([1]), "epsilon": np.float32(1e-5)}
    constants |= {"scale": random((6, 1, 1), 1), "shift": random((6, 1, 1), 2), "two": np.float32(2)}
    nodes = [
        node("Conv", ["x", "w"], ["c"], strides=[2, 2]),
        node("ReduceMean", ["c", "axes"], ["m"]),
        node("Sub", ["c", "m"], ["d"]),
        node("Pow", ["d", "two"], ["q"]),
        node("ReduceMean", ["q", "axes"], ["v"]),
        node("Add", ["v", "epsilon"], ["e"]),
        node("Sqrt", ["e"], ["r"]),
        node("Div", ["d", "r"], ["n"]),
        node("Mul", ["scale", "n"], ["s"]),
        node("Add", ["s", "shift"], ["y"]),
    ]
    graph = run(model(nodes, [tensor("x", [2, 3, 8, 8])], ["y"], constants))
    assert ops(graph) == ["Transpose", "Conv*", "LayerNormalization", "Transpose"]
