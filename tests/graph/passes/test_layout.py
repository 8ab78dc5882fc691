"""Convolutions run channels-last, and transposes stay at the border of the network only."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.graph.onnx_models import model, node, random, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph.passes.layout import compose, identity, inverse, is_view, permuted, reshaped
from tilewright.operators import OWN


def convolution(source: str, output: str, shape: tuple[int, ...], constants: dict[str, Any], **attributes: Any) -> Any:
    constants[f"{output}_w"] = random(shape, len(constants))
    constants[f"{output}_b"] = random(shape[:1], len(constants))
    attributes = {"pads": [size // 2 for size in shape[2:]] * 2, **attributes}
    return node("Conv", [source, f"{output}_w", f"{output}_b"], [output], **attributes)


def test_residual_network_has_one_transpose() -> None:
    constants: dict[str, Any] = {}
    nodes = [
        convolution("x", "a", (8, 3, 3, 3), constants, strides=[2, 2]),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        convolution("c", "d", (8, 8, 3, 3), constants),
        node("Relu", ["d"], ["e"]),
        convolution("e", "f", (8, 8, 3, 3), constants),
        node("Add", ["f", "c"], ["g"]),
        node("Clip", ["g", "zero", "six"], ["h"]),
        node("GlobalAveragePool", ["h"], ["i"]),
        node("Flatten", ["i"], ["j"]),
        node("Gemm", ["j", "w", "bias"], ["y"], transB=1),
    ]
    constants |= {"w": random((5, 8)), "bias": random((5,)), "zero": np.float32(0), "six": np.float32(6)}
    graph = run(model(nodes, [tensor("x", [2, 3, 12, 12])], ["y"], constants))
    body = ["Conv*", "Relu", "MaxPool*", "Conv*", "Relu", "Conv*", "Add", "Clip", "GlobalAveragePool*"]
    assert ops(graph) == ["Transpose", *body, "Reshape", "MatMul", "Add"]
    weights = graph.constants[next(n for n in graph.nodes if n.domain == OWN).inputs[1]]
    assert weights.shape == (3, 3, 3, 8)


def test_squeeze_and_excitation_needs_no_transpose() -> None:
    constants: dict[str, Any] = {"shape": np.array([2, 8, 1, 1]), "w": random((8, 8))}
    nodes = [
        convolution("x", "a", (8, 1, 3, 3), constants, group=8),
        node("GlobalAveragePool", ["a"], ["b"]),
        node("Flatten", ["b"], ["c"]),
        node("MatMul", ["c", "w"], ["d"]),
        node("Sigmoid", ["d"], ["e"]),
        node("Reshape", ["e", "shape"], ["f"]),
        node("Mul", ["a", "f"], ["g"]),
        convolution("g", "y", (4, 8, 1, 1), constants),
    ]
    graph = run(model(nodes, [tensor("x", [2, 8, 6, 6])], ["y"], constants))
    assert ops(graph).count("Transpose") == 2
    assert ops(graph)[0] == ops(graph)[-1] == "Transpose"


def test_network_that_goes_down_and_up_has_transposes_at_its_ends() -> None:
    constants: dict[str, Any] = {
        "t": random((8, 4, 2, 2)),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "pads": np.array([0, 0, 1, 1, 0, 0, 0, 0]),
        "one": np.float32(1),
        "start": np.array([1, 1]),
        "end": np.array([100, 100]),
        "axes": np.array([2, 3]),
        "slope": random((4, 1, 1)),
    }
    nodes = [
        convolution("x", "a", (4, 3, 3, 3), constants),
        node("PRelu", ["a", "slope"], ["b"]),
        node("AveragePool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        convolution("c", "d", (8, 4, 3, 3), constants),
        node("InstanceNormalization", ["d", "d_b", "d_b"], ["e"]),
        node("ConvTranspose", ["e", "t"], ["f"], strides=[2, 2]),
        node("Resize", ["c", "", "scales"], ["g"], mode="linear"),
        node("Concat", ["f", "g", "b"], ["h"], axis=1),
        node("Pad", ["h", "pads", "one"], ["i"]),
        node("Slice", ["i", "start", "end", "axes"], ["j"]),
        node("Split", ["j"], ["k", "l"], axis=1, num_outputs=2),
        node("Max", ["k", "l"], ["m"]),
        convolution("m", "n", (2, 6, 1, 1), constants),
        node("Softmax", ["n"], ["y"], axis=1),
    ]
    graph = run(model(nodes, [tensor("x", [2, 3, 8, 8])], ["y"], constants))
    assert ops(graph).count("Transpose") == 2
    assert ops(graph)[0] == ops(graph)[-1] == "Transpose"
    (softmax,) = [n for n in graph.nodes if n.op == "Softmax"]
    assert softmax.attributes["axis"] == 3


@pytest.mark.parametrize(("rank", "num_weights"), [(1, 3), (2, 4), (3, 5)])
def test_images_of_any_dimensions_are_channels_last(rank: int, num_weights: int) -> None:
    constants: dict[str, Any] = {}
    nodes = [convolution("x", "a", (4, 3, *[3] * rank), constants), node("Relu", ["a"], ["y"])]
    graph = run(model(nodes, [tensor("x", [2, 3, *[4] * rank])], ["y"], constants))
    assert ops(graph) == ["Transpose", "Conv*", "Relu", "Transpose"]
    assert graph.constants[graph.nodes[1].inputs[1]].ndim == num_weights


def test_convolution_with_computed_weights_stays() -> None:
    proto = model([node("Conv", ["x", "w"], ["y"])], [tensor("x", [1, 3, 4, 4]), tensor("w", [2, 3, 1, 1])], ["y"])
    assert ops(run(proto)) == ["Conv"]


def test_pool_whose_indices_are_read_stays() -> None:
    proto = model([node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2])], [tensor("x", [1, 3, 4, 4])], ["y", "i"])
    assert ops(run(proto)) == ["MaxPool"]


def test_flattened_image_is_multiplied_by_permuted_rows() -> None:
    constants: dict[str, Any] = {"w": random((4 * 5 * 6, 7))}
    nodes = [
        convolution("x", "a", (4, 3, 3, 3), constants),
        node("Relu", ["a"], ["b"]),
        node("Flatten", ["b"], ["c"]),
        node("MatMul", ["c", "w"], ["y"]),
    ]
    graph = run(model(nodes, [tensor("x", [2, 3, 5, 6])], ["y"], constants))
    assert ops(graph) == ["Transpose", "Conv*", "Relu", "Reshape", "MatMul"]


def test_patches_become_tokens_without_a_transpose() -> None:
    constants: dict[str, Any] = {"shape": np.array([2, 8, 16]), "back": np.array([2, 8, 4, 4]), "w": random((8, 8))}
    nodes = [
        convolution("x", "a", (8, 3, 2, 2), constants, strides=[2, 2], pads=[0, 0, 0, 0]),
        node("Reshape", ["a", "shape"], ["b"]),
        node("Transpose", ["b"], ["c"], perm=[0, 2, 1]),
        node("MatMul", ["c", "w"], ["d"]),
        node("Add", ["c", "d"], ["e"]),
        node("Transpose", ["e"], ["f"], perm=[0, 2, 1]),
        node("Reshape", ["f", "back"], ["g"]),
        convolution("g", "y", (2, 8, 3, 3), constants),
    ]
    graph = run(model(nodes, [tensor("x", [2, 3, 8, 8])], ["y"], constants))
    assert ops(graph) == ["Transpose", "Conv*", "Reshape", "MatMul", "Add", "Reshape", "Conv*", "Transpose"]


def test_shuffled_channels_are_moved_once() -> None:
    constants: dict[str, Any] = {"split": np.array([2, 2, 4, 6, 6]), "shape": np.array([2, 8, 6, 6])}
    nodes = [
        convolution("x", "a", (8, 4, 1, 1), constants, group=2),
        node("Reshape", ["a", "split"], ["b"]),
        node("Transpose", ["b"], ["c"], perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["c", "shape"], ["d"]),
        convolution("d", "y", (8, 1, 3, 3), constants, group=8),
    ]
    graph = run(model(nodes, [tensor("x", [2, 8, 6, 6])], ["y"], constants))
    assert ops(graph) == ["Transpose", "Conv*", "Reshape", "Transpose", "Reshape", "Conv*", "Transpose"]


def test_attention_keeps_its_transposes_beside_the_products() -> None:
    constants: dict[str, Any] = {name: random((8, 8), seed) for seed, name in enumerate("qkvo")}
    constants |= {"heads": np.array([2, 5, 2, 4]), "flat": np.array([2, 5, 8]), "s": np.float32(2)}
    nodes = []
    for name in "qkv":
        nodes += [
            node("MatMul", ["x", name], [f"{name}1"]),
            node("Reshape", [f"{name}1", "heads"], [f"{name}2"]),
            node("Transpose", [f"{name}2"], [f"{name}3"], perm=[0, 2, 1, 3]),
        ]
    nodes += [
        node("Transpose", ["k3"], ["k4"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q3", "k4"], ["scores"]),
        node("Div", ["scores", "s"], ["scaled"]),
        node("Softmax", ["scaled"], ["p"], axis=-1),
        node("MatMul", ["p", "v3"], ["mixed"]),
        node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        node("Reshape", ["back", "flat"], ["joined"]),
        node("MatMul", ["joined", "o"], ["y"]),
    ]
    graph = run(model(nodes, [tensor("x", [2, 5, 8])], ["y"], constants))
    assert ops(graph).count("Transpose") == 4
    assert ops(graph).count("MatMul") == 6
    assert "Div" not in ops(graph)


def test_network_without_images_is_left_in_order() -> None:
    nodes = [node("Transpose", ["x"], ["h"], perm=[1, 0]), node("MatMul", ["h", "w"], ["y"])]
    graph = run(model(nodes, [tensor("x", [3, 4])], ["y"], {"w": random((3, 5))}))
    assert ops(graph) == ["Transpose", "MatMul"]


def test_view_is_made_into_a_value_where_its_type_is_not_known_behind_it() -> None:
    constants: dict[str, Any] = {}
    nodes = [convolution("x", "a", (4, 3, 1, 1), constants), node("NonZero", ["a"], ["i"]), node("Neg", ["i"], ["y"])]
    graph = run(model(nodes, [tensor("x", [1, 3, 4, 4])], ["y"], constants))
    assert ops(graph) == ["Transpose", "Conv*", "Transpose", "NonZero", "Neg"]


class TestPermutations:
    SHAPE = (2, 3, 4)

    @pytest.mark.parametrize("perm", list(itertools.permutations(range(3))))
    def test_inverse_undoes(self, perm: tuple[int, ...]) -> None:
        assert compose(perm, inverse(perm)) == identity(3)
        assert permuted(permuted(self.SHAPE, perm), inverse(perm)) == self.SHAPE

    @pytest.mark.parametrize("first", list(itertools.permutations(range(3))))
    @pytest.mark.parametrize("second", list(itertools.permutations(range(3))))
    def test_composition_is_one_after_the_other(self, first: tuple[int, ...], second: tuple[int, ...]) -> None:
        x = random(self.SHAPE)
        np.testing.assert_array_equal(x.transpose(compose(first, second)), x.transpose(first).transpose(second))

    @pytest.mark.parametrize("shape", [(2, 1, 3), (1, 2, 3), (1, 1, 3), (2, 3, 4), (1, 1, 1)])
    @pytest.mark.parametrize("perm", list(itertools.permutations(range(3))))
    def test_view_keeps_the_bytes(self, shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
        x = np.arange(np.prod(shape)).reshape(shape)
        assert is_view(shape, perm) == np.array_equal(x.transpose(perm).reshape(-1), x.reshape(-1))

    @pytest.mark.parametrize("seed", range(200))
    def test_reshape_moves_before_a_transpose(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shape = [int(size) for size in rng.choice([1, 2, 3, 4], rng.integers(1, 6))]
        perm = [int(axis) for axis in rng.permutation(len(shape))]
        target = _regrouped(permuted(shape, perm), rng)
        x = np.arange(np.prod(shape)).reshape(shape)
        found = reshaped(shape, perm, target)
        if found is not None:
            np.testing.assert_array_equal(x.reshape(found[0]).transpose(found[1]), x.transpose(perm).reshape(target))


def _regrouped(shape: tuple[int, ...], rng: np.random.Generator) -> list[int]:
    """The same elements under another random shape."""
    factors = [f for size in shape for f in {1: [], 2: [2], 3: [3], 4: [2, 2]}[size]]
    target: list[int] = []
    while factors:
        count = int(rng.integers(1, 4))
        target.append(int(np.prod(factors[:count])))
        factors = factors[count:]
        target += [1] * int(rng.integers(0, 2))
    return target
