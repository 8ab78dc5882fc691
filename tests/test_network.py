"""From an ONNX model to a session: all ways to name a model, and records that give its kernels their programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.partition.partitions import Array, weights
from tilewright import te, zoo
from tilewright.deploy.artifact import load, save
from tilewright.deploy.compilation import compile_model
from tilewright.errors import ScheduleError, TilewrightError, UsageError
from tilewright.network import InferenceSession, Records, compile_network, partition_network, recorded_programs
from tilewright.partition import Partition
from tilewright.records import Record, RecordLog, names_of
from tilewright.schedule import Schedule, Trace
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.task_scheduler import deployed_context

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


def recorded(cut: Partition, records: Records, target: Target, threads: int, context: str = "warm") -> dict[str, Trace]:
    programs = recorded_programs(cut, records, target, threads, context)
    return {key: found.best.trace for key, found in programs.items() if found.best is not None}


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
    assert recorded(cut, path, NATIVE, 2) == {first.hash: splitting_trace(first, 4)}
    assert recorded(cut, [record(second, 2, 1.0)], NATIVE, 2) == {second.hash: splitting_trace(second, 2)}
    check(InferenceSession(perceptron(), path, threads=2))


def test_records_of_the_context_come_first_and_others_where_it_has_none() -> None:
    cut = partition_network(perceptron())
    first, second = (weighted.task for weighted in cut.tasks)
    records = [
        record(first, 2, 1e-3),
        record(first, 4, 3e-3, context="cold-9M"),
        record(first, 8, 2e-3, context="cold-9M"),
        record(second, 2, 1e-3, context="cold-9M"),
    ]
    of_second = {second.hash: splitting_trace(second, 2)}
    assert recorded(cut, records, NATIVE, 2) == {first.hash: splitting_trace(first, 2), **of_second}
    assert recorded(cut, records, NATIVE, 2, "cold-9M") == {first.hash: splitting_trace(first, 8), **of_second}
    unusable = replace(record(first, 2, 1e-4, context="cold-9M"), trace=ILLEGAL, names=names_of(first))
    with pytest.warns(UserWarning, match="set aside"):
        assert recorded(cut, [unusable, records[0]], NATIVE, 2, "cold-9M") == {first.hash: splitting_trace(first, 2)}


def test_records_are_looked_for_as_the_network_runs_its_kernels() -> None:
    cut = partition_network(perceptron())
    first = cut.tasks[0].task
    deployed = str(deployed_context(cut.tasks))
    assert deployed.startswith("cold-")
    records = [record(first, 2, 1e-3), record(first, 8, 2e-3, context=deployed)]
    programs = recorded_programs(cut, records, NATIVE, 2)[first.hash]
    assert programs.best is not None
    assert programs.best.context == deployed
    with pytest.raises(UsageError, match="the context is 'lukewarm'; it must be 'warm'"):
        recorded_programs(cut, records, NATIVE, 2, "lukewarm")


def test_a_record_of_the_version_before_is_taken(tmp_path: Path) -> None:
    cut = partition_network(perceptron())
    first = cut.tasks[0].task
    old = str(NATIVE).partition(" -l1d=")[0]
    records = [record(first, 4, 1e-3, target=old), record(first, 8, 1e-4, target=f"{old} -l1d=1M")]
    assert recorded(cut, records, NATIVE, 2) == {first.hash: splitting_trace(first, 4)}


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
    assert recorded(cut, path, NATIVE, 2) == {second.hash: splitting_trace(second, 2)}
    check(InferenceSession(perceptron(), path, threads=2))


def test_a_record_whose_names_are_not_known_is_left_out() -> None:
    cut = partition_network(perceptron())
    second = cut.tasks[1].task
    trace = Trace.from_json([{"step": "split", "stage": "product", "arguments": ["x", [2]]}])
    known = replace(record(second, 2, 1.0), trace=trace)
    assert recorded(cut, [known], NATIVE, 2) == {}


ILLEGAL = Trace.from_json([{"step": "vectorize", "stage": "nowhere", "arguments": ["i"]}])


def used_programs(model: onnx.ModelProto, path: Path) -> dict[str, Trace]:
    cut = partition_network(model)
    programs = recorded_programs(cut, path, NATIVE, 2)
    compile_model(cut, programs, NATIVE, 2)
    return {key: found.best.trace for key, found in programs.items() if found.best is not None}


def unrolled(task: Task) -> Trace:
    """More statements than are compiled."""
    schedule = Schedule(task)
    stage = schedule[task.stages[0].name]
    for loop in stage.loops:
        stage.unroll(loop)
    return schedule.trace


@pytest.mark.parametrize(
    ("bad", "reason"),
    [(lambda task: ILLEGAL, "there is no stage 'nowhere'"), (unrolled, "unrolls to more than 8192 statements")],
    ids=["does not apply", "does not compile"],
)
@pytest.mark.parametrize("next_best", [True, False])
def test_a_record_that_cannot_be_used_is_set_aside(
    bad: Callable[[Task], Trace], reason: str, next_best: bool, tmp_path: Path
) -> None:
    first = partition_network(perceptron(32)).tasks[0].task
    fastest = replace(record(first, 2, 1e-4), trace=bad(first), names=names_of(first))
    path = tmp_path / "records.jsonl"
    RecordLog(path).extend([fastest, record(first, 4, 1e-3)] if next_best else [fastest])
    message = f"records.jsonl:2: the record is set aside, since its program cannot be used: .*{reason}"
    with pytest.warns(UserWarning, match=message):
        session = InferenceSession(perceptron(32), path, threads=2)
    check(session, batch=32)
    with pytest.warns(UserWarning, match=message):
        used = used_programs(perceptron(32), path)
    assert used.get(first.hash) == (splitting_trace(first, 4) if next_best else None)


def test_a_broken_task_in_a_file_costs_none_of_its_programs(tmp_path: Path) -> None:
    first = partition_network(perceptron(32)).tasks[0].task
    path = tmp_path / "records.jsonl"
    RecordLog(path).append(record(first, 4, 1e-3), first)
    path.write_text(path.read_text().replace('"definition":', "", 1))
    with pytest.warns(UserWarning, match="a task is set aside: .*records.jsonl:2: the line is not JSON"):
        session = InferenceSession(perceptron(32), path, threads=2)
    check(session, batch=32)
    with pytest.warns(UserWarning, match="a task is set aside"):
        assert used_programs(perceptron(32), path)[first.hash] == splitting_trace(first, 4)


def test_many_useless_records_cost_little_and_say_little() -> None:
    cut = partition_network(perceptron())
    first = cut.tasks[0].task
    names = [f"nowhere{n}" for n in range(100)]
    useless = [Trace.from_json([{"step": "vectorize", "stage": name, "arguments": ["i"]}]) for name in names]
    records = [replace(record(first, 2, 1e-4), trace=trace, names=names_of(first)) for trace in useless]
    with pytest.warns(UserWarning, match="set aside") as warned:
        assert recorded(cut, records, NATIVE, 2) == {}
    assert len(warned) == 6


def test_a_given_trace_that_does_not_compile_is_an_error() -> None:
    cut = partition_network(perceptron())
    task = cut.tasks[0].task
    with pytest.raises(ScheduleError, match="there is no stage 'nowhere'"):
        compile_model(cut, {task.hash: ILLEGAL}, NATIVE, 2)


def test_records_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="missing.jsonl"):
        InferenceSession(perceptron(), tmp_path / "missing.jsonl")


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    InferenceSession(perceptron(), on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def convolution(
    size: int = 9, channels: int = 16, dilations: tuple[int, int] = (1, 1), group: int = 1
) -> tuple[onnx.ModelProto, Array]:
    """y = relu(conv(x) + bias), 3x3 with padding; and its weights."""
    kernel = weights(channels, channels // group, 3, 3, seed=4)
    conv = helper.make_node("Conv", ["x", "K", "b"], ["a"], pads=[*dilations] * 2, dilations=dilations, group=group)
    graph = helper.make_graph(
        [conv, helper.make_node("Relu", ["a"], ["y"])],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, size, size])],
        [onnx.numpy_helper.from_array(kernel, "K"), onnx.numpy_helper.from_array(weights(channels, seed=5), "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), kernel


def winograd_records(cut: Partition) -> list[Record]:
    """A program with another algorithm for each task that has one, said to be the fastest."""
    found = []
    for weighted in cut.tasks:
        sketches = derive(weighted.task, SpaceOptions(NATIVE, 2, exact=False))
        for sketch in (sketch for sketch in sketches if not sketch.is_exact):
            trace = sketch.sample(np.random.default_rng(0), 1).trace(0)
            found.append(replace(record(weighted.task, 2, 1e-9), trace=trace, names=names_of(weighted.task)))
    return found


@pytest.mark.parametrize(("dilations", "group"), [((1, 1), 1), ((2, 2), 1), ((2, 1), 1), ((1, 3), 1), ((2, 2), 2)])
def test_transformed_weights_are_in_the_compiled_model_and_its_file(
    tmp_path: Path, dilations: tuple[int, int], group: int
) -> None:
    model, kernel = convolution(channels=16 * group, dilations=dilations, group=group)
    cut = partition_network(model)
    records = winograd_records(cut)
    assert records
    x = weights(1, 16 * group, 9, 9, seed=6)
    (direct,) = InferenceSession(model, threads=2, exact=True).run(None, {"x": x})
    for one in records:
        compiled = compile_network(model, [one], threads=2, target=NATIVE)
        assert max(array.size for array in compiled.weights) > kernel.size  # 16 products or more for 9 taps
        (found,) = InferenceSession(compiled).run(None, {"x": x})
        assert not np.array_equal(found, direct)
        np.testing.assert_allclose(found, direct, rtol=1e-4, atol=1e-4 * direct.std())
        save(compiled, tmp_path / "model.tw")
        np.testing.assert_array_equal(InferenceSession(tmp_path / "model.tw").run(None, {"x": x})[0], found)


def test_an_exact_network_leaves_out_records_of_algorithms_that_round_more() -> None:
    model, _ = convolution()
    cut = partition_network(model)
    records = winograd_records(cut)
    assert recorded_programs(cut, records, NATIVE, 2, "warm")
    assert not recorded_programs(cut, records, NATIVE, 2, "warm", exact=True)
    x = weights(1, 16, 9, 9, seed=6)
    exact = compile_network(model, records, threads=2, target=NATIVE, exact=True)
    untuned = compile_network(model, threads=2, target=NATIVE, exact=True)
    np.testing.assert_array_equal(*(InferenceSession(m).run(None, {"x": x})[0] for m in (exact, untuned)))


def test_a_network_without_records_uses_such_algorithms_too_unless_it_must_be_exact(tmp_path: Path) -> None:
    model, _ = convolution(size=24, channels=64)
    free, exact = (compile_network(model, threads=2, target=NATIVE, exact=exact) for exact in (False, True))
    assert any(name.startswith("winograd") for kernel in free.kernels for name in kernel.algorithms)
    assert not free.is_exact
    assert exact.is_exact
    x = weights(1, 64, 24, 24, seed=6)
    found, sums = (InferenceSession(compiled).run(None, {"x": x})[0] for compiled in (free, exact))
    np.testing.assert_allclose(found, sums, rtol=1e-4, atol=1e-4 * sums.std())
    for compiled in (free, exact):
        save(compiled, tmp_path / "model.tw")
        assert [kernel.algorithms for kernel in load(tmp_path / "model.tw").kernels] == [
            kernel.algorithms for kernel in compiled.kernels
        ]
    assert InferenceSession(exact, exact=True).model is exact
    with pytest.raises(UsageError, match="compiled with algorithms that round more; compile it again with exact=True"):
        InferenceSession(free, exact=True)
