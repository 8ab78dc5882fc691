"""Every library computes what the model says, and one that cannot says why."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

from tilewright import zoo
from tilewright.errors import UsageError
from tilewright.peers import NETWORK_LIBRARIES, PeerError, network_peer
from tilewright.zoo.builder import Net, Value


def image_network() -> ModelProto:
    """Each way in which image networks use convolutions, pools and norms, and values that are read twice."""
    net = Net("image", seed=1)
    x = net.input("input", (2, 6, 9, 8))
    x = net.batch_norm(x)
    y = net.conv(x, 8, 3, stride=2, pad=1, groups=2, bias=True)
    x = net.add(net.relu(y), net.batch_norm(y))
    x = net.relu6(net.conv_bn(x, 8, (1, 3), pad=(0, 1), groups=8))
    x = net.concat([net.max_pool(x, 3, stride=1, pad=1), net.average_pool(x, 3, stride=1, pad=1)])
    x = net.relu(net.conv_bn(x, 5, 1))
    return net.model(pooled=net.linear(net.global_average(x), 7), features=x)


def video_network() -> ModelProto:
    net = Net("video", seed=2)
    x = net.input("input", (1, 3, 4, 9, 8))
    x = net.relu(net.conv_bn(x, 8, (3, 5, 5), stride=(1, 2, 2), pad=(1, 2, 2)))
    return net.model(output=net.conv(x, 4, 3, pad=1))


def sequence_network() -> ModelProto:
    net = Net("sequence", seed=3)
    x = net.input("input", (2, 3, 16))
    x = net.relu(net.conv_bn(x, 4, 3, stride=2, pad=1))
    return net.model(output=net.max_pool(x, 2, stride=2))


def transposed_network() -> ModelProto:
    """Transposed convolutions, the second in groups of one channel: the reference knows no larger ones."""
    net = Net("transposed", seed=4)
    x = net.input("input", (2, 6, 3, 4))
    x = net.relu(net.batch_norm(net.conv_transpose(x, 8, 4, stride=2, pad=1)))
    weight = net.weight("grouped.weight", (8, 1, 3, 3), 0.2)
    x = net.op(
        "ConvTranspose", x, weight, shape=(2, 8, 12, 16), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
        output_padding=[1, 1], group=8,
    )  # fmt: skip
    return net.model(output=net.op("Tanh", net.batch_norm(x)))


MODELS: dict[str, Callable[[], ModelProto]] = {
    "image": image_network,
    "video": video_network,
    "sequence": sequence_network,
    "transposed": transposed_network,
    "bert_tiny": lambda: zoo.build("bert_tiny", batch=2),
}


@pytest.mark.parametrize("library", NETWORK_LIBRARIES)
@pytest.mark.parametrize("name", MODELS)
def test_a_library_computes_what_the_model_says(library: str, name: str) -> None:
    model = MODELS[name]()
    inputs = zoo.inputs(model)
    expected = ReferenceEvaluator(model).run(None, inputs)
    found = network_peer(library, model, threads=1).run(inputs)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("library", NETWORK_LIBRARIES)
def test_a_result_stays_as_it_is_while_the_next_is_computed(library: str) -> None:
    model = image_network()
    peer = network_peer(library, model, threads=1)
    first = peer.run(zoo.inputs(model, seed=0))
    kept = [output.copy() for output in first]
    second = peer.run(zoo.inputs(model, seed=1))
    for output, copy, other in zip(first, kept, second, strict=True):
        np.testing.assert_array_equal(output, copy)
        assert not np.allclose(output, other)


@pytest.mark.parametrize("name", ["mobilenet_v2", "inception_v3", "resnet3d_18"])
def test_torch_agrees_with_onnxruntime_on_the_networks_of_the_zoo(name: str) -> None:
    model = zoo.build(name)
    inputs = zoo.inputs(model)
    found, expected = (network_peer(library, model, threads=2).run(inputs) for library in ("torch", "onnxruntime"))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_torch_runs_on_as_many_threads_as_asked_for_whoever_changed_them() -> None:
    import torch

    model = sequence_network()
    before = torch.get_num_threads()
    peer = network_peer("torch", model, threads=2)
    try:
        torch.set_num_threads(1)
        peer.run(zoo.inputs(model))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def refused_by_torch(write: Callable[[Net, Value], Value]) -> ModelProto:
    net = Net("refused", seed=0)
    return net.model(output=write(net, net.input("input", (1, 4, 6, 6))))


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda net, x: net.op("Transpose", x), "Transpose transpose_0: only a perm that is written out"),
        (lambda net, x: net.op("Flatten", x, axis=2), "its axis is 2, and only 1 has a call"),
        (lambda net, x: net.op("MaxPool", x, kernel_shape=[2, 2], pads=[0, 0, 1, 1]), r"pads are \[0, 0, 1, 1\]"),
        (lambda net, x: net.op("MaxPool", x, kernel_shape=[2, 2], auto_pad="SAME_UPPER"), "its auto_pad is"),
        (lambda net, x: net.op("Conv", x, x), "Conv conv_0: its input 1 is not a constant"),
        (lambda net, x: net.op("Gather", x, net.constant((0, 1))), "only the look-up of rows"),
        (lambda net, x: net.op("Unsqueeze", x, net.constant((-1,))), r"its axes are \[-1\]"),
        (lambda net, x: net.op("Reshape", x, net.constant((0, -1))), "a size of 0"),
    ],
)
def test_torch_says_what_it_cannot_run(write: Callable[[Net, Value], Value], reason: str) -> None:
    with pytest.raises(PeerError, match=f"torch is not given this model: .*{reason}"):
        network_peer("torch", refused_by_torch(write), threads=1)


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("s = Shape(x) t = Hardmax(x) y = Reshape(t, s)", "the operators Shape, Hardmax"),
        ("a = Hardmax(x) b = Hardmax(a) y = Relu(b)", "the operator Hardmax"),
        ("y = com.example.Relu(x)", "the operator Relu"),
    ],
)
def test_operators_without_a_translation_are_named_whether_torch_is_installed_or_not(
    body: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.peers.networks.find_spec", lambda name: object())
    head = '<ir_version: 8, opset_import: ["" : 20, "com.example" : 1]> net (float[3] x) => (float[3] y)'
    with pytest.raises(PeerError) as error:
        network_peer("torch", parser.parse_model(f"{head} {{ {body} }}"), threads=1)
    where = "in tilewright/peers/torch_operators.py"
    assert str(error.value) == f"torch is not given this model: no translation of {missing} {where}"


def test_torch_refuses_older_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.peers.networks.find_spec", lambda name: object())
    model = video_network()
    model.opset_import[0].version = 12
    with pytest.raises(PeerError, match="the model is of opset 12, below 13"):
        network_peer("torch", model, threads=1)


def foreign_operator() -> ModelProto:
    return parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 20, "com.example" : 1]>
        foreign (float[3] x) => (float[3] y) { y = com.example.Frobnicate(x) }"""
    )


def unreadable() -> ModelProto:
    """A number that no version of the format has, and weights that end too early."""
    model = sequence_network()
    model.ir_version = 9999
    model.graph.initializer[0].raw_data = b"1234"
    return model


@pytest.mark.parametrize("library", NETWORK_LIBRARIES)
@pytest.mark.parametrize("make", [foreign_operator, unreadable])
def test_a_model_that_a_library_cannot_load_is_refused(library: str, make: Callable[[], ModelProto]) -> None:
    with pytest.raises(PeerError, match=rf"^{library} (cannot load|is not given) this model: .+$"):
        network_peer(library, make(), threads=1)


@pytest.mark.parametrize("library", NETWORK_LIBRARIES)
def test_a_model_that_a_library_cannot_run_is_refused(library: str) -> None:
    peer = network_peer(library, sequence_network(), threads=1)
    with pytest.raises(PeerError, match=f"^{library} cannot run this model: .+$"):
        peer.run({"input": np.zeros((2, 5, 7), np.float32)})


def test_a_library_whose_installation_is_broken_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('libfoo.so is missing')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PeerError, match="onnxruntime cannot load this model: .* *libfoo.so is missing"):
        network_peer("onnxruntime", sequence_network(), threads=1)


def test_a_library_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.peers.networks.find_spec", lambda name: None)
    with pytest.raises(PeerError, match="openvino is not installed; pip install openvino"):
        network_peer("openvino", ModelProto(), threads=1)


def test_an_unknown_library_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="one of onnxruntime, openvino, torch, got 'tvm'"):
        network_peer("tvm", ModelProto(), threads=1)
