"""Sessions: run by names as onnxruntime does, refuse what does not fit, and serve several threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.partition.partitions import PartitionBuilder, packing_trace, residual, residual_reference, weights
from tilewright import te
from tilewright.deploy.artifact import save
from tilewright.deploy.compilation import compile_model
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.session import NodeArg
from tilewright.errors import ArtifactError, CodegenError, KernelArgumentError, TilewrightError, UsageError
from tilewright.network import InferenceSession
from tilewright.operators import Node, TensorType
from tilewright.partition import Partition
from tilewright.target import Target

Types = Sequence[TensorType | None]
NATIVE = Target.native()
FLOAT = np.float32


def compiled(partition: Partition, threads: int = 2) -> CompiledModel:
    return compile_model(partition, {}, NATIVE, threads, default_trace=packing_trace)


def two_inputs() -> Partition:
    """total = a + b and its positive part; b is the wider type of no use to a."""
    net = PartitionBuilder("pair")
    total = net.add(net.input("a", (2, 3)), net.input("b", (2, 3)), "total")
    return net.partition(total, net.relu(total, "positive"))


@pytest.fixture
def session() -> InferenceSession:
    return InferenceSession(compiled(two_inputs()))


A = np.array([[1, -2, 3], [-4, 5, -6]], FLOAT)
B = np.ones((2, 3), FLOAT)


# --- running ----------------------------------------------------------------------------------------------------------


def test_all_outputs_or_those_that_are_named(session: InferenceSession) -> None:
    feed = {"b": B, "a": A}
    total, positive = session.run(None, feed)
    assert np.array_equal(total, A + B)
    assert np.array_equal(positive, np.maximum(A + B, 0))
    assert [x.tolist() for x in session.run(["positive", "total"], feed)] == [positive.tolist(), total.tolist()]
    assert len(session.run(["positive"], feed)) == 1
    assert len(session.run([], feed)) == 2


def test_inputs_and_outputs_are_described(session: InferenceSession) -> None:
    assert session.get_inputs() == [
        NodeArg("a", [2, 3], "tensor(float)"),
        NodeArg("b", [2, 3], "tensor(float)"),
    ]
    assert [output.name for output in session.get_outputs()] == ["total", "positive"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float64", "tensor(double)"),
        ("int64", "tensor(int64)"),
        ("bool", "tensor(bool)"),
        ("string", "tensor(string)"),
        ("float8_e4m3fn", "tensor(float8e4m3fn)"),
    ],
)
def test_types_are_named_as_in_onnxruntime(dtype: str, expected: str) -> None:
    assert NodeArg.of("x", TensorType(dtype, (1,))).type == expected


def test_a_type_that_is_known_only_when_the_network_runs() -> None:
    assert NodeArg.of("x", None) == NodeArg("x", [], "unknown")


def test_results_are_new_arrays_each_time(session: InferenceSession) -> None:
    (first, _), (second, _) = session.run(None, {"a": A, "b": B}), session.run(None, {"a": B, "b": B})
    assert np.array_equal(first, A + B)
    assert np.array_equal(second, B + B)


def test_arrays_in_sequences_are_new_ones_too() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 20]>
        net (float[2] x, seq(float[2]) s) => (seq(float[2]) pair, float[2] first, seq(float[2]) same) <int64 zero = {0}>
        { pair = SequenceConstruct(x, x) first = SequenceAt(s, zero) same = Identity(s) }
    """)
    with pytest.warns(UserWarning, match="SequenceConstruct"):
        session = InferenceSession(model, threads=1)
    x, item = np.ones(2, FLOAT), np.zeros(2, FLOAT)
    pair, first, same = session.run(None, {"x": x, "s": [item]})
    x[:], item[:] = 7, 7
    assert [array.tolist() for array in (*pair, first, *same)] == [[1, 1], [1, 1], [0, 0], [0, 0]]
    pair[0][:] = 7
    assert pair[1].tolist() == [1, 1]


@pytest.mark.parametrize(
    "a",
    [
        np.asfortranarray(A),
        np.repeat(A, 2, axis=1)[:, ::2],
        A.astype(">f4"),
        np.frombuffer(b"\0" + A.tobytes(), np.uint8)[1:].view(FLOAT).reshape(2, 3),
        [[np.float32(v) for v in row] for row in A],
    ],
    ids=["columns first", "strided", "other byte order", "unaligned", "nested lists"],
)
def test_inputs_are_copied_where_kernels_cannot_read_them(session: InferenceSession, a: Any) -> None:
    assert np.array_equal(session.run(["total"], {"a": a, "b": B})[0], A + B)


def test_scalars_and_other_types() -> None:
    net = PartitionBuilder()
    n = net.input("n", (), "int64")
    y = net.kernel("next", [n], lambda N: te.compute((), lambda: N[()] + 1, name="next"), "y")
    (result,) = InferenceSession(compiled(net.partition(y))).run(None, {"n": np.array(41)})
    assert result.shape == ()
    assert result == 42


def test_bfloat16_is_taken_as_such_or_as_bits() -> None:
    import ml_dtypes

    net = PartitionBuilder()
    x = net.input("x", (3,), "bfloat16")
    y = net.kernel("twice", [x], lambda X: te.compute((3,), lambda i: X[i] + X[i], name="t"), "y")
    session = InferenceSession(compiled(net.partition(y)))
    given = np.array([1, -2, 0.5], ml_dtypes.bfloat16)
    for x_ in (given, given.view(np.uint16)):
        (result,) = session.run(None, {"x": x_})
        assert result.view(ml_dtypes.bfloat16).astype(FLOAT).tolist() == [2, -4, 1]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "feed", "message"),
    [
        (None, {"a": A}, "network pair: input 'b' was not given; it takes a, b"),
        (None, {"a": A, "b": B, "c": B}, "network pair: there is no input 'c'; it takes a, b"),
        (["sum"], {"a": A, "b": B}, "network pair: there is no output 'sum'; it has total, positive"),
        (None, [A, B], "network pair: inputs are given by name, as {'name': array}, got list; it takes a, b"),
        (
            None,
            {"a": A.T.copy(), "b": B},
            (
                "network pair: input 'a' must have shape (2, 3), got (3, 2); a network is compiled for one shape: "
                "reshape the array, or compile the network for its shape with shapes={'a': (3, 2)}"
            ),
        ),
        (
            None,
            {"a": A, "b": B.astype(np.float64)},
            "network pair: input 'b' must be of type float32, got float64; convert it first, with x.astype('float32')",
        ),
        (
            None,
            {"a": "text", "b": B},
            "network pair: input 'a' must be of type float32, got <U4; convert it first, with x.astype('float32')",
        ),
    ],
)
def test_wrong_calls_are_explained(session: InferenceSession, names: Any, feed: Any, message: str) -> None:
    with pytest.raises(KernelArgumentError) as error:
        session.run(names, feed)
    assert str(error.value) == message


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2", 10**30])
def test_a_wrong_number_of_threads(threads: Any) -> None:
    with pytest.raises(UsageError, match="threads is .*; it must be a whole number from 1 to 512"):
        InferenceSession(compiled(two_inputs()), threads=threads)


def test_a_network_for_another_machine_is_refused() -> None:
    other = compile_model(two_inputs(), {}, Target.parse("aarch64"), 1)
    with pytest.raises(CodegenError, match="a network for llvm -mcpu=generic .*aarch64.* cannot run on this machine"):
        InferenceSession(other)


def test_a_network_without_elements_in_an_input() -> None:
    net = PartitionBuilder()
    x = net.input("x", (0, 3))
    net.fallback(Node("Count", (x,), ("n",)), TensorType("int64", ()))
    with pytest.warns(UserWarning, match="run, slowly, on the reference evaluator of ONNX: Count"):
        session = InferenceSession(
            compiled(net.partition("n")), fallback=lambda node, types: lambda inputs: [np.array(inputs[0].size)]
        )
    assert session.run(None, {"x": np.zeros((0, 3), FLOAT)})[0] == 0
    with pytest.raises(KernelArgumentError, match=r"must have shape \(0, 3\), got \(1, 3\)"):
        session.run(None, {"x": np.zeros((1, 3), FLOAT)})


def test_fallbacks_are_counted_in_a_warning_and_may_have_strings() -> None:
    net = PartitionBuilder("texts")
    x = net.input("x", (2,), "string")
    net.fallback(Node("Upper", (x,), ("u",)), TensorType("string", (2,)))
    net.fallback(Node("Upper", ("u",), ("v",)), TensorType("string", (2,)))
    net.fallback(Node("Turn", ("v",), ("w",)), None)

    def make(node: Node, types: Types) -> Any:
        def upper(inputs: Sequence[Any]) -> list[Any]:
            return [np.array([text.upper() for text in inputs[0]], object)]

        def turn(inputs: Sequence[Any]) -> list[Any]:
            return [list(inputs[0])[::-1]]

        return {"Upper": upper, "Turn": turn}[node.op]

    with pytest.warns(UserWarning, match=r"network texts: these operators have no kernel .*: Upper \(2\), Turn$"):
        session = InferenceSession(compiled(net.partition("v", "w")), fallback=make)
    v, w = session.run(None, {"x": np.array(["a", "b"])})
    assert v.tolist() == ["A", "B"]
    assert w == ["B", "A"]
    assert session.get_outputs()[1].type == "unknown"


# --- compiled files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(compiled(residual()), tmp_path / "model.tw")
    return tmp_path / "model.tw"


@pytest.mark.parametrize("convert", [str, Path], ids=["text", "path"])
def test_a_compiled_file_runs(path: Path, convert: Any) -> None:
    x = weights(4, 8, seed=5)
    (y,) = InferenceSession(convert(path)).run(None, {"x": x})
    np.testing.assert_allclose(y, residual_reference(residual(), x), rtol=1e-4, atol=1e-3)


def test_a_compiled_file_is_known_by_its_content(path: Path) -> None:
    other = path.rename(path.parent / "renamed.bin")
    assert InferenceSession(other).get_inputs()[0].name == "x"


def test_a_file_that_only_has_the_name_of_a_compiled_one(tmp_path: Path) -> None:
    (tmp_path / "model.tw").write_bytes(b"something")
    with pytest.raises(ArtifactError, match="is not a compiled model"):
        InferenceSession(tmp_path / "model.tw")


def test_fewer_threads_than_compiled_for_but_not_more(path: Path) -> None:
    x = weights(4, 8, seed=5)
    results = [InferenceSession(path, threads=n).run(None, {"x": x})[0] for n in (1, 2)]
    assert np.array_equal(*results)
    with pytest.raises(ArtifactError, match="residual was compiled for up to 2 threads, and 3 were asked for; compile"):
        InferenceSession(path, threads=3)


@pytest.mark.parametrize("options", [{"records": "r.jsonl"}, {"target": "native"}, {"shapes": {"x": (1,)}}])
def test_what_compiling_decides_cannot_be_asked_of_a_compiled_file(path: Path, options: Any) -> None:
    (name,) = options
    with pytest.raises(UsageError, match=f"{name} was given for residual, which is compiled already"):
        InferenceSession(path, **options)


# --- several at once --------------------------------------------------------------------------------------------------


def test_two_sessions_in_two_threads_each(path: Path) -> None:
    partition = residual(width=16, num_blocks=3)
    sessions = [InferenceSession(path), InferenceSession(compiled(partition))]
    references = [(residual(), 8), (partition, 16)]
    errors: list[str] = []

    def work(number: int) -> None:
        which = number % 2
        network, width = references[which]
        x = weights(4, width, seed=number)
        expected = residual_reference(network, x)
        for _ in range(200):
            (y,) = sessions[which].run(None, {"x": x})
            if not np.allclose(y, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max()):
                errors.append(f"thread {number}: off by {np.abs(y - expected).max()}")
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


LOOP = """
<ir_version: 8, opset_import: ["" : 20]>
loop (float[8, 16] x) => (float[8, 16] y, float[n] values) <int64 times = {3}, bool goes_on = {1}> {
    flat = Flatten <axis = 0> (x)
    values = Unique(flat)
    twice = Loop (times, goes_on, x) <body = body (int64 i, bool c, float[8, 16] a) => (bool d, float[8, 16] b) {
        d = Identity(c)
        b = Add(a, a)
    }>
    y = Relu(twice)
}
"""


def test_networks_with_fallbacks_are_compiled_and_run_in_several_threads() -> None:
    """Each thread makes a session of its own, and all run one more that they share."""
    model = onnx.parser.parse_model(LOOP)
    with pytest.warns(UserWarning, match="Unique, Loop"):
        shared = InferenceSession(model)
    errors: list[str] = []

    def work(number: int) -> None:
        x = weights(8, 16, seed=number)
        for session in (shared, InferenceSession(model)):
            for _ in range(50):
                y, values = session.run(None, {"x": x})
                if not np.array_equal(y, np.maximum(8 * x, 0)) or not np.array_equal(values, np.unique(x)):
                    errors.append(f"thread {number} has another's values")
                    return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


def test_profile_names_the_kernels(session: InferenceSession) -> None:
    assert [entry.name for entry in session.profile({"a": A, "b": B})] == ["add", "relu"]
    with pytest.raises(TilewrightError, match="input 'b' was not given"):
        session.profile({"a": A})
