"""The interface of `onnx.backend`, by ONNX's own backend cases and by hand."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.graph.onnx_cases import Outcome, cases, counts, listed, run
from tilewright import backend
from tilewright.errors import KernelArgumentError, UsageError

NUM_CHUNKS = 48
LEAST_COMPILED = 1000


def check(kind: str, chunk: slice, schedule: str = "naive") -> None:
    expected = {case.name: listed().get((kind, case.name), "kernels") for case in cases(kind)[chunk]}
    found = {case.name: str(run(case, schedule)) for case in cases(kind)[chunk]}
    assert found == expected, "if more is compiled now, run python -m tests.graph.onnx_cases"


@pytest.mark.parametrize("chunk", range(NUM_CHUNKS))
def test_node_cases(chunk: int) -> None:
    check("node", slice(chunk, None, NUM_CHUNKS))


def test_node_cases_with_default_schedules() -> None:
    check("node", slice(0, None, 40), "default")


@pytest.mark.parametrize("kind", ["simple", "pytorch-converted", "pytorch-operator"])
def test_model_cases(kind: str) -> None:
    check(kind, slice(None))


@pytest.mark.parametrize("index", range(9))
def test_light_models(index: int) -> None:
    check("real", slice(index, index + 1), "default")


def test_enough_cases_are_compiled() -> None:
    found = counts(listed())
    assert found["node"][Outcome.KERNELS] >= LEAST_COMPILED
    assert len(cases("real")) == 9


def relu(shape: list[int | str]) -> onnx.ModelProto:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)])


def test_open_shapes_are_compiled_once_for_each_shape() -> None:
    prepared = backend.prepare(relu(["n", 3]))
    assert prepared.compiled_models == []
    for n in (1, 2, 1):
        x = np.random.default_rng(n).standard_normal((n, 3), np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], np.maximum(x, 0))
    assert len(prepared.compiled_models) == 2


def test_outputs_have_names() -> None:
    x = np.array([-1, 2], np.float32)
    outputs = backend.run_model(relu([2]), {"x": x})
    assert outputs["y"].tolist() == [0, 2]  # type: ignore[call-overload]


def test_run_node() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    (y,) = backend.run_node(onnx.helper.make_node("MatMul", ["a", "b"], ["y"]), [a, b])
    np.testing.assert_allclose(y, a @ b)


def test_only_the_processor_is_supported() -> None:
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA:1")
    with pytest.raises(UsageError, match="the only one is 'CPU'"):
        backend.prepare(relu([2]), "CUDA")


def test_wrong_arguments_are_refused() -> None:
    x = np.zeros(2, np.float32)
    with pytest.raises(UsageError, match="schedule is 'fast'"):
        backend.prepare(relu([2]), schedule="fast")
    with pytest.raises(KernelArgumentError, match="2 inputs were given to a model that takes 1: x"):
        backend.prepare(relu([2])).run([x, x])
