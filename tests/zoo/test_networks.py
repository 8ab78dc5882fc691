"""The networks are the published ones: as many parameters, as much work, the same shapes."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from onnx.reference import ReferenceEvaluator

from tilewright import zoo
from tilewright.errors import UsageError

NUM_PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "mobilenet_v2": 3_504_872,
    "vgg16": 138_357_544,
    "inception_v3": 23_834_568,
    "resnet3d_18": 33_371_472,
    "dcgan": 3_576_704,
    "bert_tiny": 4_385_920,
    "bert_base": 109_482_240,
}

# Multiplications and additions of convolutions and dense layers, in 1e9 pairs.
GIGA_MACS = {
    "resnet18": 1.814,
    "resnet50": 4.089,
    "mobilenet_v2": 0.301,
    "vgg16": 15.470,
    "inception_v3": 5.713,
    "resnet3d_18": 40.697,
}

NUM_OPERATORS = {
    "resnet18": {"Conv": 20, "BatchNormalization": 20, "Relu": 17, "Add": 8, "Gemm": 1},
    "resnet50": {"Conv": 53, "BatchNormalization": 53, "Relu": 49, "Add": 16, "Gemm": 1},
    "mobilenet_v2": {"Conv": 52, "BatchNormalization": 52, "Clip": 35, "Add": 10, "Gemm": 1},
    "vgg16": {"Conv": 13, "BatchNormalization": 0, "Relu": 15, "MaxPool": 5, "Gemm": 3},
    "inception_v3": {"Conv": 94, "BatchNormalization": 94, "Concat": 15, "AveragePool": 9, "MaxPool": 4},
    "resnet3d_18": {"Conv": 20, "BatchNormalization": 20, "Relu": 17, "Add": 8, "MaxPool": 0},
    "dcgan": {"ConvTranspose": 5, "BatchNormalization": 4, "Relu": 4, "Tanh": 1},
    "bert_tiny": {"MatMul": 16, "Softmax": 2, "Erf": 2, "LayerNormalization": 5, "Gemm": 1, "Transpose": 8},
    "bert_base": {"MatMul": 96, "Softmax": 12, "Erf": 12, "LayerNormalization": 25, "Gemm": 1, "Transpose": 48},
}

OUTPUTS: dict[str, dict[str, tuple[int, ...]]] = {
    "resnet18": {"output": (1, 1000)},
    "resnet50": {"output": (1, 1000)},
    "mobilenet_v2": {"output": (1, 1000)},
    "vgg16": {"output": (1, 1000)},
    "inception_v3": {"output": (1, 1000)},
    "resnet3d_18": {"output": (1, 400)},
    "dcgan": {"output": (1, 3, 64, 64)},
    "bert_tiny": {"last_hidden_state": (1, 128, 128), "pooler_output": (1, 128)},
    "bert_base": {"last_hidden_state": (1, 128, 768), "pooler_output": (1, 768)},
}


@cache
def inferred(name: str) -> ModelProto:
    """The network after strict shape inference, without the parameters' numbers, which are large."""
    model = zoo.build(name)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.ClearField("raw_data")
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def shapes(model: ModelProto) -> dict[str, tuple[int, ...]]:
    graph = model.graph
    found = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    return found


def num_parameters(model: ModelProto) -> int:
    """As training frameworks count: without the statistics of batch norms."""
    statistics = {name for node in model.graph.node if node.op_type == "BatchNormalization" for name in node.input[3:]}
    return sum(
        math.prod(tensor.dims)
        for tensor in model.graph.initializer
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in statistics
    )


def num_macs(node: NodeProto, sizes: dict[str, tuple[int, ...]]) -> int:
    if node.op_type not in ("Conv", "Gemm"):
        return 0
    return math.prod(sizes[node.output[0]]) * math.prod(sizes[node.input[1]][1:])


def test_every_network_is_checked_here() -> None:
    assert zoo.names() == list(NUM_PARAMETERS)
    assert all(network.name == name and network.summary for name, network in zoo.NETWORKS.items())


@pytest.mark.parametrize(("name", "expected"), NUM_PARAMETERS.items())
def test_has_as_many_parameters_as_published(name: str, expected: int) -> None:
    assert num_parameters(inferred(name)) == expected


@pytest.mark.parametrize(("name", "expected"), GIGA_MACS.items())
def test_does_as_much_work_as_published(name: str, expected: float) -> None:
    model = inferred(name)
    sizes = shapes(model)
    assert sum(num_macs(node, sizes) for node in model.graph.node) / 1e9 == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("name", "expected"), NUM_OPERATORS.items())
def test_is_written_in_the_operators_that_exporters_use(name: str, expected: dict[str, int]) -> None:
    found = Counter(node.op_type for node in inferred(name).graph.node)
    assert {op: found[op] for op in expected} == expected


@pytest.mark.parametrize(("name", "expected"), OUTPUTS.items())
def test_outputs_have_their_names_and_shapes(name: str, expected: dict[str, tuple[int, ...]]) -> None:
    model = inferred(name)
    sizes = shapes(model)
    assert {value.name: sizes[value.name] for value in model.graph.output} == expected


@pytest.mark.parametrize("name", zoo.names())
def test_is_a_valid_model_of_opset_17(name: str) -> None:
    model = zoo.build(name)
    onnx.checker.check_model(model)
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 17)]


@pytest.mark.parametrize("name", ["resnet18", "bert_tiny", "dcgan", "mobilenet_v2", "inception_v3", "resnet3d_18"])
def test_a_batch_goes_through_to_the_outputs(name: str) -> None:
    model = zoo.build(name, batch=3)
    found = shapes(onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True))
    assert {v.name: found[v.name] for v in model.graph.output} == {k: (3, *v[1:]) for k, v in OUTPUTS[name].items()}


def test_the_seed_decides_the_weights() -> None:
    first, again, other = (zoo.build("dcgan", seed=seed).graph.initializer for seed in (1, 1, 2))
    assert first == again
    assert all(tensor.raw_data != changed.raw_data for tensor, changed in zip(first, other, strict=True))


@pytest.mark.parametrize("name", ["bert_tiny", "dcgan"])
def test_outputs_are_finite_and_varied_by_the_reference_evaluator(name: str) -> None:
    model = zoo.build(name)
    check_sane(ReferenceEvaluator(model).run(None, zoo.inputs(model)))


@pytest.mark.parametrize("name", zoo.names())
def test_outputs_are_finite_and_varied_and_depend_on_the_input(name: str) -> None:
    import onnxruntime

    model = zoo.build(name)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, zoo.inputs(model, seed=0))
    check_sane(outputs)
    for output, other in zip(outputs, session.run(None, zoo.inputs(model, seed=1)), strict=True):
        assert np.abs(output - other).max() > 0.01 * np.abs(output).max()


def check_sane(outputs: list[np.ndarray]) -> None:
    for output in outputs:
        assert np.isfinite(output).all()
        assert 0.1 < output.std() < 10


def test_an_unknown_network_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="one of resnet18, resnet50, .*, bert_base, got 'resnet19'"):
        zoo.build("resnet19")


def test_an_empty_batch_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="1 to 1024 elements, got 0"):
        zoo.build("resnet18", batch=0)


def shapes_of(model: onnx.ModelProto) -> list[list[int]]:
    values = [*model.graph.input, *model.graph.output]
    return [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in values]


def test_a_name_may_say_the_sizes() -> None:
    model = zoo.build("resnet18@batch=2,size=96,width=0.25")
    assert shapes_of(model) == [[2, 3, 96, 96], [2, 1000]]
    assert model == zoo.build("resnet18", batch=2, size=96, width=0.25)
    assert max(tensor.dims[0] for tensor in model.graph.initializer if len(tensor.dims) == 4) == 128
    assert zoo.build("dcgan@width=1.0") == zoo.build("dcgan")


@pytest.mark.parametrize(
    "name",
    [
        "resnet18@size=33,width=0.1",
        "resnet50@batch=3,size=47,width=0.25",
        "mobilenet_v2@size=32,width=0.35",
        "vgg16@size=32,width=0.125",
        "inception_v3@size=75,width=0.25",
        "resnet3d_18@size=17,width=0.125",
        "dcgan@batch=2,size=3,width=0.1",
        "bert_tiny@size=1,width=2",
        "bert_tiny@size=50,width=0.1",
        "bert_base@size=7,width=0.09",
    ],
)
def test_variants_are_valid_and_sane(name: str) -> None:
    import onnxruntime

    model = zoo.build(name)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for output in session.run(None, zoo.inputs(model)):
        assert np.isfinite(output).all()
        assert output.std() > 0.001


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet18@", "follow its name as resnet18@batch=4"),
        ("resnet18@batch", "a whole number, got ''"),
        ("resnet18@batch=2,batch=3", "each once at most; got 'batch=3'"),
        ("resnet18@depth=3", "got 'depth=3'"),
        ("resnet18@batch=1.5", "batch is a whole number, got '1.5'"),
        ("resnet18@width=wide", "width is a number, got 'wide'"),
        ("resnet18@width=nan", "above 0 and at most 8, got nan"),
        ("resnet18@width=0", "above 0 and at most 8, got 0"),
        ("resnet18@size=31", "the size of resnet18 is 32 to 2048, got 31"),
        ("bert_base@size=513", "1 to 512, got 513"),
        ("resnet18@batch=1000000000000", "1 to 1024 elements"),
        ("resnet19@batch=2", "got 'resnet19'"),
    ],
)
def test_sizes_that_are_none_are_wrong_usage(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        zoo.build(name)
