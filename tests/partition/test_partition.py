"""The partition of small networks: what shares a kernel, what does not, and that all of it computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.graph.onnx_models import random, reference
from tilewright import te
from tilewright.graph import Graph
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import LAST_PASSES, PASSES, optimize
from tilewright.operators import OWN, Call, Node, TensorType, operator
from tilewright.partition import Fallback, Partition, View, partition
from tilewright.te import Reduce
from tilewright.testing.partitions import run_partition


def model(text: str, opset: int = 18) -> ModelProto:
    """A model in ONNX's own syntax. Inputs that begin with a W are weights: constants with random numbers."""
    parsed = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> net {text}')
    weights = [value for value in parsed.graph.input if value.name.startswith("W")]
    for seed, value in enumerate(weights):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = random(shape, seed) / np.float32(np.sqrt(max(1, np.prod(shape[:-1]))))
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        parsed.graph.input.remove(value)
    return parsed


def cut(proto: ModelProto, *, optimized: bool = False) -> Partition:
    """The partition, once it is known to compute what the model does."""
    graph = load_model(proto)
    found = partition(optimize(graph, PASSES if optimized else LAST_PASSES))
    rng = np.random.default_rng(0)
    inputs = {}
    for name in graph.inputs:
        known = graph.types[name]
        assert known is not None
        numbers = rng.standard_normal(known.shape) if known.dtype == "float32" else rng.integers(0, 4, known.shape)
        inputs[name] = numbers.astype(known.dtype)
    computed = run_partition(found, inputs)
    for name, expected in reference(proto, inputs).items():
        np.testing.assert_allclose(computed[name], expected, rtol=2e-4, atol=2e-5, err_msg=name)
    return found


def kernels(found: Partition) -> list[str]:
    return [part.task.name for part in found.kernels]


def views(found: Partition) -> list[View]:
    return [part for part in found.parts if isinstance(part, View)]


def stage_shapes(found: Partition, kernel: int = 0) -> dict[str, tuple[int, ...]]:
    return {stage.name: stage.shape for stage in found.kernels[kernel].task.stages}


# --- epilogues -------------------------------------------------------------------------------------------------------


def test_a_product_takes_bias_activation_and_residual() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[5,6] r, float[8,6] W, float[6] Wb) => (float[5,6] y) {
            p = MatMul(x, W)
            b = Add(p, Wb)
            a = Relu(b)
            y = Add(r, a)
        }"""
        )
    )
    assert kernels(found) == ["matmul_add_relu"]
    assert stage_shapes(found) == {"sum0": (5, 6), "map0": (5, 6)}
    assert [tensor.is_constant for tensor in found.kernels[0].task.inputs].count(True) == 2


def test_a_chain_that_parts_and_joins_again_is_one_stage() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[8,6] W, float[6] Wb) => (float[5,6] y) {
            p = MatMul(x, W)
            h = Add(p, Wb)
            root = Constant <value = float {1.4142135}> ()
            one = Constant <value = float {1}> ()
            half = Constant <value = float {0.5}> ()
            d = Div(h, root)
            e = Erf(d)
            s = Add(e, one)
            m = Mul(h, s)
            y = Mul(m, half)
        }"""
        )
    )
    assert kernels(found) == ["matmul_add_div_erf_mul"]
    assert list(stage_shapes(found)) == ["sum0", "map0"]


def test_numbers_are_part_of_the_expression_and_not_inputs() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[8,6] W) => (float[5,6] y) {
            p = MatMul(x, W)
            low = Constant <value = float {-0.5}> ()
            high = Constant <value = float {0.5}> ()
            c = Clip(p, low, high)
            third = Constant <value = float[1,1] {3}> ()
            y = Mul(c, third)
        }"""
        )
    )
    assert kernels(found) == ["matmul_clip_mul"]
    assert len(found.kernels[0].inputs) == 2


def test_the_longer_branch_takes_the_addition() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[8,8] Wa, float[8,8] Wb, float[8,8] Wc) => (float[5,8] y) {
            first = MatMul(x, Wa)
            active = Relu(first)
            second = MatMul(active, Wb)
            shortcut = MatMul(x, Wc)
            added = Add(second, shortcut)
            y = Relu(added)
        }"""
        )
    )
    assert kernels(found) == ["matmul_relu", "matmul", "matmul_add_relu"]


def test_a_value_that_others_read_ends_the_kernel() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[8,8] Wa, float[8,8] Wb) => (float[5,8] y, float[5,8] b) {
            a = MatMul(x, Wa)
            b = Relu(a)
            c = MatMul(b, Wb)
            y = Add(c, b)
        }"""
        )
    )
    assert kernels(found) == ["matmul_relu", "matmul_add"]
    assert found.kernels[0].outputs == ("b",)


def test_an_output_of_the_network_ends_the_kernel() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[8,8] W) => (float[5,8] a, float[5,8] y) {
            a = MatMul(x, W)
            y = Relu(a)
        }"""
        )
    )
    assert kernels(found) == ["matmul", "relu"]


def test_costly_arithmetic_is_not_repeated_inside_a_product() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[8,8] W) => (float[5,8] y) {
            e = Exp(x)
            y = MatMul(e, W)
        }"""
        )
    )
    assert kernels(found) == ["exp", "matmul"]


def test_what_only_the_epilogue_reads_is_computed_in_it() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[5,8] gate, float[8,8] W) => (float[5,8] y) {
            p = MatMul(x, W)
            s = Sigmoid(gate)
            y = Mul(p, s)
        }"""
        )
    )
    assert kernels(found) == ["matmul_sigmoid_mul"]


# --- reshapes and transpositions -------------------------------------------------------------------------------------


def test_arithmetic_goes_before_a_reshape() -> None:
    found = cut(
        model(
            """(float[6,8] x, float[2,3,10] r, float[8,10] W, float[10] Wb, float[3,10] Wc) => (float[2,3,10] y) {
            p = MatMul(x, W)
            shape = Constant <value = int64[3] {2, 3, 10}> ()
            s = Reshape(p, shape)
            b = Add(s, Wb)
            c = Mul(b, Wc)
            y = Add(c, r)
        }"""
        )
    )
    assert kernels(found) == ["matmul_add_mul"]
    assert [view.input for view in views(found)] == ["r", "y.hoisted"]


def test_arithmetic_stays_with_the_deeper_operand() -> None:
    found = cut(
        model(
            """(float[6,10] r, float[2,3,8] x, float[8,10] W) => (float[2,3,10] y) {
            shape = Constant <value = int64[3] {2, 3, 10}> ()
            s = Reshape(r, shape)
            p = MatMul(x, W)
            y = Add(s, p)
        }"""
        )
    )
    assert kernels(found) == ["matmul_add"]
    assert found.kernels[0].outputs == ("y",)


def test_arithmetic_of_an_input_stays_with_what_follows() -> None:
    found = cut(
        model(
            """(float[6,8] x, float[8] W, float[8] Ws) => (float[2,3,8] y) {
            shape = Constant <value = int64[3] {2, 3, 8}> ()
            s = Reshape(x, shape)
            a = Add(s, W)
            y = LayerNormalization(a, Ws)
        }"""
        )
    )
    assert kernels(found) == ["add_layernormalization"]


def test_arithmetic_goes_before_a_transposition_and_a_reshape() -> None:
    found = cut(
        model(
            """(float[6,8] x, float[6,8] k, float[8,8] W, float[2,1,4] Wc) => (float[2,6,6] y) {
            p = MatMul(x, W)
            shape = Constant <value = int64[3] {6, 2, 4}> ()
            s = Reshape(p, shape)
            t = Transpose <perm = [1, 0, 2]> (s)
            scale = Constant <value = float {0.5}> ()
            m = Mul(t, scale)
            q = Add(m, Wc)
            ks = Reshape(k, shape)
            kt = Transpose <perm = [1, 2, 0]> (ks)
            y = MatMul(q, kt)
        }"""
        )
    )
    assert kernels(found) == ["matmul_mul_add", "transpose_matmul"]


ATTENTION = """(float[2,6,8] x, float[2,1,1,6] mask, float[8,8] Wq, float[8,8] Wk, float[8,8] Wv, float[8,8] Wo,
            float[8] Wb) => (float[2,6,8] y) {
            heads = Constant <value = int64[4] {2, 6, 2, 4}> ()
            q0 = MatMul(x, Wq)
            q1 = Add(Wb, q0)
            q2 = Reshape(q1, heads)
            q = Transpose <perm = [0, 2, 1, 3]> (q2)
            k0 = MatMul(x, Wk)
            k2 = Reshape(k0, heads)
            k = Transpose <perm = [0, 2, 3, 1]> (k2)
            v0 = MatMul(x, Wv)
            v2 = Reshape(v0, heads)
            v = Transpose <perm = [0, 2, 1, 3]> (v2)
            qk = MatMul(q, k)
            two = Constant <value = float {2}> ()
            scaled = Div(qk, two)
            masked = Add(scaled, mask)
            p = Softmax <axis = -1> (masked)
            pv = MatMul(p, v)
            c0 = Transpose <perm = [0, 2, 1, 3]> (pv)
            flat = Constant <value = int64[3] {2, 6, 8}> ()
            c = Reshape(c0, flat)
            o = MatMul(c, Wo)
            y = Add(o, x)
        }"""


@pytest.mark.parametrize("optimized", [False, True])
def test_attention_has_no_kernel_that_only_moves(optimized: bool) -> None:
    found = cut(model(ATTENTION), optimized=optimized)
    assert len(found.kernels) == 7
    assert not any(stage.name.startswith("move") for part in found.kernels for stage in part.task.stages)
    context = next(part for part in found.kernels if part.outputs == ("c0",))
    assert context.task.outputs[0].shape == (2, 6, 2, 4)
    assert len(context.task.stages) == 1


@pytest.mark.parametrize(
    "parts",
    [
        """cut = Constant <value = int64[3] {8, 8, 8}> ()
            q0, k0, v0 = Split <axis = 2> (a, cut)
            q1 = Reshape(q0, heads)
            k1 = Reshape(k0, heads)
            v1 = Reshape(v0, heads)
            q = Transpose <perm = [0, 2, 1, 3]> (q1)
            k = Transpose <perm = [0, 2, 3, 1]> (k1)
            v = Transpose <perm = [0, 2, 1, 3]> (v1)""",
        """all = Constant <value = int64[5] {2, 6, 3, 2, 4}> ()
            r = Reshape(a, all)
            t = Transpose <perm = [2, 0, 3, 1, 4]> (r)
            i0 = Constant <value = int64 {0}> ()
            i1 = Constant <value = int64 {1}> ()
            i2 = Constant <value = int64 {2}> ()
            q = Gather <axis = 0> (t, i0)
            k0 = Gather <axis = 0> (t, i1)
            k = Transpose <perm = [0, 1, 3, 2]> (k0)
            v = Gather <axis = 0> (t, i2)""",
    ],
    ids=["split", "gathers"],
)
@pytest.mark.parametrize("optimized", [False, True])
def test_queries_keys_and_values_of_one_product_are_read_where_they_are(parts: str, optimized: bool) -> None:
    proto = model(
        f"""(float[2,6,8] x, float[8,24] W, float[24] Wb) => (float[2,6,8] y) {{
            p = MatMul(x, W)
            a = Add(p, Wb)
            heads = Constant <value = int64[4] {{2, 6, 2, 4}}> ()
            {parts}
            qk = MatMul(q, k)
            w = Softmax <axis = -1> (qk)
            pv = MatMul(w, v)
            c = Transpose <perm = [0, 2, 1, 3]> (pv)
            flat = Constant <value = int64[3] {{2, 6, 8}}> ()
            y = Reshape(c, flat)
        }}"""
    )
    found = cut(proto, optimized=optimized)
    assert len(found.kernels) == 4
    assert found.kernels[0].task.name == "matmul_add"


def test_a_transposition_that_breaks_vectors_is_a_kernel() -> None:
    """A depthwise convolution reads its channels in vectors: they must lie together."""
    proto = model(
        """(float[1,32,9,9] x, float[32,1,3,3] W) => (float[1,32,7,7] y) {
            y = Conv <group = 32> (x, W)
        }"""
    )
    assert kernels(cut(proto, optimized=True)) == ["transpose", "conv", "transpose"]


def test_a_product_moves_its_input_in_passing() -> None:
    proto = model(
        """(float[1,3,9,9] x, float[16,3,3,3] W) => (float[1,16,9,9] y) {
            c = Conv <pads = [1, 1, 1, 1]> (x, W)
            y = Relu(c)
        }"""
    )
    found = cut(proto, optimized=True)
    assert kernels(found) == ["transpose_conv_relu", "transpose"]
    assert stage_shapes(found) == {"pad0": (1, 11, 11, 3), "sum0": (1, 9, 9, 16), "map0": (1, 9, 9, 16)}


def test_a_movement_goes_into_each_of_its_readers() -> None:
    found = cut(
        model(
            """(float[4,5] x, float[6,5] a, float[4,6] b) => (float[6,4] y, float[5,6] z) {
            t = Transpose(x)
            y = MatMul(a, t)
            z = MatMul(t, b)
        }"""
        )
    )
    assert kernels(found) == ["transpose_matmul", "transpose_matmul"]


def test_the_parts_of_a_split_are_read_where_they_are() -> None:
    found = cut(
        model(
            """(float[4,12] x, float[5,4] a) => (float[5,6] y, float[4,6] z) {
            first, second = Split <axis = 1, num_outputs = 2> (x)
            y = MatMul(a, first)
            e = Exp(second)
            z = Mul(e, second)
        }"""
        )
    )
    assert kernels(found) == ["slice_matmul", "slice_exp_mul"]
    assert [part.inputs for part in found.kernels] == [("a", "x"), ("x",)]


def test_padding_goes_into_the_convolution() -> None:
    found = cut(
        model(
            """(float[1,3,6,6] x, float[8,3,3,3] W) => (float[1,8,6,6] y) {
            pads = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> ()
            p = Pad(x, pads)
            y = Conv(p, W)
        }"""
        )
    )
    assert kernels(found) == ["pad_conv"]
    assert list(stage_shapes(found)) == ["pad0", "sum0"]


# --- finer shapes ----------------------------------------------------------------------------------------------------


def test_a_convolution_in_groups_is_tiled_with_what_follows() -> None:
    proto = model(
        """(float[1,8,5,5] x, float[1,12,5,5] r, float[12,2,3,3] W, float[12] Wb) => (float[1,12,5,5] y) {
            c = Conv <group = 4, pads = [1, 1, 1, 1]> (x, W, Wb)
            a = Relu(c)
            y = Add(a, r)
        }"""
    )
    found = cut(proto, optimized=True)
    (conv,) = [part for part in found.kernels if "conv" in part.task.name]
    assert [stage.shape for stage in conv.task.stages][-2:] == [(1, 5, 5, 4, 3), (1, 5, 5, 4, 3)]
    for name, tensor in zip((*conv.inputs, *conv.outputs), (*conv.task.inputs, *conv.task.outputs), strict=True):
        known = found.graph.types[name]
        assert known is not None
        assert known.shape == tensor.shape


def test_the_phases_of_a_transposed_convolution_are_axes_of_its_result() -> None:
    proto = model(
        """(float[1,4,3,3] x, float[4,6,4,4] W) => (float[1,6,6,6] y) {
            c = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1]> (x, W)
            y = Tanh(c)
        }"""
    )
    found = cut(proto, optimized=True)
    (conv,) = [part for part in found.kernels if "convtranspose" in part.task.name]
    assert [stage.shape for stage in conv.task.stages][-2:] == [(1, 3, 2, 3, 2, 6), (1, 3, 2, 3, 2, 6)]


# --- reductions and maps ---------------------------------------------------------------------------------------------


def test_a_norm_that_is_written_out_is_one_kernel() -> None:
    found = cut(
        model(
            """(float[4,5,8] a, float[4,5,8] b, float[8] W) => (float[4,5,8] y) {
            axis = Constant <value = int64[1] {-1}> ()
            x = Add(a, b)
            m = ReduceMean <keepdims = 1> (x, axis)
            d = Sub(x, m)
            s = Mul(d, d)
            v = ReduceMean <keepdims = 1> (s, axis)
            epsilon = Constant <value = float {0.00001}> ()
            e = Add(v, epsilon)
            root = Sqrt(e)
            n = Div(d, root)
            y = Mul(n, W)
        }"""
        )
    )
    assert kernels(found) == ["add_reducemean_sub_mul_sqrt_div"]
    assert sum(isinstance(stage.body, Reduce) for stage in found.kernels[0].task.stages) == 2


def test_reductions_that_are_not_of_rows_stay_apart() -> None:
    found = cut(
        model(
            """(float[1,8,5] x) => (float[1,1,5] y) {
            first = Constant <value = int64[1] {1}> ()
            s = ReduceSum <keepdims = 1> (x, first)
            c = Add(x, s)
            y = ReduceMax <keepdims = 1> (c, first)
        }"""
        )
    )
    assert kernels(found) == ["reducesum", "add_reducemax"]


@pytest.mark.parametrize(("op", "expected"), [("Neg", ["neg_reducesum"]), ("Exp", ["exp", "reducesum"])])
def test_only_cheap_arithmetic_goes_into_a_reduction_of_columns(op: str, expected: list[str]) -> None:
    found = cut(
        model(
            f"""(float[6,5] x) => (float[1,5] y) {{
            first = Constant <value = int64[1] {{0}}> ()
            e = {op}(x)
            y = ReduceSum <keepdims = 1> (e, first)
        }}"""
        )
    )
    assert kernels(found) == expected


def test_maps_that_only_one_reads_are_one_kernel() -> None:
    found = cut(
        model(
            """(float[4,5] x, int64[3] i, float[9,5] W, float[3,5] Wb) => (float[5,3] y) {
            g = Gather(W, i)
            a = Add(g, Wb)
            t = Transpose(a)
            s = Sigmoid(t)
            y = Mul(t, s)
        }"""
        )
    )
    assert kernels(found) == ["gather_add_transpose_sigmoid_mul"]
    assert list(stage_shapes(found)) == ["map0"]


def test_a_map_that_would_be_repeated_is_a_kernel() -> None:
    found = cut(
        model(
            """(float[1,5] x, float[4,5] z) => (float[4,5] y) {
            e = Exp(x)
            y = Add(z, e)
        }"""
        )
    )
    assert kernels(found) == ["exp", "add"]


def test_a_window_does_not_repeat_what_it_reads() -> None:
    proto = model(
        """(float[1,16,6,6] x) => (float[1,16,4,4] y) {
            e = Exp(x)
            y = AveragePool <kernel_shape = [3, 3]> (e)
        }"""
    )
    found = cut(proto, optimized=True)
    assert [part.task.name for part in found.kernels if "exp" in part.task.name] == ["exp"]


def test_maps_that_double_again_and_again_are_several_kernels() -> None:
    steps = [f"s{n} = Sigmoid(a{n}) a{n + 1} = Mul(s{n}, a{n})" for n in range(16)]
    found = cut(model(f"(float[3] a0) => (float[3] a16) {{ {' '.join(steps)} }}"))
    assert 1 < len(found.kernels) < 5


@pytest.mark.parametrize("num_tensors", [9, 300])
def test_many_tensors_are_joined_by_one_kernel(num_tensors: int) -> None:
    names = [f"x{n}" for n in range(num_tensors)]
    sizes = [n % 3 + 1 for n in range(num_tensors)]
    inputs = ", ".join(f"float[2,{size}] {name}" for size, name in zip(sizes, names, strict=True))
    text = f"({inputs}) => (float[2,{sum(sizes)}] y) {{ y = Concat <axis = 1> ({', '.join(names)}) }}"
    found = cut(model(text))
    assert [len(part.inputs) for part in found.kernels] == [num_tensors]


def test_joined_tensors_are_not_joined_again_in_one_loop() -> None:
    found = cut(
        model(
            """(float[2,3] a, float[2,3] b, float[2,3] c, float[2,3] d) => (float[2,18] y) {
            left = Concat <axis = 1> (a, b)
            right = Concat <axis = 1> (c, d)
            y = Concat <axis = 1> (left, right, a, d)
        }"""
        )
    )
    assert len(found.kernels) == 3


# --- views, fallbacks and several outputs ----------------------------------------------------------------------------


def test_reshapes_and_transpositions_of_nothing_are_views() -> None:
    found = cut(
        model(
            """(float[1,6,1,4] x) => (float[4,6] y, float[6,1,1,4] z) {
            shape = Constant <value = int64[2] {4, 6}> ()
            y = Reshape(x, shape)
            z = Transpose <perm = [1, 0, 2, 3]> (x)
        }"""
        )
    )
    assert [type(part) for part in found.parts] == [View, View]


def test_what_has_no_expression_falls_back_and_says_why() -> None:
    found = cut(
        model(
            """(float[2,3] x, float[3,3] W) => (int64[2,n] y, float[2,3] z) {
            p = MatMul(x, W)
            r = Relu(p)
            y = NonZero(r)
            z = Add(r, x)
        }"""
        )
    )
    (fallback,) = [part for part in found.parts if isinstance(part, Fallback)]
    assert fallback.node.op == "NonZero"
    assert fallback.reason == "the type of y is known only when the network runs"
    assert kernels(found) == ["matmul_relu", "add"]


def test_tensors_without_elements_fall_back() -> None:
    graph = Graph("empty", ("x",), ("y",), [Node("Relu", ("x",), ("y",), opset=18)], {}, {})
    graph.types.update(x=TensorType("float32", (0, 3)), y=TensorType("float32", (0, 3)))
    (part,) = partition(graph).parts
    assert isinstance(part, Fallback)
    assert part.reason == "x is a float32 tensor of shape (0, 3), which kernels do not hold"


@operator("Mistyped", domain=OWN)
def _mistyped(call: Call) -> te.Tensor:
    X = call.tensor(0)
    return te.compute((2, 2), lambda i, j: X[i, j], call.name())


def test_an_expression_of_another_type_than_the_graph_says_is_not_used() -> None:
    graph = Graph("mistyped", ("x",), ("y",), [Node("Mistyped", ("x",), ("y",), domain=OWN)], {}, {})
    graph.types.update(x=TensorType("float32", (3, 3)), y=TensorType("float32", (3, 3)))
    (part,) = partition(graph).parts
    assert isinstance(part, Fallback)
    assert "gives float32(2, 2) for y" in part.reason


def test_several_outputs_of_a_node_come_from_one_kernel() -> None:
    found = cut(
        model(
            """(float[1,2,6,6] x) => (float[1,2,3,3] y, int64[1,2,3,3] places) {
            m, places = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
            y = Relu(m)
        }"""
        )
    )
    assert [part.outputs for part in found.kernels] == [("m", "places"), ("y",)]


def test_nodes_that_nobody_reads_are_left_out() -> None:
    found = cut(
        model(
            """(float[3] x) => (float[3] y) {
            a = Exp(x)
            b = Neg(a)
            y = Relu(x)
        }"""
        )
    )
    assert kernels(found) == ["relu"]
    assert [node.op for node in found.graph.nodes] == ["Relu"]


# --- tasks -----------------------------------------------------------------------------------------------------------


def test_equal_layers_are_one_task_with_a_weight() -> None:
    found = cut(
        model(
            """(float[5,8] x, float[8,8] Wa, float[8] Wb, float[8,8] Wc, float[8] Wd, float[8,8] We) => (float[5,8] y) {
            a = MatMul(x, Wa)
            b = Add(a, Wb)
            c = Relu(b)
            d = MatMul(c, Wc)
            e = Add(Wd, d)
            f = Relu(e)
            y = MatMul(f, We)
        }"""
        )
    )
    assert [(item.task.name, item.weight) for item in found.tasks] == [("matmul_add_relu", 2), ("matmul", 1)]


def names(found: Partition, kernel: int) -> list[Any]:
    task = found.kernels[kernel].task
    axes: list[Sequence[te.Axis]] = [stage.axes for stage in task.stages]
    return [[t.name for t in (*task.inputs, *task.stages)], [[axis.name for axis in group] for group in axes]]


def test_records_of_a_task_fit_every_task_with_its_hash() -> None:
    """Schedules refer to stages and loops by name, so these follow from the computation alone."""
    one = cut(model("(float[4,8] x, float[8,6] W) => (float[4,6] y) { p = MatMul(x, W) y = Relu(p) }"))
    other = cut(
        model(
            """(float[4,8] z, float[8,6] W) => (float[4,6] q) {
            zero = Constant <value = float {0}> ()
            product = Gemm(z, W)
            q = Max(product, zero)
        }"""
        )
    )
    assert one.kernels[0].task.hash == other.kernels[0].task.hash
    assert names(one, 0) == names(other, 0)
