"""One form for what ONNX can say in several ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.onnx_models import model, node, random, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph.passes.canonical import canonicalize
from tilewright.graph.passes.reshapes import merge_movements


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shape"),
    [
        ("Flatten", ["x"], {"axis": 2}, (2, 12)),
        ("Squeeze", ["x"], {}, (2, 3, 4)),
        ("Squeeze", ["x", "axis"], {}, (2, 3, 4)),
        ("Unsqueeze", ["x", "axis"], {}, (2, 1, 1, 3, 4)),
        ("Reshape", ["x", "shape"], {}, (2, 1, 12)),
    ],
)
def test_change_of_shape_is_a_fixed_reshape(
    op: str, inputs: list[str], attributes: dict[str, Any], shape: tuple[int, ...]
) -> None:
    constants = {"axis": np.array([1]), "shape": np.array([0, 0, -1])}
    graph = run(
        model([node(op, inputs, ["y"], **attributes)], [tensor("x", [2, 1, 3, 4])], ["y"], constants), [canonicalize]
    )
    (reshape,) = graph.nodes
    assert reshape.op == "Reshape"
    assert tuple(graph.constants[reshape.inputs[1]].tolist()) == shape


def test_squeeze_with_axes_as_attribute() -> None:
    graph = run(
        model([node("Squeeze", ["x"], ["y"], axes=[1])], [tensor("x", [2, 1, 3])], ["y"], opset=11), [canonicalize]
    )
    assert ops(graph) == ["Reshape"]


@pytest.mark.parametrize("transposes", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0), (2.0, 0.0)])
def test_gemm_is_matmul_and_add(transposes: tuple[int, int], alpha: float, beta: float) -> None:
    a = [4, 3] if transposes[0] else [3, 4]
    b = (5, 4) if transposes[1] else (4, 5)
    gemm = node("Gemm", ["x", "w", "b"], ["y"], transA=transposes[0], transB=transposes[1], alpha=alpha, beta=beta)
    graph = run(model([gemm], [tensor("x", a)], ["y"], {"w": random(b), "b": random((5,), 1)}), [canonicalize])
    expected = ["Transpose"] * transposes[0] + ["MatMul"] + ["Add"] * (beta != 0)
    assert ops(graph) == expected


def test_gemm_of_computed_matrices() -> None:
    gemm = node("Gemm", ["x", "z", "b"], ["y"], transB=1, alpha=0.5)
    inputs = [tensor("x", [3, 4]), tensor("z", [5, 4]), tensor("b", [1, 5])]
    assert ops(run(model([gemm], inputs, ["y"]), [canonicalize])) == ["Transpose", "Mul", "MatMul", "Add"]


@pytest.mark.parametrize(
    "proto",
    [
        node("DepthToSpace", ["x"], ["y"], blocksize=2),
        node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="CRD"),
        node("SpaceToDepth", ["x"], ["y"], blocksize=2),
    ],
)
def test_blocks_are_moved_by_transposes(proto: Any) -> None:
    assert ops(run(model([proto], [tensor("x", [2, 8, 4, 6])], ["y"]), [canonicalize])) == [
        "Reshape",
        "Transpose",
        "Reshape",
    ]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize(("axis", "expected"), [(1, 3), (2, 1), (-1, 1), (0, 3)])
def test_old_softmax_has_one_axis(op: str, axis: int, expected: int) -> None:
    graph = run(model([node(op, ["x"], ["y"], axis=axis)], [tensor("x", [2, 3, 4])], ["y"], opset=11), [canonicalize])
    assert len(graph.nodes) == expected
    (softmax,) = [n for n in graph.nodes if n.op == op]
    assert softmax.opset == 13
    assert softmax.attributes["axis"] == -1


class TestMovements:
    def test_reshapes_become_one(self) -> None:
        nodes = [node("Reshape", ["x", "a"], ["h"]), node("Reshape", ["h", "b"], ["y"])]
        constants = {"a": np.array([6, 4]), "b": np.array([3, 8])}
        graph = run(model(nodes, [tensor("x", [2, 3, 4])], ["y"], constants), [canonicalize, merge_movements])
        assert ops(graph) == ["Reshape"]

    def test_reshape_back_goes(self) -> None:
        nodes = [node("Reshape", ["x", "a"], ["h"]), node("Reshape", ["h", "b"], ["g"]), node("Neg", ["g"], ["y"])]
        constants = {"a": np.array([6, 4]), "b": np.array([2, 3, 4])}
        assert ops(run(model(nodes, [tensor("x", [2, 3, 4])], ["y"], constants), [canonicalize, merge_movements])) == [
            "Neg"
        ]

    def test_transpose_of_ones_is_a_reshape(self) -> None:
        nodes = [node("Transpose", ["x"], ["y"], perm=[1, 0, 3, 2])]
        assert ops(run(model(nodes, [tensor("x", [1, 4, 1, 3])], ["y"]), [merge_movements])) == ["Reshape"]
        assert ops(run(model(nodes, [tensor("x", [1, 4, 2, 3])], ["y"]), [merge_movements])) == ["Transpose"]

    def test_shuffle_of_channels_in_the_other_layout_is_one_transpose(self) -> None:
        nodes = [
            node("Transpose", ["x"], ["g"], perm=[0, 4, 3, 1, 2]),  # [N, H, W, group, c] as [N, c, group, H, W]
            node("Reshape", ["g", "shape"], ["h"]),
            node("Transpose", ["h"], ["y"], perm=[0, 2, 3, 1]),
        ]
        proto = model(nodes, [tensor("x", [2, 5, 6, 3, 4])], ["y"], {"shape": np.array([2, 12, 5, 6])})
        graph = run(proto, [canonicalize, merge_movements])
        assert ops(graph) == ["Transpose", "Reshape"]
        assert graph.nodes[0].attributes["perm"] == (0, 1, 2, 4, 3)
