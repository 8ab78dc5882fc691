"""What is known of operators holds for ONNX's own cases of them, and agrees with what ONNX says of their attributes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import AttributeProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.defs import OpSchema, get_all_schemas_with_history

from tilewright.errors import ExpressionError
from tilewright.graph.evaluation.fallback import run_fallback
from tilewright.graph.protos import array_type, node_from_proto
from tilewright.graph.types import expressed_types
from tilewright.operators import (
    ONNX,
    Call,
    Facts,
    Node,
    NotCompilableError,
    TensorType,
    axis_attribute,
    express,
    facts_of,
    has_expression,
    is_random,
    operator,
)
from tilewright.te import DTYPES, Axis, Const, Expr, Read, Tensor, children, collect_reads, placeholder

NUMPY_TYPES = DTYPES.keys() - {"bfloat16"}

Case = tuple[Node, list[NDArray[Any]], NDArray[Any]]


@cache
def cases() -> list[Case]:
    """ONNX's node cases that have an expression: a node, the arrays that it reads, and the first that it gives."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of the arithmetic that gives the expected outputs
        tests = load_model_tests(kind="node")
    for test in tests:
        nodes = list(test.model.graph.node)
        inputs, outputs = test.data_sets[0]
        opset = next((entry.version for entry in test.model.opset_import if entry.domain == ONNX), 0)
        arrays = [numpy_helper.to_array(x) if hasattr(x, "dims") else x for x in (*inputs, outputs[0])]
        if len(nodes) == 1 and all(isinstance(array, np.ndarray) for array in arrays):
            node = node_from_proto(nodes[0], opset)
            if has_expression(node) and all(node.inputs) and len(node.inputs) == len(inputs):
                found.append((node, arrays[:-1], arrays[-1]))
    return found


def schemas() -> Iterator[OpSchema]:
    """What ONNX says of each version of its operators that is read."""
    return (schema for schema in get_all_schemas_with_history() if schema.domain == ONNX and schema.since_version >= 11)


def node_of(schema: OpSchema, **attributes: Any) -> Node:
    return Node(schema.name, ("x",), ("y",), attributes, opset=schema.since_version)


# --- facts that hold for all cases -----------------------------------------------------------------------------------


def test_elementwise_operators_commute_with_transposition() -> None:
    tried = set()
    for node, inputs, expected in cases():
        if not facts_of(node).elementwise or expected.ndim < 2 or expected.dtype.name not in NUMPY_TYPES:
            continue
        tried.add(node.op)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of what the cases are about: overflows, roots of -1
            (got,) = run_fallback(node, [transposed(array, expected.ndim) for array in inputs])
        np.testing.assert_array_equal(got.T.astype(expected.dtype), run_fallback(node, inputs)[0], err_msg=node.op)
    assert len(tried) > 50


def transposed(array: NDArray[Any], ndim: int) -> NDArray[Any]:
    """With its axes in the opposite order, once it has as many as the result; a number stays one."""
    return array if array.ndim == 0 else array.reshape((1,) * (ndim - array.ndim) + array.shape).T


def test_every_operator_that_works_on_elements_at_their_places_says_so() -> None:
    forgotten = {
        node.op
        for node, inputs, expected in cases()
        if expected.ndim > 1 and not facts_of(node).elementwise and works_on_elements(node, inputs)
    }
    assert not forgotten


def works_on_elements(node: Node, inputs: list[NDArray[Any]]) -> bool:
    """Whether the expression is arithmetic on the elements of operands at the place of the result, and nothing else."""
    types = [array_type(array) for array in inputs]
    if not all(type_.is_compilable for type_ in types):
        return False
    tensors = [placeholder(type_.shape, type_.dtype, f"x{n}") for n, type_ in enumerate(types)]
    try:
        (output, *others) = express(Call(node, tensors, inputs))
    except (NotCompilableError, ExpressionError):
        return False
    body = output.body
    if others or body is None or isinstance(body, Read) or not collect_reads(body):
        return False
    return is_arithmetic(body, output)


def is_arithmetic(e: Expr, output: Tensor) -> bool:
    if isinstance(e, Read):
        if not e.tensor.is_placeholder or len(e.indices) > output.ndim:
            return False
        last = output.axes[output.ndim - len(e.indices) :]
        return all(
            index is axis or (isinstance(index, Const) and extent == 1)
            for index, axis, extent in zip(e.indices, last, e.tensor.shape, strict=True)
        )
    return not isinstance(e, Axis) and all(is_arithmetic(part, output) for part in children(e))


def test_reshapes_keep_the_elements_in_their_order() -> None:
    tried = set()
    for node, inputs, expected in cases():
        if facts_of(node).reshapes:
            tried.add(node.op)
            np.testing.assert_array_equal(inputs[0].reshape(-1), expected.reshape(-1), err_msg=node.op)
    assert tried == {"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}


def test_operators_give_back_what_has_the_type_already() -> None:
    tried = set()
    for node, inputs, expected in cases():
        facts = facts_of(node)
        is_same_type = (facts.copies_same_type or facts.reshapes) and array_type(inputs[0]) == array_type(expected)
        is_alone = facts.copies_one and len(inputs) == 1
        if is_same_type or is_alone:
            tried.add(node.op)
            np.testing.assert_array_equal(inputs[0], expected, err_msg=node.op)
    assert tried >= {"Identity", "Max", "Mean", "Min", "Sum"}


def test_reductions_leave_the_axes_that_are_not_theirs() -> None:
    tried = set()
    for node, inputs, expected in cases():
        if facts_of(node).reduces:
            tried.add(node.op)
            assert expected.ndim <= inputs[0].ndim
            assert expected.shape == inputs[0].shape or expected.size < inputs[0].size or 0 in inputs[0].shape
    assert tried == {schema.name for schema in schemas() if schema.name.startswith("Reduce")}


@pytest.mark.parametrize(
    ("op", "constants"),
    [
        ("Range", {"start": np.float32(0), "limit": np.float32(2.5), "step": np.float32(0.5)}),
        ("Resize", {"": np.empty(0, np.float32), "scales": np.array([1, 2.5], np.float32)}),
        ("Upsample", {"scales": np.array([1, 2.5], np.float32)}),
    ],
)
def test_shapes_that_follow_from_floats(op: str, constants: dict[str, NDArray[Any]]) -> None:
    operands = {name: np.asarray(value) for name, value in constants.items()}
    inputs = (*operands,) if op == "Range" else ("x", *operands)
    node = Node(op, inputs, ("y",), {"mode": "nearest"} if op != "Range" else {}, opset=13)
    types = {"x": TensorType("float32", (1, 2)), **{name: array_type(array) for name, array in operands.items()}}
    assert facts_of(node).shaped_by_floats
    (known,) = expressed_types(node, types, operands)
    assert known is not None
    assert known.shape[-1] == 5


# --- facts that ONNX knows, too --------------------------------------------------------------------------------------


def test_axes_that_are_left_out_are_those_that_onnx_says() -> None:
    compared = 0
    for schema in schemas():
        attribute = schema.attributes.get("axis")
        node = node_of(schema)
        if attribute is None or not has_expression(node):
            continue
        default: AttributeProto = attribute.default_value
        if attribute.required or not default.name:
            with pytest.raises(NotCompilableError, match="has no axis"):
                axis_attribute(node)
            continue
        assert axis_attribute(node) == default.i, node
        assert axis_attribute(node_of(schema, axis=3)) == 3
        compared += 1
    assert compared > 25


def test_random_operators_are_those_that_onnx_says() -> None:
    for schema in schemas():
        has_body = any(a.type == OpSchema.AttrType.GRAPH for a in schema.attributes.values())
        is_said = schema.node_determinism == OpSchema.NodeDeterminism.NonDeterministic and not has_body
        # ONNX says so of AffineGrid, which is not; a Dropout is random only where it may train.
        assert is_random(node_of(schema)) == (is_said and schema.name not in ("AffineGrid", "Dropout"))
    assert is_random(Node("Dropout", ("x", "ratio", "trains"), ("y",), opset=13))


# --- the registry ----------------------------------------------------------------------------------------------------


def test_nothing_is_known_of_an_operator_of_another_domain() -> None:
    assert facts_of(Node("Relu", ("x",), ("y",), domain="com.example")) == Facts()
    assert not is_random(Node("Bernoulli", ("x",), ("y",), domain="com.example"))


def test_an_operator_is_registered_once() -> None:
    with pytest.raises(ValueError, match="Relu of domain '' is registered twice"):
        operator("Relu")
    with pytest.raises(ValueError, match="Bernoulli of domain '' is registered twice"):
        operator("Bernoulli")
