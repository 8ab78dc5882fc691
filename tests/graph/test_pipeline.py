"""From an ONNX model to a session: all ways to name a model, and records that give its kernels their programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.graph.partitions import Array, weights
from tilewright import te
from tilewright.codegen import Target
from tilewright.errors import TilewrightError, UsageError
from tilewright.graph import zoo
from tilewright.graph.artifact import save
from tilewright.graph.pipeline import compile_network, partition_network, recorded_traces
from tilewright.graph.session import InferenceSession
from tilewright.records import Record, RecordLog, names_of
from tilewright.schedule import Schedule, Trace
from tilewright.task import Task

NATIVE = Target.native()
W, V = weights(16, 32, seed=1), weights(32, 8, seed=2)


def perceptron(batch: int | str = 4) -> onnx.ModelProto:
    """y = relu(x W) V."""
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "V"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 8])],
        [onnx.numpy_helper.from_array(W, "W"), onnx.numpy_helper.from_array(V, "V")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def expected(x: Array) -> Array:
    y: Array = np.maximum(x @ W, 0) @ V
    return y


def check(session: InferenceSession, batch: int = 4) -> None:
    x = weights(batch, 16, seed=3)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, expected(x), rtol=1e-4, atol=1e-4)


def test_a_model_is_a_message_its_bytes_a_path_or_compiled(tmp_path: Path) -> None:
    model = perceptron()
    check(InferenceSession(model))
    check(InferenceSession(model.SerializeToString()))
    onnx.save(model, tmp_path / "model.onnx")
    check(InferenceSession(tmp_path / "model.onnx"))
    save(compile_network(str(tmp_path / "model.onnx")), tmp_path / "model.tw")
    check(InferenceSession(tmp_path / "model.tw"))


def test_open_dimensions_are_fixed_by_shapes() -> None:
    session = InferenceSession(perceptron("batch"), shapes={"x": (3, 16)}, threads=1)
    assert session.get_inputs()[0].shape == [3, 16]
    check(session, batch=3)


def test_a_network_of_the_zoo_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo, "build", lambda name: {"small": perceptron()}[name])
    check(InferenceSession("zoo:small"))


def test_an_unknown_network_of_the_zoo() -> None:
    with pytest.raises(UsageError, match="resnet18, .* got 'resnet9000'"):
        InferenceSession("zoo:resnet9000")


def splitting_trace(task: Task, factor: int) -> Trace:
    """Another program: the last axis of the last stage in pieces."""
    schedule = Schedule(task)
    stage = schedule[task.stages[-1].name]
    stage.split(stage.loops[1], factor)
    return schedule.trace


def record(task: Task, factor: int, latency_s: float, **changes: Any) -> Record:
    options: dict[str, Any] = {"task": task.hash, "target": str(NATIVE), "threads": 2} | changes
    return Record(
        workload="", trace=splitting_trace(task, factor), status="OK", latency_s=latency_s, runs_s=(), **options
    )


def test_the_fastest_record_of_the_same_target_and_threads_is_taken(tmp_path: Path) -> None:
    cut = partition_network(perceptron())
    first, second = (weighted.task for weighted in cut.tasks)
    path = tmp_path / "records.jsonl"
    RecordLog(path).extend(
        [
            record(first, 2, 3e-3),
            record(first, 4, 1e-3),
            record(first, 8, 1e-4, threads=1),
            record(first, 8, 1e-4, target="llvm -mcpu=haswell"),
            record(first, 8, 2e-3),
        ]
    )
    assert recorded_traces(cut, path, NATIVE, 2) == {first.hash: splitting_trace(first, 4)}
    assert recorded_traces(cut, [record(second, 2, 1.0)], NATIVE, 2) == {second.hash: splitting_trace(second, 2)}
    check(InferenceSession(perceptron(), path, threads=2))


def test_records_of_a_task_under_other_names_serve_a_network(tmp_path: Path) -> None:
    cut = partition_network(perceptron())
    second = cut.tasks[1].task
    left, right = te.placeholder((4, 32), name="left"), te.placeholder((32, 8), name="right", constant=True)
    k = te.reduce_axis(32, name="k")
    product = te.compute((4, 8), lambda y, x: te.sum(left[y, k] * right[k, x], axis=k), name="product")
    known = Task([left, right], product)
    assert known.hash == second.hash
    path = tmp_path / "records.jsonl"
    RecordLog(path).append(record(known, 2, 1.0, names=names_of(known)))
    assert recorded_traces(cut, path, NATIVE, 2) == {second.hash: splitting_trace(second, 2)}
    check(InferenceSession(perceptron(), path, threads=2))


def test_a_record_whose_names_are_not_known_is_left_out() -> None:
    cut = partition_network(perceptron())
    second = cut.tasks[1].task
    trace = Trace.from_json([{"step": "split", "stage": "product", "arguments": ["x", [2]]}])
    known = replace(record(second, 2, 1.0), trace=trace)
    assert recorded_traces(cut, [known], NATIVE, 2) == {}


def test_records_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="missing.jsonl"):
        InferenceSession(perceptron(), tmp_path / "missing.jsonl")


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    InferenceSession(perceptron(), on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]
