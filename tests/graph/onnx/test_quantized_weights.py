"""MatMulNBits, as onnxruntime's quantizers write it: imported with its weights as they are, and the same results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from tests.graph.onnx_models import model, node, tensor
from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import optimize
from tilewright.network import InferenceSession, compile_network

OPSETS = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]


@dataclass
class NBits:
    """A product of data [*rows, depth] with packed weights."""

    rows: tuple[int, ...]
    depth: int
    columns: int
    block: int = 32
    bits: int = 4
    zeros: str = "none"
    bias: bool = False
    dtype: Any = np.float32
    groups: NDArray[np.int32] | None = None
    attributes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.depth * 1000 + self.columns)
        self.num_blocks = -(-self.depth // self.block)
        num_bytes = -(-self.num_blocks * self.bits // 8)
        blocks = (self.columns, self.num_blocks)
        self.constants: dict[str, Any] = {
            "B": rng.integers(0, 256, (*blocks, self.block * self.bits // 8)).astype(np.uint8),
            "scales": rng.uniform(-0.1, 0.1, blocks[0] * blocks[1]).astype(self.dtype),
        }
        if self.zeros == "packed":
            self.constants["zeros"] = rng.integers(0, 256, self.columns * num_bytes).astype(np.uint8)
        elif self.zeros == "floats":
            self.constants["zeros"] = rng.uniform(0, 15, blocks[0] * blocks[1]).astype(self.dtype)
        if self.groups is not None:
            self.constants["groups"] = self.groups
        if self.bias:
            self.constants["bias"] = rng.standard_normal(self.columns).astype(self.dtype)
        self.x = rng.standard_normal((*self.rows, self.depth)).astype(self.dtype)

    def model(self, **fields: Any) -> ModelProto:
        inputs = [name if name in {"x"} | self.constants.keys() else "" for name in self._names]
        while not inputs[-1]:
            inputs.pop()
        attributes = {"K": self.depth, "N": self.columns, "block_size": self.block, "bits": self.bits}
        product = node("MatMulNBits", inputs, ["y"], domain="com.microsoft", **attributes | self.attributes)
        elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        given, result = (tensor("x", self.x.shape, elem_type), tensor("y", (*self.rows, self.columns), elem_type))
        return model([product], [given], [result], self.constants, opset_imports=OPSETS, ir_version=8, **fields)

    _names = ("x", "B", "scales", "zeros", "groups", "bias")

    def by_numpy(self) -> NDArray[np.float64]:
        """What the operator says, in float64."""

        def unpacked(values: Any) -> NDArray[np.float64]:
            parts = [values >> n & ((1 << self.bits) - 1) for n in range(0, 8, self.bits)]
            return np.stack(parts, -1).reshape(self.columns, -1).astype(np.float64)

        groups = np.arange(self.depth) // self.block if self.groups is None else self.groups
        zeros: Any = np.full((self.columns, self.num_blocks), 1 << (self.bits - 1))
        if self.zeros == "packed":
            zeros = unpacked(self.constants["zeros"])
        elif self.zeros == "floats":
            zeros = self.constants["zeros"].reshape(self.columns, -1).astype(np.float64)
        scales = self.constants["scales"].reshape(self.columns, -1).astype(np.float64)
        weights = (unpacked(self.constants["B"])[:, : self.depth] - zeros[:, groups]) * scales[:, groups]
        result: NDArray[np.float64] = self.x.astype(np.float64) @ weights.T
        return result + self.constants["bias"].astype(np.float64) if self.bias else result


CASES = {
    "one row": NBits((1,), 64, 64),
    "odd columns, a block that is not full": NBits((3,), 80, 33, zeros="packed", bias=True),
    "batches": NBits((2, 3), 50, 7, block=16, zeros="packed"),
    "a vector": NBits((), 32, 20),
    "one column": NBits((2,), 16, 1, block=16, zeros="packed"),
    "an odd depth": NBits((5,), 129, 40, block=64, zeros="floats"),
    "a depth of one": NBits((1,), 1, 3, block=16, zeros="packed"),
    "a block longer than the depth": NBits((1, 1, 9), 17, 31, block=128, zeros="packed"),
    "bytes": NBits((4,), 63, 48, bits=8, zeros="packed"),
    "two bits": NBits((2,), 61, 48, block=16, bits=2),
    "halves": NBits((3,), 64, 16, block=16, dtype=np.float16, bias=True),
    "accuracy": NBits((2,), 64, 16, attributes={"accuracy_level": 1}),
    "rows out of order": NBits((2,), 64, 16, block=16, groups=(np.arange(64, dtype=np.int32) * 7 % 64) // 16),
    "rows in any groups": NBits((2,), 64, 16, block=16, groups=np.arange(64, dtype=np.int32) ** 2 % 4),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_results_are_those_of_onnxruntime(case: NBits) -> None:
    proto = case.model()
    theirs = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = theirs.run(None, {"x": case.x})
    (found,) = InferenceSession(compile_network(proto, threads=1)).run(None, {"x": case.x})
    assert found.dtype == expected.dtype
    tolerance = 5e-3 if case.dtype is np.float16 else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * 10)
    np.testing.assert_allclose(found, case.by_numpy(), rtol=tolerance, atol=tolerance * 10)


def test_zero_points_follow_the_groups_of_rows() -> None:
    case = NBits((2,), 64, 16, block=16, zeros="packed", groups=(np.arange(64, dtype=np.int32) * 5 % 64) // 16)
    (found,) = InferenceSession(compile_network(case.model(), threads=1)).run(None, {"x": case.x})
    np.testing.assert_allclose(found, case.by_numpy(), rtol=1e-5, atol=1e-5)


def test_weights_stay_as_small_as_the_model_has_them() -> None:
    case = NBits((1,), 256, 96, zeros="packed")
    graph = optimize(load_model(case.model()))
    assert [each.op for each in graph.nodes] == ["MatMulPacked"]
    sizes = [graph.constants[name].nbytes for name in graph.nodes[0].inputs[1:]]
    assert sizes == [256 * 96 // 2, 8 * 96 * 4, 8 * 96]


def test_zero_points_in_the_middle_are_left_out() -> None:
    case = NBits((1,), 64, 4, zeros="packed")
    case.constants["zeros"] = np.full(4, 0x88, np.uint8)
    (product,) = load_model(case.model()).nodes
    assert len(product.inputs) == 3


def _given(case: NBits, name: str) -> ModelProto:
    """The model with a constant as an input."""
    proto = case.model()
    kept = [tensor_ for tensor_ in proto.graph.initializer if tensor_.name != name]
    (moved,) = (tensor_ for tensor_ in proto.graph.initializer if tensor_.name == name)
    proto.graph.input.append(tensor(name, list(moved.dims), moved.data_type))
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    return proto


@pytest.mark.parametrize("name", ["B", "scales", "zeros"])
def test_weights_that_are_computed_give_the_same(name: str) -> None:
    case = NBits((2,), 64, 4, zeros="packed")
    feed = {"x": case.x, name: case.constants[name]}
    (found,) = InferenceSession(compile_network(_given(case, name), threads=1)).run(None, feed)
    np.testing.assert_allclose(found, case.by_numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"bits": 3}, "weights of 3 bits"),
        ({"block_size": 24}, "block_size is 16, 32"),
        ({"K": 0}, "at least 1"),
        ({"N": 5}, "B has 5 x 2 x 16 bytes"),
        ({"K": 63}, "K = 63 long"),
        ({"strange": 1}, "does not know"),
    ],
)
def test_attributes_that_do_not_fit_are_refused(attributes: dict[str, int], reason: str) -> None:
    with pytest.raises((ModelError, UnsupportedOperatorError), match=reason):
        load_model(NBits((1,), 64, 4, attributes=attributes).model())


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("scales", np.zeros(7, np.float32), "4 x 2 blocks"),
        ("scales", np.zeros(8, np.int32), "there are floats"),
        ("zeros", np.zeros(5, np.uint8), "zero_points has 4 x 1 bytes"),
        ("B", np.zeros((4, 2, 16), np.int8), "B is uint8"),
        ("groups", np.full(64, 2, np.int32), "g_idx has a block from 0 to 1"),
    ],
)
def test_operands_that_do_not_fit_are_refused(name: str, value: Any, reason: str) -> None:
    case = NBits((1,), 64, 4, zeros="packed")
    case.constants[name] = value
    with pytest.raises(ModelError, match=reason):
        load_model(case.model())


def test_data_of_another_length_are_refused() -> None:
    proto = NBits((1,), 64, 4).model()
    proto.graph.input[0].CopyFrom(tensor("x", [1, 32]))
    with pytest.raises(ModelError, match="K = 64 long"):
        load_model(proto)


def test_no_rows_give_no_rows() -> None:
    case = NBits((0,), 64, 4)
    (found,) = InferenceSession(compile_network(case.model(), threads=1)).run(None, {"x": case.x})
    assert found.shape == (0, 4)


@pytest.mark.parametrize("op", ["MatMulFpQ4", "QMoE"])
def test_other_operators_of_onnxruntime_are_refused_by_name(op: str) -> None:
    proto = model([node(op, ["x"], ["y"], domain="com.microsoft")], [tensor("x", [2])], ["y"], opset_imports=OPSETS)
    with pytest.raises(UnsupportedOperatorError, match=f"no operator {op} of domain com.microsoft"):
        load_model(proto)


def test_weights_in_a_branch_that_is_chosen_when_it_runs_give_the_same() -> None:
    case = NBits((1,), 64, 4)
    product = case.model().graph
    del product.input[:]
    branch = node("If", ["c"], ["z"], then_branch=product, else_branch=product)
    inputs = [tensor("c", [], TensorProto.BOOL), tensor("x", [1, 64])]
    with pytest.warns(UserWarning, match="no kernel .*: If"):
        session = InferenceSession(model([branch], inputs, ["z"], opset_imports=OPSETS), threads=1)
    (found,) = session.run(None, {"c": np.array(True), "x": case.x})
    np.testing.assert_allclose(found, case.by_numpy(), rtol=1e-5, atol=1e-5)
