"""Trees, linear models, support vectors and features of ai.onnx.ml compute what onnxruntime does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.graph.onnx_models import model, random, tensor
from tilewright.graph.evaluation.fallback import run_fallback
from tilewright.graph.protos import node_from_proto
from tilewright.network import InferenceSession

ML = "ai.onnx.ml"
POST = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def by_onnxruntime(node: onnx.NodeProto, inputs: Sequence[np.ndarray], opset: int) -> list[Any]:
    kinds = [
        onnx.TensorProto.STRING if x.dtype == object else onnx.helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs
    ]
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [tensor(name, x.shape, kind) for name, x, kind in zip(node.input, inputs, kinds, strict=True)],
        [onnx.helper.make_empty_tensor_value_info(name) for name in node.output],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(ML, opset)]
    proto = onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[Any] = session.run(None, dict(zip(node.input, inputs, strict=True)))
    return found


def check(op: str, *inputs: Any, num_outputs: int = 1, opset: int = 3, **attributes: Any) -> None:
    names = [[f"{kind}{n}" for n in range(number)] for kind, number in (("x", len(inputs)), ("y", num_outputs))]
    node = onnx.helper.make_node(op, *names, domain=ML, **attributes)
    expected = by_onnxruntime(node, inputs, opset)
    with np.errstate(all="ignore"):
        found = run_fallback(node_from_proto(node, opset), list(inputs))
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        assert got.dtype == wanted.dtype
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
        else:
            assert got.tolist() == wanted.tolist()


def trees(
    kind: str, weights: Sequence[dict[int, float]], mode: str = "BRANCH_LEQ", **attributes: Any
) -> dict[str, Any]:
    """Two trees of three and of five nodes; `weights` are those of their leaves."""
    leaves = [(0, 1), (0, 2), (1, 2), (1, 3), (1, 4)]
    entries = [(*leaf, *entry) for leaf, given in zip(leaves, weights, strict=True) for entry in given.items()]
    of_leaves = zip(("treeids", "nodeids", "ids", "weights"), map(list, zip(*entries, strict=True)), strict=True)
    return {
        "nodes_treeids": [0] * 3 + [1] * 5,
        "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
        "nodes_featureids": [0, 0, 0, 1, 0, 0, 0, 0],
        "nodes_values": [0.25, 0.0, 0.0, -0.5, 0.75, 0.0, 0.0, 0.0],
        "nodes_modes": [mode, "LEAF", "LEAF", mode, mode, "LEAF", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0, 1, 3, 0, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 2, 4, 0, 0, 0],
        **{f"{kind}_{name}": values for name, values in of_leaves},
        **attributes,
    }


X = np.round(random((9, 2)) * 4) / 4
MISSING = np.where(random((9, 2), 1) > 0.5, np.nan, X).astype(np.float32)
MIXED = [{0: 0.3}, {0: -0.4}, {0: 0.1}, {0: 0.6}, {0: -0.2}]
POSITIVE = [{0: 0.3}, {0: 0.4}, {0: 0.1}, {0: 0.6}, {0: 0.2}]
SECOND = [{1: number} for given in MIXED for number in given.values()]
THREE = [{0: 0.3, 1: 0.2, 2: -0.4}, {0: 0.5, 1: 0.1, 2: 0.7}, {2: 0.4}, {0: -0.3, 1: 0.9}, {1: 0.25}]


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("weights", [MIXED, POSITIVE, SECOND], ids=["mixed", "positive", "second"])
def test_trees_of_two_classes_give_one_number(weights: list[dict[int, float]], post: str) -> None:
    attributes = trees("class", weights, post_transform=post, classlabels_int64s=[5, 7])
    check("TreeEnsembleClassifier", X, num_outputs=2, **attributes)
    if weights is not SECOND:
        check("TreeEnsembleClassifier", X, num_outputs=2, base_values=[0.2], **attributes)


@pytest.mark.parametrize("post", POST)
def test_trees_of_three_classes(post: str) -> None:
    attributes = trees("class", THREE, post_transform=post, classlabels_strings=["a", "b", "c"])
    check("TreeEnsembleClassifier", X, num_outputs=2, base_values=[0.1, 0.2, 0.3], **attributes)
    if post == "NONE":
        check("TreeEnsembleClassifier", X, num_outputs=2, **attributes)
        check("TreeEnsembleClassifier", X.astype(np.float64), num_outputs=2, **attributes)


def test_trees_of_two_classes_that_give_both_choose_the_larger() -> None:
    """onnxruntime takes the second whenever that is positive."""
    weights = [{0: 0.4, 1: 0.1}, {0: 0.1, 1: 0.4}, {0: 0.3, 1: 0.2}, {0: 0.1, 1: 0.4}, {0: 0.5, 1: 0.0}]
    node = onnx.helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["l", "s"], domain=ML, **trees("class", weights, classlabels_int64s=[5, 7])
    )
    labels, scores = run_fallback(node_from_proto(node, 3), [X])
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)
    assert labels.tolist() == [7 if b > a else 5 for a, b in scores.tolist()]


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("num_targets", [1, 3])
def test_trees_of_targets(aggregate: str, num_targets: int) -> None:
    weights = [{target: number * (target + 1) for target in range(num_targets)} for number in (0.3, -0.4, 0.1, 0.6, -2)]
    attributes = trees("target", weights, n_targets=num_targets, aggregate_function=aggregate)
    check("TreeEnsembleRegressor", X, **attributes)
    check("TreeEnsembleRegressor", X, base_values=[0.5, 1.5, -1.0][:num_targets], **attributes)


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize("num_targets", [1, 2])
def test_what_becomes_of_targets(post: str, num_targets: int) -> None:
    weights = [{target: number + target / 8 for target in range(num_targets)} for number in (0.1, 0.2, 0.3, 0.35, 0.2)]
    check("TreeEnsembleRegressor", X, **trees("target", weights, n_targets=num_targets, post_transform=post))


@pytest.mark.parametrize("num_targets", [1, 2])
def test_leaves_that_say_the_same_target_again(num_targets: int) -> None:
    """As scikit-learn's trees of several classes are exported with the paths of their decisions."""
    attributes = trees("target", MIXED, n_targets=num_targets)
    again = {name: 2 * value for name, value in attributes.items() if name.startswith("target_")}
    check("TreeEnsembleRegressor", X, **(attributes | again))


@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
@pytest.mark.parametrize("tracks", [None, [0] * 8, [1] * 8])
def test_branches_and_missing_values(mode: str, tracks: list[int] | None) -> None:
    attributes = trees("target", MIXED, f"BRANCH_{mode}", n_targets=1)
    if tracks is not None:
        attributes["nodes_missing_value_tracks_true"] = tracks
    check("TreeEnsembleRegressor", X, **attributes)
    check("TreeEnsembleRegressor", MISSING, **attributes)


def test_a_tree_that_goes_in_a_circle_is_an_error() -> None:
    attributes = trees("target", MIXED, n_targets=1)
    attributes["nodes_truenodeids"][4], attributes["nodes_falsenodeids"][4] = 0, 0
    attributes["nodes_values"][3] = 100.0
    node = onnx.helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **attributes)
    with pytest.raises(Exception, match="circle"):
        run_fallback(node_from_proto(node, 3), [X])


def leaves_apart(dtype: type[np.floating[Any]], **attributes: Any) -> dict[str, Any]:
    """A tree of version 5, with a node that asks whether a feature is among some numbers."""

    def numbers(*values: float) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array(np.array(values, dtype))

    return dict(
        attributes,
        n_targets=2,
        tree_roots=[0],
        nodes_modes=onnx.numpy_helper.from_array(np.array([0, 6, 2], np.uint8)),
        nodes_featureids=[0, 0, 0],
        nodes_splits=numbers(3.14, 232344.0, 4.2),
        nodes_truenodeids=[1, 0, 1],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[2, 2, 3],
        nodes_falseleafs=[0, 1, 1],
        leaf_targetids=[0, 1, 0, 1],
        leaf_weights=numbers(5.23, 12.12, -12.23, 7.21),
        membership_values=numbers(1.2, 0.0, 8.1, np.nan),
    )


Y = [[1.2, 3.4], [-0.12, 1.66], [4.14, 1.77], [0, 5]]


@pytest.mark.parametrize("aggregate", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_with_leaves_apart(aggregate: int, dtype: type[np.floating[Any]]) -> None:
    check("TreeEnsemble", np.array(Y, dtype), opset=5, **leaves_apart(dtype, aggregate_function=aggregate))


def test_what_becomes_of_trees_with_leaves_apart() -> None:
    """By the numbers of ONNX; onnxruntime takes SOFTMAX for LOGISTIC."""
    found = []
    for post in range(3):
        attributes = leaves_apart(np.float64, post_transform=post)
        node = onnx.helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, **attributes)
        found += run_fallback(node_from_proto(node, 5), [np.array(Y)])
    plain, softmax, logistic = found
    np.testing.assert_allclose(softmax, np.exp(plain) / np.exp(plain).sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(logistic, 1 / (1 + np.exp(-plain)), rtol=1e-5)


@pytest.mark.parametrize("post", POST)
def test_linear_models(post: str) -> None:
    x = random((5, 3))
    weights = random((9,), 1).tolist()
    labels: dict[str, Any] = {"classlabels_strings": ["a", "b", "c"]}
    check("LinearClassifier", x, num_outputs=2, opset=1, coefficients=weights, intercepts=[0.1, 0.2, 0.3],
          post_transform=post, **labels)  # fmt: skip
    check("LinearRegressor", x, opset=1, coefficients=weights, targets=3, post_transform=post)
    check("LinearRegressor", x, opset=1, coefficients=weights[:3], intercepts=[0.5], post_transform=post)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_a_linear_classifier_with_one_score_for_two_classes(post: str) -> None:
    check("LinearClassifier", random((5, 3)), num_outputs=2, opset=1, coefficients=[0.5, -1.0, 2.0], intercepts=[0.1],
          post_transform=post, classlabels_ints=[5, 7])  # fmt: skip


KERNELS = {"LINEAR": [0.0, 0.0, 0.0], "POLY": [0.5, 1.0, 3.0], "RBF": [0.5, 0.0, 0.0], "SIGMOID": [0.5, 0.25, 0.0]}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regression_by_support_vectors(kernel: str, one_class: int) -> None:
    check("SVMRegressor", random((5, 3)), opset=1, kernel_type=kernel, kernel_params=KERNELS[kernel], n_supports=4,
          support_vectors=random((12,), 1).tolist(), coefficients=random((4,), 2).tolist(), rho=[0.1],
          one_class=one_class)  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("has_probabilities", [False, True])
@pytest.mark.parametrize("labels", [[3, 8], ["no", "yes"], [2, 4, 6], ["a", "b", "c"]])
def test_classes_by_support_vectors(kernel: str, has_probabilities: bool, labels: list[Any]) -> None:
    counts = [2, 3, 1][: len(labels)]
    num_pairs = len(labels) * (len(labels) - 1) // 2
    attributes: dict[str, Any] = {"kernel_type": kernel, "kernel_params": KERNELS[kernel], "vectors_per_class": counts}
    attributes["classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"] = labels
    attributes["support_vectors"] = random((sum(counts) * 3,), 1).tolist()
    attributes["coefficients"] = random(((len(labels) - 1) * sum(counts),), 2).tolist()
    attributes["rho"] = random((num_pairs,), 3).tolist()
    if has_probabilities:
        attributes |= {"prob_a": [-1.5] * num_pairs, "prob_b": [0.25] * num_pairs}
    check("SVMClassifier", random((7, 3)), num_outputs=2, opset=1, **attributes)
    check("SVMClassifier", random((7, 3)).astype(np.float64), num_outputs=2, opset=1, **attributes)


@pytest.mark.parametrize("post", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("labels", [[3, 8], [2, 4, 6]])
def test_scores_of_support_vectors(post: str, labels: list[int]) -> None:
    check("SVMClassifier", random((7, 3)), num_outputs=2, opset=1, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0],
          vectors_per_class=[1] * len(labels), classlabels_ints=labels, post_transform=post,
          support_vectors=random((len(labels) * 3,), 1).tolist(),
          coefficients=random(((len(labels) - 1) * len(labels),), 2).tolist(),
          rho=random((len(labels) * (len(labels) - 1) // 2,), 3).tolist())  # fmt: skip


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_are_divided_by_their_norm(norm: str) -> None:
    for x in (random((4, 3)), -np.abs(random((4, 3))), np.zeros((2, 3), np.float32), random((3,))):
        check("Normalizer", x, opset=1, norm=norm)
    check("Normalizer", np.array([[1, -3, 2]], np.int64), opset=1, norm=norm)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_features_become_floats(dtype: type[np.number[Any]]) -> None:
    x = np.round(random((4, 2)) * 5).astype(dtype)
    check("Scaler", x, opset=1, offset=[1.5, 2.0], scale=[0.5, 0.1])
    check("Scaler", x, opset=1, offset=[1.5], scale=[0.5])
    check("FeatureVectorizer", x, x[:, :1].copy(), opset=1, inputdimensions=[2, 1])


TABLES: list[tuple[Any, int, dict[str, Any]]] = [
    (["b", "c", "x"], 1, {"classes_strings": ["a", "b", "c"], "default_int64": -7}),
    ([2, 0, 9], 1, {"classes_strings": ["a", "b", "c"]}),
    (["b", "x"], 2, {"keys_strings": ["a", "b"], "values_floats": [0.5, 1.5]}),
    ([1, 5], 2, {"keys_int64s": [1, 2], "values_strings": ["one", "two"]}),
    ([1.5, np.nan, 7.0], 2, {"keys_floats": [1.5, float("nan")], "values_int64s": [5, 6]}),
    ([1.5, np.nan, 7.0], 4, {"keys_floats": [1.5, float("nan")], "values_int64s": [5, 6]}),
    (["b", "x"], 4, {"keys_strings": ["a", "b"], "values_int64s": [3, 4], "default_int64": 0}),
]


@pytest.mark.parametrize(("items", "opset", "attributes"), TABLES)
def test_labels_are_looked_up(items: list[Any], opset: int, attributes: dict[str, Any]) -> None:
    x = np.array(items, object if isinstance(items[0], str) else np.float32 if isinstance(items[0], float) else None)
    check("LabelEncoder", x, opset=opset, **attributes)


def test_labels_by_tensors() -> None:
    tables = {"keys": [1, 2], "values": [3.5, 4.5], "default": [9.0]}
    attributes = {f"{name}_tensor": onnx.numpy_helper.from_array(np.array(numbers)) for name, numbers in tables.items()}
    check("LabelEncoder", np.array([[2, 5], [1, 1]]), opset=4, **attributes)


def test_what_reads_the_scores_of_trees_is_compiled() -> None:
    """ONNX infers their shape, and only its schema says that they are floats."""
    attributes = trees("target", MIXED, n_targets=1)
    nodes = [
        onnx.helper.make_node("TreeEnsembleRegressor", ["x"], ["a"], domain=ML, **attributes),
        onnx.helper.make_node("Neg", ["a"], ["b"]),
        onnx.helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        onnx.helper.make_node("ArgMax", ["c"], ["i"], axis=1),
        onnx.helper.make_node("GatherElements", ["c", "i"], ["y"], axis=1),
    ]
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(ML, 3)]
    proto = model(nodes, [tensor("x", X.shape)], ["a", "y"], opset_imports=opsets, ir_version=8)
    with pytest.warns(UserWarning, match="ONNX: TreeEnsembleRegressor$"):
        session = InferenceSession(proto)
    a, y = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, np.abs(a))
