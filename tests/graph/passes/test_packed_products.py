"""Products with 4-bit constants, which DequantizeLinear gives the model: on the bits as they are."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.graph.onnx_models import model, node, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph.passes.packed_products import use_packed_products

DEPTH, COLUMNS = 37, 10
RANGES = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128)}


def dequantized(
    dtype: Any, parameters: tuple[int, ...], axis: int, block: int, *, zeros: bool, is_transposed: bool = False
) -> dict[str, Any]:
    """Constants of a DequantizeLinear, and its attributes."""
    rng = np.random.default_rng(3)
    low, end = RANGES[np.dtype(dtype).name]
    shape = (COLUMNS, DEPTH) if is_transposed else (DEPTH, COLUMNS)
    constants: dict[str, Any] = {
        "w": rng.integers(low, end, shape).astype(dtype),
        "scales": rng.uniform(0.01, 0.1, parameters).astype(np.float32),
    }
    if zeros:
        constants["zeros"] = rng.integers(low, end, parameters).astype(dtype)
    return {"constants": constants, "attributes": {"axis": axis} | ({"block_size": block} if block else {})}


def product(given: dict[str, Any], way: str = "MatMul") -> ModelProto:
    nodes = [node("DequantizeLinear", list(given["constants"]), ["f"], **given["attributes"])]
    constants = dict(given["constants"])
    if way == "Transpose":
        nodes += [node("Transpose", ["f"], ["t"]), node("MatMul", ["x", "t"], ["y"])]
    elif way == "Gemm":
        nodes.append(node("Gemm", ["x", "f", "bias"], ["y"], transB=1))
        constants["bias"] = np.linspace(-1, 1, COLUMNS, dtype=np.float32)
    else:
        nodes.append(node("MatMul", ["x", "f"], ["y"]))
    return model(nodes, [tensor("x", [3, DEPTH])], ["y"], constants, opset=21)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("parameters", "axis", "block"), [((), 0, 0), ((COLUMNS,), 1, 0), ((3, COLUMNS), 0, 16), ((1, COLUMNS), -2, 64)]
)
def test_blocks_along_the_depth_are_packed(
    dtype: Any, zeros: bool, parameters: tuple[int, ...], axis: int, block: int
) -> None:
    found = run(product(dequantized(dtype, parameters, axis, block, zeros=zeros)))
    assert ops(found) == ["MatMulPacked*"]
    packed, scales = (found.constants[name] for name in found.nodes[0].inputs[1:3])
    assert (packed.dtype.name, packed.shape) == ("uint8", (-(-DEPTH // 2), COLUMNS))
    assert scales.shape == (-(-DEPTH // block) if block else 1, COLUMNS)


@pytest.mark.parametrize("way", ["Transpose", "Gemm"])
@pytest.mark.parametrize(("parameters", "axis", "block"), [((COLUMNS, 3), 1, 16), ((COLUMNS,), 0, 0)])
def test_transposed_weights_are_packed(way: str, parameters: tuple[int, ...], axis: int, block: int) -> None:
    given = dequantized(ml_dtypes.uint4, parameters, axis, block, zeros=True, is_transposed=True)
    assert ops(run(product(given, way)))[0] == "MatMulPacked*"


def test_bytes_in_blocks_are_packed() -> None:
    found = run(product(dequantized(np.int8, (3, COLUMNS), 0, 16, zeros=True)))
    assert ops(found) == ["MatMulPacked*"]
    assert found.constants[found.nodes[0].inputs[1]].shape == (DEPTH, COLUMNS)


@pytest.mark.parametrize(
    ("dtype", "parameters", "axis", "block"),
    [(ml_dtypes.uint4, (DEPTH, 1), 1, 16), (ml_dtypes.int4, (DEPTH,), 0, 0), (np.int8, (COLUMNS,), 1, 0)],
    ids=["blocks along the columns", "a scale for each row", "bytes without blocks"],
)
def test_other_layouts_become_floats(dtype: Any, parameters: tuple[int, ...], axis: int, block: int) -> None:
    assert ops(run(product(dequantized(dtype, parameters, axis, block, zeros=False)))) == ["MatMul"]


def test_weights_that_something_else_reads_too_stay_for_it() -> None:
    proto = product(dequantized(ml_dtypes.int4, (3, COLUMNS), 0, 16, zeros=False))
    proto.graph.node.append(node("Neg", ["f"], ["z"]))
    proto.graph.output.append(tensor("z", [DEPTH, COLUMNS]))
    found = run(proto, [use_packed_products])
    assert sorted(ops(found)) == ["DequantizeLinear", "MatMulPacked*", "Neg"]


def test_a_constant_product_is_left_to_folding() -> None:
    given = dequantized(ml_dtypes.int4, (3, COLUMNS), 0, 16, zeros=False)
    proto = product(given)
    proto.graph.node[1].input[0] = "known"
    proto.graph.node.append(node("Add", ["y", "x"], ["z"]))
    proto.graph.input[0].CopyFrom(tensor("x", [3, COLUMNS]))
    proto.graph.output[0].name = "z"
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((3, DEPTH), np.float32), "known"))
    assert ops(run(proto)) == ["Add"]
