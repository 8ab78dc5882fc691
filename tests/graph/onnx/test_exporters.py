"""Networks as tools export them: imported, compiled but for what has no kernel, and computed as onnxruntime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.graph.onnx.exporter_models import EXPORTS
from tests.graph.onnx_models import model, node, random, tensor
from tilewright.graph.onnx import load_model
from tilewright.network import partition_network
from tilewright.partition import Fallback, Partition
from tilewright.testing.partitions import run_partition


def expected_outputs(name: str, feed: dict[str, Any]) -> dict[str, Any]:
    """By onnxruntime: the reference evaluator of ONNX is no judge of these, for it does not follow old operators."""
    outputs = [output.name for output in EXPORTS[name].model.graph.output]
    content = EXPORTS[name].model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return dict(zip(outputs, session.run(None, feed), strict=True))


def inputs_of(partition: Partition) -> dict[str, Any]:
    """Normal floats, and 0 or 1 for whole numbers, which are tokens and masks."""
    generator = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for name in partition.graph.inputs:
        known = partition.graph.types[name]
        assert known is not None
        is_float = known.dtype == "float32"
        array = generator.standard_normal(known.shape) if is_float else generator.integers(0, 2, known.shape)
        found[name] = array.astype(known.dtype)
    return found


def fallbacks(partition: Partition) -> dict[str, str]:
    return {part.node.op: part.reason for part in partition.parts if isinstance(part, Fallback)}


# What lies in the middle of two steps may be rounded either way, for the last bits of a float decide.
STEPS = {"quantizer with QuantizeLinear and DequantizeLinear, opset 13": 0.1}


@pytest.mark.parametrize("name", EXPORTS)
def test_an_exported_network_computes_what_onnxruntime_does(name: str) -> None:
    export = EXPORTS[name]
    partition = partition_network(export.model, export.shapes)
    assert tuple(fallbacks(partition)) == export.fallbacks
    feed = inputs_of(partition)
    expected = expected_outputs(name, feed)
    for output, value in run_partition(partition, feed).items():
        assert value.dtype == expected[output].dtype
        if name in STEPS:
            is_close = np.isclose(value, expected[output], rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(value, expected[output], rtol=1e-4, atol=1.001 * STEPS[name])
            assert is_close.mean() > 0.98
        else:
            np.testing.assert_allclose(value, expected[output], rtol=1e-4, atol=1e-4)


def test_what_reads_a_value_of_unknown_shape_says_where_that_comes_from() -> None:
    reasons = fallbacks(partition_network(EXPORTS["places of elements, opset 17"].model))
    assert reasons == {
        "NonZero": "the type of nz is known only when the network runs",
        "Transpose": "it reads nz, whose type is known only when NonZero has run",
        "GatherND": "it reads places, whose type is known only when NonZero has run",
    }


@pytest.mark.parametrize("opset", [11, 12, 13, 18])
@pytest.mark.parametrize("roi", ["", "none"])
@pytest.mark.parametrize("rest", [["scales"], ["scales", ""], ["", "sizes"], ["none", "sizes"]])
def test_operands_of_a_resize_are_left_out_by_name_or_as_empty_tensors(opset: int, roi: str, rest: list[str]) -> None:
    constants = {
        "none": np.zeros(0, np.float32),
        "scales": np.array([1, 1, 2, 3], np.float32),
        "sizes": np.array([1, 2, 8, 15]),
    }
    resize = node("Resize", ["x", roi, *rest], ["y"], mode="nearest")
    partition = partition_network(model([resize], [tensor("x", [1, 2, 4, 5])], ["y"], constants, opset=opset))
    assert not fallbacks(partition)
    x = random((1, 2, 4, 5))
    np.testing.assert_array_equal(run_partition(partition, {"x": x})["y"], x.repeat(2, axis=2).repeat(3, axis=3))


def test_resize_of_tensorflow_1_takes_the_middle_of_places() -> None:
    resize = node("Resize", ["x", "none", "scales"], ["y"], coordinate_transformation_mode="tf_half_pixel_for_nn")
    constants = {"none": np.zeros(0, np.float32), "scales": np.array([1, 1, 1, 0.5], np.float32)}
    partition = partition_network(model([resize], [tensor("x", [1, 1, 1, 6])], ["y"], constants, opset=11))
    x = random((1, 1, 1, 6))
    np.testing.assert_array_equal(run_partition(partition, {"x": x})["y"], x[..., 1::2])


@pytest.mark.parametrize("ir_version", [3, 8])
def test_an_initializer_that_is_also_an_input_is_a_constant(ir_version: int) -> None:
    text = "net (float[2, 3] x, float[a, b] w) => (float[2, 4] y) { y = MatMul(x, w) }"
    proto = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : 13]> {text}')
    proto.graph.initializer.append(onnx.numpy_helper.from_array(random((3, 4)), "w"))
    graph = load_model(proto)
    assert graph.inputs == ("x",)
    np.testing.assert_array_equal(graph.constants["w"], random((3, 4)))


@pytest.mark.parametrize("op", ["Reshape", "Expand"])
def test_an_empty_shape_makes_no_node_fall_back(op: str) -> None:
    nodes = [node("ReduceMax", ["x"], ["m"], keepdims=0), node(op, ["m", "scalar"], ["y"])]
    proto = model(nodes, [tensor("x", [2, 3])], ["y"], {"scalar": np.zeros(0, np.int64)}, opset=13)
    partition = partition_network(proto)
    assert not fallbacks(partition)
    x = random((2, 3))
    np.testing.assert_array_equal(run_partition(partition, {"x": x})["y"], x.max())
