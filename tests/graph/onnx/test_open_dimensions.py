"""Dimensions that a model leaves open: how exporters write them, and how a user gives their sizes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

from tests.graph.onnx_models import Shape, model, node, random, tensor
from tilewright import backend
from tilewright.errors import ModelError, OpenDimensionsError, TilewrightError, UsageError
from tilewright.graph.onnx import load_model
from tilewright.network import InferenceSession


def open_model(**shapes: Shape | None) -> ModelProto:
    """A model with these inputs; what it computes of them does not matter."""
    nodes = [node("Identity", [name], [f"{name}.out"]) for name in shapes]
    return model(nodes, [tensor(name, shape) for name, shape in shapes.items()], [f"{name}.out" for name in shapes])


def imported_shapes(proto: ModelProto, given: Any) -> list[tuple[int, ...]]:
    graph = load_model(proto, given)
    types = [graph.types[name] for name in graph.inputs]
    return [known.shape for known in types if known is not None]


@pytest.mark.parametrize("size", [-1, None, "?", "-1", "None", "", 0])
def test_every_way_to_write_an_open_dimension_takes_any_size(size: int | str | None) -> None:
    proto = open_model(x=[size, 3, size, 8])
    assert imported_shapes(proto, {"x": (2, 3, 5, 8)}) == [(2, 3, 5, 8)]


def test_an_input_without_a_shape_takes_any() -> None:
    assert imported_shapes(open_model(x=None), {"x": (2, 3)}) == [(2, 3)]
    assert imported_shapes(open_model(x=None), {"x": ()}) == [()]


def test_a_dimension_of_zero_is_zero_if_nothing_else_is_given() -> None:
    assert imported_shapes(open_model(x=[0, 3]), {}) == [(0, 3)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": 2, "m": 5}, [(2, 3), (2, 5)]),
        ({"x": (2, 3), "m": 5}, [(2, 3), (2, 5)]),
        ({"y": (2, 5)}, [(2, 3), (2, 5)]),
        ({"n": 2, "y": [2, 5]}, [(2, 3), (2, 5)]),
        ({"n": np.int64(2), "m": np.int32(5)}, [(2, 3), (2, 5)]),
        ({"n": 0, "m": 1}, [(0, 3), (0, 1)]),
    ],
)
def test_sizes_by_the_names_of_dimensions_and_inputs_mix(given: Any, expected: list[tuple[int, ...]]) -> None:
    assert imported_shapes(open_model(x=["n", 3], y=["n", "m"]), given) == expected


def test_one_number_is_the_shape_of_an_input_with_one_dimension() -> None:
    assert imported_shapes(open_model(x=[None]), {"x": 4}) == [(4,)]
    assert imported_shapes(open_model(n=["n"], x=["n", 2]), {"n": 4}) == [(4,), (4, 2)]
    assert imported_shapes(open_model(n=[2, 3], x=["n", 2]), {"n": 4}) == [(2, 3), (4, 2)]


def test_a_dimension_that_is_named_as_a_sum_follows_from_its_parts() -> None:
    proto = open_model(ids=["n", "length"], past=["n", "past"], mask=["n", "past + length"])
    assert imported_shapes(proto, {"n": 1, "length": 3, "past": 4})[2] == (1, 7)
    assert imported_shapes(proto, {"n": 1, "length": 3, "past": (1, 4), "past + length": 9})[2] == (1, 9)


@pytest.mark.parametrize("name", ["a +", "a/0", "f(a)", "a**9", "(" * 90, "a" * 200, "9" * 90, "\x00"])
def test_a_dimension_with_any_other_name_is_open(name: str) -> None:
    with pytest.raises(OpenDimensionsError):
        load_model(open_model(x=["a", name]), {"a": 2})
    assert imported_shapes(open_model(x=["a", name]), {"a": 2, name: 3}) == [(2, 3)]


@pytest.mark.parametrize(
    ("shapes", "given", "hint"),
    [
        ({"x": ["batch", 3, 8, 8]}, {}, "--shape batch=1; in Python, shapes={'batch': 1}"),
        ({"x": [-1, 3, None, "?"]}, {}, "--shape x=1x3x224x224; in Python, shapes={'x': (1, 3, 224, 224)}"),
        ({"x": ["n", None, None, 3]}, {}, "--shape x=1x224x224x3; "),
        ({"x": None}, {}, "--shape x=1x3x224x224; "),
        ({"x": ["n", 3], "y": ["n", "m"]}, {"n": 2}, "--shape n=2 --shape m=128; "),
        ({"x": ["n", "m"], "y": ["n", -1]}, {"n": 2}, "--shape n=2 --shape m=128 --shape y=2x128; "),
        ({"x": ["n", "a"], "mask": ["a + b"], "past": ["n", "b"]}, {"a": 1}, "--shape a=1 --shape n=1 --shape b=128; "),
        ({"x": ["n", "n // 2"]}, {}, "--shape n=1 --shape 'n // 2=128'; in Python, shapes={'n': 1, 'n // 2': 128}"),
        ({"n": [3], "x": ["n", 2]}, {}, "--shape x=1x2; "),
    ],
)  # fmt: skip
def test_the_hint_names_all_that_is_open_and_can_be_used(shapes: Any, given: Any, hint: str) -> None:
    proto = open_model(**shapes)
    with pytest.raises(OpenDimensionsError, match=f"give their sizes, such as {re.escape(hint)}") as caught:
        load_model(proto, given)
    pasted = re.search(r"shapes=(\{.*\})$", str(caught.value))
    assert pasted is not None
    assert imported_shapes(proto, eval(pasted[1]))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"x": (2, 3)}, ModelError, "given as [2, 3], but the model says [n, 3, 8]; give 3 dimensions"),
        ({"x": 2}, ModelError, "given as [2], but the model says [n, 3, 8]; give 3 dimensions"),
        ({"x": (2, 4, 8)}, ModelError, "given as [2, 4, 8], but the model says [n, 3, 8]; give 3 where it says 3"),
        ({"x": (-1, 3, 8)}, ModelError, "x is given as (-1, 3, 8), but a dimension cannot be negative"),
        ({"n": -1}, ModelError, "n is given as -1, but a dimension cannot be negative"),
        ({"n": 2**63}, ModelError, "a dimension must be below 2**31"),
        ({"n": 10**30}, ModelError, "a dimension must be below 2**31"),
        ({"n": (2, 3)}, ModelError, "n is given as [2, 3], but it is a dimension of the model, no input"),
        ({"x": (2, 3, 8), "w": (5,)}, ModelError, "w is given as [5], but the model says [n], and n is 2 elsewhere"),
        ({"n": 2, "x": (3, 3, 8)}, ModelError, "n is 2 elsewhere; give one size for it"),
        ({"z": 1}, ModelError, "given for z, but the model has the inputs x, w and the open dimensions n; give"),
        ({"n": True}, UsageError, "n is given as True; a size is a whole number"),
        ({"n": 2.0}, UsageError, "n is given as 2.0; a size is a whole number"),
        ({"n": "2"}, UsageError, "n is given as '2'; a size is a whole number"),
        ({"n": None}, UsageError, "n is given as None; a size is a whole number"),
        ({"x": (2, 3.0, 8)}, UsageError, "x is given as (2, 3.0, 8); a size is a whole number"),
        ({"x": "2x3x8"}, UsageError, "x is given as '2x3x8'; a size is a whole number"),
        ({3: 2}, UsageError, "by the names of inputs and dimensions, got 3"),
        ((2, 3, 8), UsageError, "shapes is (2, 3, 8); give sizes by the names"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be(given: Any, error: type[TilewrightError], message: str) -> None:
    proto = open_model(x=["n", 3, 8], w=["n"])
    with pytest.raises(error, match=re.escape(message)):
        load_model(proto, given)


def test_sizes_of_a_model_without_open_dimensions() -> None:
    assert imported_shapes(open_model(x=[2]), {"x": (2,)}) == [(2,)]
    with pytest.raises(ModelError, match="z, but the model has the inputs x; leave it out"):
        load_model(open_model(x=[2]), {"z": 1})


def test_one_number_for_an_input_and_a_dimension_of_the_same_name() -> None:
    proto = open_model(n=["m"], x=["n", 2])
    with pytest.raises(ModelError, match="has both an input and a dimension of that name; .*shapes={'n': \\(4,\\)}"):
        load_model(proto, {"n": 4})
    assert imported_shapes(proto, {"n": (4,), "x": (3, 2)}) == [(4,), (3, 2)]


def test_a_sequence_takes_no_shape() -> None:
    sequence = onnx.helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ["n"])
    proto = model([node("SequenceLength", ["s"], ["y"])], [sequence], ["y"])
    with pytest.raises(ModelError, match="this input is no tensor"):
        load_model(proto, {"s": (2,)})


def test_a_session_runs_with_sizes_by_name() -> None:
    proto = model([node("Add", ["x", "b"], ["y"])], [tensor("x", ["n", -1]), tensor("b", [-1])], ["y"])
    session = InferenceSession(proto, shapes={"x": (2, 3), "b": 3}, threads=1)
    x, b = random((2, 3)), random((3,), 1)
    np.testing.assert_array_equal(session.run(None, {"x": x, "b": b})[0], x + b)


@pytest.mark.parametrize("shape", [[-1, 3], [0, 3], ["n", 3], None])
def test_the_backend_takes_the_sizes_of_the_arrays(shape: Shape | None) -> None:
    rep = backend.prepare(open_model(x=shape))
    for size in (1, 4):
        assert rep.run([random((size, 3))])[0].shape == (size, 3)
