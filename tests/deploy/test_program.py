"""Compiled networks: steps and places of values, packed weights, and what running them computes."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.partition.partitions import Array, PartitionBuilder, packing_trace, residual, residual_reference, weights
from tilewright import te
from tilewright.codegen.native import LoadedObject, compile_object
from tilewright.deploy.compilation import compile_model, naive_trace
from tilewright.deploy.compiled import CompiledModel, FallbackStep, NativeStep, Place
from tilewright.deploy.kernel_workers import DefaultTrace
from tilewright.deploy.program import Program
from tilewright.errors import KernelArgumentError, ModelError, ScheduleError, TilewrightError
from tilewright.operators import Node, TensorType
from tilewright.partition import KernelPart, Partition
from tilewright.runtime import _native
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task

Types = Sequence[TensorType | None]
NATIVE = Target.native()
FLOAT = np.float32


def compiled(partition: Partition, threads: int = 2, **options: Any) -> CompiledModel:
    return compile_model(partition, {}, NATIVE, threads, **{"default_trace": packing_trace} | options)


def input_of(*shape: int, seed: int = 100) -> Array:
    return weights(*shape, seed=seed)


# --- one native step -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_a_residual_network_computes_what_numpy_does(threads: int) -> None:
    partition = residual(width=24, num_blocks=3)
    program = Program(compiled(partition, threads))
    for seed in range(3):
        x = input_of(4, 24, seed=seed)
        (y,) = program([x])
        assert y.shape == (96,)
        np.testing.assert_allclose(y, residual_reference(partition, x), rtol=1e-4, atol=1e-3)


def test_equal_tasks_share_code_and_each_has_its_weights() -> None:
    model = compiled(residual(num_blocks=3))
    assert sorted(kernel.name for kernel in model.kernels) == ["add", "dense", "relu"]
    assert len(model.weights) == 6
    (step,) = model.steps
    assert isinstance(step, NativeStep)
    assert len(step.calls) == 12


def test_only_the_packed_form_of_a_weight_is_kept() -> None:
    partition = residual(num_blocks=1)
    model = compiled(partition)
    packed = [w.shape for w in model.weights]
    assert packed == [(2, 8, 4), (2, 8, 4)]
    expected = partition.graph.constants["w0"].reshape(8, 2, 4).transpose(1, 0, 2)
    assert np.array_equal(model.weights[0], expected)
    assert model.constants == ()


def test_a_weight_is_packed_once_for_equal_readers_and_kept_plain_for_others() -> None:
    net = PartitionBuilder()
    w = net.constant("w", weights(8, 8))
    y = net.dense(net.dense(net.input("x", (4, 8)), w, "a"), w, "b")
    partition = net.partition(y, net.add(w, w, "c"))
    model = compiled(partition)
    assert sorted(array.ndim for array in model.weights) == [2, 3]
    plain = next(array for array in model.weights if array.ndim == 2)
    assert np.array_equal(plain, partition.graph.constants["w"])
    x = input_of(4, 8)
    product, double = Program(model)([x])
    np.testing.assert_allclose(product, x @ plain @ plain, rtol=1e-4, atol=1e-4)
    assert np.array_equal(double, plain + plain)


def test_weights_lie_in_one_block_each_on_a_cache_line() -> None:
    model = compiled(residual(width=5))
    addresses = sorted(array.ctypes.data for array in model.weights)
    assert [b - a for a, b in pairwise(addresses)] == [192] * 3  # packed in panels of 4: 5 x 8 floats
    assert all(address % 64 == 0 for address in addresses)


def test_intermediate_values_and_workspaces_share_the_arena() -> None:
    (step,) = compiled(residual(width=64, num_blocks=8)).native_steps
    value_bytes = 4 * 64 * 4
    assert step.arena_bytes == 3 * value_bytes
    assert [slot.place for slot in step.calls[0].slots] == [Place.ARGUMENT, Place.WEIGHT, Place.ARENA]
    assert step.calls[-1].slots[-1] == (Place.ARGUMENT, 1)


def test_a_kernel_with_a_workspace_has_it_beside_its_values() -> None:
    """Two stages at the root: the first is an intermediate result of the kernel."""

    def body(X: te.Tensor) -> te.Tensor:
        twice = te.compute(X.shape, lambda i: X[i] * 2.0, name="twice")
        return te.compute(X.shape, lambda i: twice[i] + twice[999 - i], name="folded")

    net = PartitionBuilder()
    x = net.input("x", (1000,))
    for n in range(3):
        x = net.kernel("fold", [x], body, f"v{n}")
    model = compiled(net.partition(x))
    (step,) = model.native_steps
    assert step.arena_bytes >= 2 * 4000
    given = input_of(1000)
    expected = given
    for _ in range(3):
        expected = 2 * expected + 2 * expected[::-1]
    np.testing.assert_allclose(Program(model)([given])[0], expected, rtol=1e-5)


def test_a_kernel_with_two_outputs_of_which_one_is_unused() -> None:
    X = te.placeholder((6,), name="X")
    low = te.compute((3,), lambda i: X[i] - 1.0, name="low")
    high = te.compute((3,), lambda i: X[i + 3] + 1.0, name="high")
    net = PartitionBuilder()
    x = net.input("x", (6,))
    net.part(KernelPart((), Task([X], [low, high], name="halves"), (x,), ("low", "high")))
    model = compiled(net.partition(net.relu("high", "y")))
    (y,) = Program(model)([np.array([1, 2, 3, 4, -5, 6], FLOAT)])
    assert y.tolist() == [5, 0, 7]


# --- views and outputs ------------------------------------------------------------------------------------------------


def test_a_value_lives_as_long_as_the_last_of_its_views() -> None:
    """The product is read by the last kernel, but only under another shape."""
    net = PartitionBuilder()
    x = net.input("x", (4, 8))
    product = net.dense(x, net.constant("w", weights(8, 8)), "product")
    late = net.view(net.view(product, (8, 4), "once"), (32,), "late")
    other = net.dense(net.relu(net.dense(product, "w", "p2"), "r"), "w", "p3")
    y = net.add(net.view(other, (32,), "flat"), late, "y")
    partition = net.partition(y)
    given, w = input_of(4, 8), partition.graph.constants["w"]
    expected = (np.maximum(given @ w @ w, 0) @ w + given @ w).reshape(-1)
    np.testing.assert_allclose(Program(compiled(partition))([given])[0], expected, rtol=1e-4, atol=1e-3)


def test_outputs_that_are_inputs_constants_or_each_other_are_copies() -> None:
    net = PartitionBuilder()
    x = net.input("x", (2, 3))
    y = net.relu(x, "y")
    net.constant("c", np.arange(4, dtype=FLOAT))
    outputs = [x, net.view(x, (6,), "flat"), y, net.view(y, (3, 2), "turned"), "c", net.view("c", (2, 2), "square"), y]
    program = Program(compiled(net.partition(*outputs)))
    given = input_of(2, 3)
    results = program([given])
    positive = np.maximum(given, 0)
    expected: list[Any] = [
        given,
        given.reshape(6),
        positive,
        positive.reshape(3, 2),
        np.arange(4),
        [[0, 1], [2, 3]],
        positive,
    ]
    for result, value in zip(results, expected, strict=True):
        assert np.array_equal(result, value)
    for position, result in enumerate(results):
        result[...] = -7
        others = [given, *results[position + 1 :], *program([input_of(2, 3)])]
        assert not any((other == -7).any() for other in others)


def test_a_network_without_kernels_passes_its_input_on() -> None:
    net = PartitionBuilder()
    model = compiled(net.partition(net.input("x", (3,))))
    assert model.steps == ()
    given = np.ones(3, FLOAT)
    (result,) = Program(model)([given])
    assert result.tolist() == [1, 1, 1]
    assert not np.shares_memory(result, given)


def test_an_output_that_later_kernels_read() -> None:
    net = PartitionBuilder()
    y = net.relu(net.input("x", (5,)), "y")
    program = Program(compiled(net.partition(net.add(y, y, "z"), y)))
    z, y_ = program([np.array([-1, 2, -3, 4, 5], FLOAT)])
    assert y_.tolist() == [0, 2, 0, 4, 5]
    assert z.tolist() == [0, 4, 0, 8, 10]


# --- fallbacks --------------------------------------------------------------------------------------------------------


def fallback_network() -> Partition:
    """relu -> (x, then cumulative sum by the evaluator) -> + relu, over a value whose type nobody knows."""
    net = PartitionBuilder("mixed")
    positive = net.relu(net.input("x", (2, 3)), "positive")
    net.constant("axis", np.array(1, np.int64))
    flat = net.view(positive, (3, 2), "turned")
    net.fallback(Node("Mystery", (flat,), ("unknown",)), None)
    net.fallback(Node("CumSum", ("unknown", "axis"), ("sums",), opset=14), TensorType("float32", (3, 2)))
    return net.partition(net.add(net.view("sums", (2, 3), "back"), positive, "y"))


def evaluators(node: Node, types: Types) -> Any:
    def mystery(inputs: Sequence[Any]) -> list[Any]:
        return [inputs[0] * 2]

    def cumulative_sum(inputs: Sequence[Any]) -> list[Any]:
        return [np.cumsum(inputs[0], axis=int(inputs[1]))]

    return {"Mystery": mystery, "CumSum": cumulative_sum}[node.op]


def test_fallbacks_run_between_native_steps() -> None:
    model = compiled(fallback_network())
    kinds = [type(step) for step in model.steps]
    assert kinds == [NativeStep, FallbackStep, FallbackStep, NativeStep]
    given = np.array([[1, -2, 3], [4, 5, -6]], FLOAT)
    (y,) = Program(model, fallback=evaluators)([given])
    positive = np.maximum(given, 0)
    expected = np.cumsum(2 * positive.reshape(3, 2), axis=1).reshape(2, 3) + positive
    assert np.array_equal(y, expected)


def test_a_fallback_on_the_reference_evaluator_of_onnx() -> None:
    net = PartitionBuilder()
    net.constant("axis", np.array(1, np.int64))
    x = net.relu(net.input("x", (2, 3)), "a")
    net.fallback(Node("CumSum", (x, "axis"), ("sums",), opset=14), TensorType("float32", (2, 3)))
    (y,) = Program(compiled(net.partition(net.relu("sums", "y"))))([np.ones((2, 3), FLOAT)])
    assert y.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_a_fallback_may_return_its_operand_and_leave_outputs_out() -> None:
    net = PartitionBuilder()
    x = net.input("x", (3,))
    net.fallback(Node("Odd", (x, ""), ("same", "", "text")), TensorType("float32", (3,)), None, None)
    model = compiled(net.partition("same", "text"))

    def make(node: Node, types: Types) -> Any:
        return lambda inputs: [inputs[0], None, np.array(["a"], object)] if inputs[1] is None else []

    given = np.ones(3, FLOAT)
    same, text = Program(model, fallback=make)([given])
    assert same.tolist() == [1, 1, 1]
    assert not np.shares_memory(same, given)
    assert text.tolist() == ["a"]


def test_fallbacks_are_told_the_types_of_their_outputs() -> None:
    told: list[Types] = []

    def make(node: Node, types: Types) -> Any:
        told.append(types)
        return evaluators(node, types)

    Program(compiled(fallback_network()), fallback=make)
    assert told == [(None,), (TensorType("float32", (3, 2)),)]


def test_bfloat16_crosses_fallbacks_as_that_type_and_kernels_as_bits() -> None:
    import ml_dtypes

    net = PartitionBuilder()
    doubled = net.kernel(
        "twice", [net.input("x", (4,), "bfloat16")], lambda X: te.compute((4,), lambda i: X[i] + X[i], name="d"), "d"
    )
    net.fallback(Node("Keep", (doubled,), ("kept",)), TensorType("bfloat16", (4,)))
    last = net.kernel("again", ["kept"], lambda X: te.compute((4,), lambda i: X[i] + X[i], name="e"), "e")
    seen: list[str] = []

    def make(node: Node, types: Types) -> Any:
        def keep(inputs: Sequence[Any]) -> list[Any]:
            seen.append(inputs[0].dtype.name)
            return [inputs[0] + inputs[0]]

        return keep

    given = np.array([1, 2, -3, 0.5], ml_dtypes.bfloat16).view(np.uint16)
    (result,) = Program(compiled(net.partition(last)), fallback=make)([given])
    assert seen == ["bfloat16"]
    assert result.dtype == np.uint16
    assert result.view(ml_dtypes.bfloat16).astype(FLOAT).tolist() == [8, 16, -24, 4]


def test_a_fallback_whose_result_has_another_shape_than_the_kernels_were_compiled_for() -> None:
    model = compiled(fallback_network())

    def make(node: Node, types: Types) -> Any:
        return lambda inputs: [np.ones((3, 3), FLOAT)]

    with pytest.raises(ModelError, match=r"gave sums the shape \(3, 3\) in node sums = CumSum\(unknown, axis\), but"):
        Program(model, fallback=make)([np.ones((2, 3), FLOAT)])


def test_arrays_between_steps_are_dropped_when_nobody_reads_them() -> None:
    model = compiled(fallback_network())
    seen: list[weakref.ref[Any]] = []

    def make(node: Node, types: Types) -> Any:
        def run(inputs: Sequence[Any]) -> list[Any]:
            if node.op == "Mystery":
                result = inputs[0] * 2
                seen.append(weakref.ref(result))
                return [result]
            return [np.zeros((3, 2), FLOAT)]

        return run

    program = Program(model, fallback=make)
    program([np.ones((2, 3), FLOAT)])
    assert len(seen) == 1
    assert seen[0]() is None


# --- compiling --------------------------------------------------------------------------------------------------------


def test_traces_are_taken_by_the_hash_of_their_task() -> None:
    partition = residual()
    dense = next(w.task for w in partition.tasks if w.task.name == "dense")
    model = compile_model(partition, {dense.hash: packing_trace(dense)}, NATIVE, 2)
    assert model.weights[0].shape == (2, 8, 4)
    assert compile_model(partition, {}, NATIVE, 2).weights[0].shape == (8, 8)


def test_progress_counts_the_different_kernels() -> None:
    seen: list[tuple[int, int]] = []
    compiled(residual(), on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def many_kernels(count: int) -> Partition:
    net = PartitionBuilder()
    x = net.input("x", (7,))
    for n in range(count):
        x = net.kernel(
            f"k{n}", [x], lambda X, n=n: te.compute((7,), lambda i: X[i] * 2.0 + float(n), name="v"), f"v{n}"
        )
    return net.partition(x)


def sign_in_and_choose(task: Task) -> Trace:
    """Leaves the number of the process behind, and in the first process waits for another to do so too."""
    folder = Path(os.environ["SIGN_IN_FOLDER"])
    (folder / str(os.getpid())).touch()
    deadline_s = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return naive_trace(task)


def check_many_kernels(default_trace: DefaultTrace) -> None:
    partition = many_kernels(12)
    seen: list[tuple[int, int]] = []
    model = compiled(partition, default_trace=default_trace, on_progress=lambda *counts: seen.append(counts))
    assert seen == [(n, 12) for n in range(1, 13)]
    given = expected = input_of(7)
    for n in range(12):
        expected = expected * 2 + n
    np.testing.assert_allclose(Program(model)([given])[0], expected, rtol=1e-5)


def test_many_kernels_are_compiled_by_several_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tilewright.deploy.kernel_workers.default_threads", lambda: 2)
    monkeypatch.setenv("SIGN_IN_FOLDER", str(tmp_path))
    check_many_kernels(sign_in_and_choose)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_choice_of_traces_that_other_processes_cannot_import_is_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.deploy.kernel_workers.default_threads", lambda: 2)
    check_many_kernels(lambda task: Trace())


def test_a_lost_process_costs_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.deploy.kernel_workers.default_threads", lambda: 2)
    monkeypatch.setattr("tilewright.deploy.kernel_workers._PROGRAM", "raise SystemExit(3)")
    assert len(compiled(many_kernels(8)).kernels) == 8


def choose_badly(task: Task) -> Trace:
    return Trace.from_json([{"step": "split", "stage": "nowhere", "arguments": ["i", [2]]}])


def test_an_error_of_another_process_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.deploy.kernel_workers.default_threads", lambda: 3)
    with pytest.raises(ScheduleError, match="nowhere"):
        compiled(many_kernels(12), default_trace=choose_badly)


def test_a_default_that_cannot_be_compiled_gives_way_to_the_last_resort(caplog: pytest.LogCaptureFixture) -> None:
    partition = many_kernels(1)
    given = input_of(7)
    model = compiled(partition, default_trace=choose_badly, last_resort=Trace())
    assert np.array_equal(Program(model)([given])[0], given * 2)
    assert len(caplog.records) == 1
    caplog.clear()


def test_a_recorded_program_that_cannot_be_compiled_has_no_last_resort() -> None:
    partition = many_kernels(1)
    task = partition.tasks[0].task
    with pytest.raises(ScheduleError, match="nowhere"):
        compile_model(partition, {task.hash: choose_badly(task)}, Target.native(), 1, last_resort=Trace())


def test_a_network_for_another_machine_has_the_same_packed_weights() -> None:
    partition = residual(num_blocks=1)
    other = compile_model(partition, {}, Target.parse("aarch64"), 2, default_trace=packing_trace)
    assert other.kernels[0].object_code[18:20] == (183).to_bytes(2, "little")
    for here, there in zip(compiled(partition).weights, other.weights, strict=True):
        assert np.array_equal(here, there)


# --- the native program -----------------------------------------------------------------------------------------------


def test_wrong_arrays_are_refused() -> None:
    program = Program(compiled(residual()))
    with pytest.raises(KernelArgumentError, match=r"kernel residual: input x must have shape \(4, 8\), got \(8, 4\)"):
        program([np.zeros((8, 4), FLOAT)])


def test_runs_in_several_threads_do_not_disturb_each_other() -> None:
    partition = residual(width=32, num_blocks=4)
    program = Program(compiled(partition))
    failures: list[int] = []

    def work(seed: int) -> None:
        x = input_of(4, 32, seed=seed)
        expected = residual_reference(partition, x)
        for _ in range(200):
            (y,) = program([x])
            if not np.allclose(y, expected, rtol=1e-2, atol=1e-1 * np.abs(expected).max()):
                failures.append(seed)
                return

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_profile_names_each_call_and_its_time() -> None:
    partition = fallback_network()
    times = Program(compiled(partition), fallback=evaluators).profile([np.ones((2, 3), FLOAT)])
    assert [entry.name for entry in times] == ["relu", "Mystery", "CumSum", "add"]
    assert all(0 <= entry.seconds < 10 for entry in times)


def test_the_code_and_the_weights_go_with_the_program() -> None:
    model = compiled(residual())
    program = Program(model)
    gone = weakref.ref(model.weights[0])
    del model, program
    gc.collect()
    assert gone() is None


def make_native(**changes: Any) -> _native.NativeProgram:
    options: dict[str, Any] = {
        "name": "bare",
        "arguments": (("x", "float32", (3,), False),),
        "constants": (np.zeros(3, FLOAT),),
        "steps": (),
        "arena_bytes": 64,
        "scratch_bytes": 0,
        "num_threads": 1,
        "keepalive": None,
    }
    return _native.NativeProgram(**options | changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"steps": ((1, 0, ((0, 1),)),)}, ValueError, r"program bare has no slot \(0, 1\)"),
        ({"steps": ((1, 0, ((1, 64),)),)}, ValueError, r"program bare has no slot \(1, 64\)"),
        ({"steps": ((1, 0, ((2, 1),)),)}, ValueError, r"program bare has no slot \(2, 1\)"),
        ({"steps": ((1, 0, ((3, 0),)),)}, ValueError, r"program bare has no slot \(3, 0\)"),
        ({"steps": ((1, 0, ((0, -1),)),)}, ValueError, r"program bare has no slot \(0, -1\)"),
        ({"steps": ((1, 0, (5,)),)}, TypeError, r"a slot is described by \(place, position\), got 5"),
        ({"steps": ((0, 0, ()),)}, ValueError, "needs steps with an address and a workspace in the arena"),
        ({"steps": ((1, 65, ()),)}, ValueError, "needs steps with an address and a workspace in the arena"),
        ({"steps": (7,)}, TypeError, r"a step is described by \(entry_address, workspace_offset, slots\), got 7"),
        ({"num_threads": 0}, ValueError, "at least one thread"),
        ({"arena_bytes": -1}, ValueError, "sizes that are not negative"),
        ({"constants": (np.zeros((4, 4))[:, 0],)}, ValueError, "contiguous"),
        ({"arguments": (("x", "float99", (3,), False),)}, ValueError, "unknown dtype 'float99'"),
    ],
)
def test_a_native_program_checks_what_it_is_made_of(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_native(**changes)


def test_a_kernel_that_fails_ends_the_run() -> None:
    code = "define i32 @fails(ptr %rt, ptr %args, ptr %workspace) {\n  ret i32 7\n}\n"
    loaded = LoadedObject(compile_object(code, NATIVE))
    step = (loaded.address("fails"), 0, ((0, 0),))
    program = make_native(steps=(step, step), keepalive=loaded)
    with pytest.raises(TilewrightError, match="kernel bare: the compiled code returned status 7 instead of 0"):
        program(np.zeros(3, FLOAT))
    with pytest.raises(TilewrightError, match="status 7"):
        program.profile((np.zeros(3, FLOAT),))


@pytest.mark.parametrize("sizes", [{"arena_bytes": 1 << 60}, {"scratch_bytes": 1 << 60}], ids=["arena", "scratch"])
def test_too_little_memory_is_an_error_and_not_the_end(sizes: dict[str, int]) -> None:
    program = make_native(**sizes)
    for _ in range(2):
        with pytest.raises(MemoryError):
            program(np.zeros(3, FLOAT))
    make_native()(np.zeros(3, FLOAT))


def test_a_native_program_checks_its_call() -> None:
    program = make_native()
    with pytest.raises(
        KernelArgumentError, match="kernel bare: it takes 1 arrays, its inputs and then its outputs, got 2"
    ):
        program(np.zeros(3, FLOAT), np.zeros(3, FLOAT))
    with pytest.raises(TypeError, match="by position"):
        program(x=np.zeros(3, FLOAT))  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="number must be at least 1, got 0"):
        program.time((np.zeros(3, FLOAT),), 0)
    assert program.time((np.zeros(3, FLOAT),), 3) >= 0
    assert repr(program) == "<NativeProgram bare of 0 steps>"
    assert issubclass(KernelArgumentError, TilewrightError)
