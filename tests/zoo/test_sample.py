"""Random inputs fit the model: shapes, types and the ranges that the model can take."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from tilewright import zoo
from tilewright.errors import UsageError


def model_of(*values: ValueInfoProto, num_rows: int = 0) -> ModelProto:
    """A model with the given inputs; with `num_rows`, the first is looked up in the second axis of a table."""
    nodes, constants = [], []
    if num_rows:
        constants = [helper.make_tensor("table", TensorProto.FLOAT, (3, num_rows), np.zeros(3 * num_rows))]
        nodes = [helper.make_node("Gather", ["table", values[0].name], ["y"], axis=1)]
    return helper.make_model(helper.make_graph(nodes, "test", list(values), [], constants))


def tensor(name: str, elem_type: int, shape: list[int | str] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, shape)


def test_floats_are_normally_distributed() -> None:
    x = zoo.inputs(zoo.build("resnet18"))["input"]
    assert x.dtype == np.float32
    assert x.shape == (1, 3, 224, 224)
    assert x.mean() == pytest.approx(0, abs=0.02)
    assert x.std() == pytest.approx(1, abs=0.02)


def test_tokens_fill_the_vocabulary_and_the_mask_has_padding() -> None:
    arrays = zoo.inputs(zoo.build("bert_tiny"))
    assert list(arrays) == ["input_ids", "attention_mask", "token_type_ids"]
    assert all(array.dtype == np.int64 and array.shape == (1, 128) for array in arrays.values())
    assert 0 <= arrays["input_ids"].min() < 2000
    assert 28000 < arrays["input_ids"].max() < 30522
    np.testing.assert_array_equal(arrays["attention_mask"], [[1] * 112 + [0] * 16])
    assert set(arrays["token_type_ids"].flat) == {0, 1}


def test_indices_are_in_the_range_of_the_axis_that_is_gathered() -> None:
    ids = zoo.inputs(model_of(tensor("ids", TensorProto.INT32, [1000]), num_rows=5))["ids"]
    assert ids.dtype == np.int32
    assert set(ids.flat) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("elem_type", "dtype"),
    [
        (TensorProto.DOUBLE, np.float64),
        (TensorProto.FLOAT16, np.float16),
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        (TensorProto.BOOL, np.bool_),
        (TensorProto.UINT8, np.uint8),
    ],
)
def test_arrays_have_the_type_of_the_input(elem_type: int, dtype: type[np.generic]) -> None:
    x = zoo.inputs(model_of(tensor("x", elem_type, [2, 50])))["x"]
    assert x.dtype == dtype
    assert x.shape == (2, 50)
    assert len(np.unique(x.astype(np.float64))) > 1


def test_scalars_and_empty_arrays_are_possible() -> None:
    arrays = zoo.inputs(model_of(tensor("mask", TensorProto.INT64, []), tensor("none", TensorProto.FLOAT, [0, 3])))
    assert arrays["mask"].shape == ()
    assert arrays["none"].shape == (0, 3)


def test_the_seed_decides() -> None:
    model = model_of(tensor("x", TensorProto.FLOAT, [4]))
    np.testing.assert_array_equal(zoo.inputs(model, 1)["x"], zoo.inputs(model, 1)["x"])
    assert not np.array_equal(zoo.inputs(model, 1)["x"], zoo.inputs(model, 2)["x"])


def test_parameters_that_are_listed_as_inputs_are_left_out() -> None:
    model = model_of(tensor("ids", TensorProto.INT64, [2]), tensor("table", TensorProto.FLOAT, [3, 5]), num_rows=5)
    assert list(zoo.inputs(model)) == ["ids"]


@pytest.mark.parametrize(
    ("shape", "text"),
    [(["batch", 3], r"\[batch, 3\]"), ([2, None], r"\[2, \?\]"), ([-1], r"\[\?\]"), (None, "of unknown rank")],
)
def test_open_shapes_are_wrong_usage(shape: list[int | str] | None, text: str) -> None:
    with pytest.raises(UsageError, match=f"input x is {text}; fix it with --shape x="):
        zoo.inputs(model_of(tensor("x", TensorProto.FLOAT, shape)))


def test_strings_and_sequences_are_wrong_usage() -> None:
    with pytest.raises(UsageError, match="input x is STRING; give inputs as a file to `tilewright run MODEL --input"):
        zoo.inputs(model_of(tensor("x", TensorProto.STRING, [2])))
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])
    with pytest.raises(UsageError, match="input x is no tensor"):
        zoo.inputs(model_of(sequence))
