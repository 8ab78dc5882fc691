"""A network as a C library: the example is compiled, run, and compared with the session."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.partition.partitions import PartitionBuilder, packing_trace, residual, weights
from tilewright import te
from tilewright.deploy.compilation import compile_model
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.export_c import export_c
from tilewright.errors import ArtifactError, UsageError
from tilewright.network import InferenceSession
from tilewright.operators import Node, TensorType
from tilewright.partition import Partition
from tilewright.target import Target

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic")


def compiled(partition: Partition, target: str = "native") -> CompiledModel:
    return compile_model(partition, {}, Target.parse(target), 2, default_trace=packing_trace)


def build_example(folder: Path, name: str = "model") -> Path:
    command = ["cc", "-std=c11", *WARNINGS, "example.c", "-o", "example", "-L.", f"-l{name}", "-Wl,-rpath,."]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return folder / "example"


def run_example(folder: Path, model: CompiledModel, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What the example writes for these inputs, as arrays of the model's types."""
    files = [f"in{n}.bin" for n in range(len(model.inputs))]
    for name, value in zip(files, model.inputs, strict=True):
        inputs[value.name].tofile(folder / name)
    outputs = [f"out{n}.bin" for n in range(len(model.outputs))]
    done = subprocess.run(["./example", *files, *outputs], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stdout.count("run ") == 2
    described = InferenceSession(model).get_outputs()
    dtypes = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    return [
        np.fromfile(folder / name, dtypes[output.type]).reshape(output.shape)
        for name, output in zip(outputs, described, strict=True)
    ]


def test_the_example_computes_what_the_session_does(tmp_path: Path) -> None:
    model = compiled(residual(width=64, num_blocks=3))
    library = export_c(model, tmp_path / "c")
    assert library == tmp_path / "c" / "libmodel.so"
    assert sorted(path.name for path in library.parent.iterdir()) == ["example.c", "libmodel.so", "model.h"]
    build_example(library.parent)
    x = weights(4, 64, seed=3)
    (result,) = run_example(library.parent, model, {"x": x})
    assert np.array_equal(result, InferenceSession(model).run(None, {"x": x})[0])


@pytest.mark.qemu
def test_a_library_for_another_machine_computes_the_same_in_its_emulator(tmp_path: Path) -> None:
    compiler = "aarch64-linux-gnu-gcc"
    export_c(compiled(residual(width=64, num_blocks=3), "aarch64"), tmp_path, compiler=compiler)
    build = [compiler, "example.c", "-o", "example", "-L.", "-lmodel", "-Wl,-rpath,."]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    x = weights(4, 64, seed=3)
    x.tofile(tmp_path / "in")
    emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
    subprocess.run([*emulator, "./example", "in", "out"], cwd=tmp_path, check=True, capture_output=True)
    expected = InferenceSession(compiled(residual(width=64, num_blocks=3))).run(None, {"x": x})[0]
    found = np.fromfile(tmp_path / "out", np.float32).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_inputs_outputs_and_copies_of_all_kinds(tmp_path: Path) -> None:
    """Two inputs, scalars, odd names, outputs that are inputs, constants, or each other under another shape."""
    net = PartitionBuilder('a "strange" */ name')
    a, b = net.input("a/b:0 \\ é", (2, 3)), net.input("n", (), "int64")
    y = net.relu(a, "y")
    net.constant("c", np.arange(4, dtype=np.float32))
    m = net.kernel("next", [b], lambda N: te.compute((), lambda: N[()] + 1, name="m"), "m")
    model = compiled(net.partition(m, net.view(y, (6,), "flat"), y, y, a, "c", net.view("c", (2, 2), "d"), b))
    build_example(export_c(model, tmp_path, name="strange").parent, "strange")
    feed = {a: weights(2, 3), b: np.array(41)}
    expected = InferenceSession(model).run(None, feed)
    for result, value in zip(run_example(tmp_path, model, feed), expected, strict=True):
        assert result.shape == value.shape
        assert np.array_equal(result, value)


def test_a_network_without_kernels(tmp_path: Path) -> None:
    net = PartitionBuilder()
    model = compiled(net.partition(net.input("x", (3,))))
    build_example(export_c(model, tmp_path).parent)
    assert run_example(tmp_path, model, {"x": np.arange(3, dtype=np.float32)})[0].tolist() == [0, 1, 2]


def test_the_header_says_names_types_and_shapes(tmp_path: Path) -> None:
    export_c(compiled(residual()), tmp_path, name="net")
    text = (tmp_path / "net.h").read_text()
    for line in [
        "#define NET_NUM_INPUTS 1",
        '#define NET_INPUT_0_NAME "x"',
        "#define NET_INPUT_0_TYPE float",
        "#define NET_INPUT_0_NUM_DIMS 2",
        "#define NET_INPUT_0_SHAPE {4, 8}",
        "#define NET_OUTPUT_0_NUM_ELEMENTS 32",
        "#define NET_MAX_THREADS 2",
        "int net_run(net_session *session, const void *const *inputs, void *const *outputs);",
    ]:
        assert line in text.splitlines()


TWO_SESSIONS = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "model.h"
typedef MODEL_INPUT_0_TYPE element;
static void *work(void *start) {
    model_session *session = model_init(*(int *)start);
    static const int shape[] = MODEL_INPUT_0_SHAPE;
    element x[MODEL_INPUT_0_NUM_ELEMENTS], first[MODEL_OUTPUT_0_NUM_ELEMENTS], y[MODEL_OUTPUT_0_NUM_ELEMENTS];
    for (int i = 0; i < shape[0] * shape[1]; i++) x[i] = (float)(i % 7) + (float)*(int *)start;
    const void *inputs[] = {x};
    void *once[] = {first}, *again[] = {y};
    if (session == NULL || model_run(session, inputs, once) != MODEL_OK) return "failed";
    for (int i = 0; i < 300; i++) {
        if (model_run(session, inputs, again) != MODEL_OK) return "failed";
        if (memcmp(first, y, sizeof y) != 0) return "differs";
    }
    model_free(session);
    return NULL;
}
int main(void) {
    pthread_t threads[2];
    int starts[] = {1, 2};
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &starts[i]);
    int failures = 0;
    for (int i = 0; i < 2; i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        if (problem != NULL) printf("%s\\n", (char *)problem), failures++;
    }
    model_free(NULL);
    return failures;
}
"""


def test_two_sessions_run_at_once_in_c(tmp_path: Path) -> None:
    export_c(compiled(residual(width=16)), tmp_path)
    (tmp_path / "two.c").write_text(TWO_SESSIONS)
    command = ["cc", "-std=gnu11", *WARNINGS[:3], "two.c", "-o", "two", "-L.", "-lmodel", "-Wl,-rpath,.", "-pthread"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./two"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_only_the_three_functions_are_visible(tmp_path: Path) -> None:
    library = export_c(compiled(residual()), tmp_path)
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[-1] for line in listing.splitlines()) == ["model_free", "model_init", "model_run"]


def test_the_example_explains_wrong_arguments_and_files(tmp_path: Path) -> None:
    build_example(export_c(compiled(residual()), tmp_path).parent)
    done = subprocess.run(["./example", "x.bin"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "usage: ./example x.bin y.bin\n")
    (tmp_path / "short.bin").write_bytes(b"1234")
    done = subprocess.run(
        ["./example", "short.bin", "y.bin"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "short.bin: 4 bytes of 128\n")
    subprocess.run(["./example"], cwd=tmp_path, capture_output=True, check=True)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_network_with_fallbacks_is_refused(tmp_path: Path) -> None:
    net = PartitionBuilder()
    net.fallback(Node("CumSum", (net.input("x", (3,)),), ("y",)), TensorType("float32", (3,)))
    with pytest.raises(ArtifactError, match="these operators of net have none: CumSum; replace them"):
        export_c(compiled(net.partition("y")), tmp_path)


@pytest.mark.parametrize(
    ("shape", "dtype", "what"), [((3,), "string", r"string\[3\]"), ((0, 4), "float32", r"float32\[0, 4\]")]
)
def test_arrays_that_c_has_no_type_for_are_refused(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, what: str
) -> None:
    net = PartitionBuilder()
    with pytest.raises(ArtifactError, match=f"takes arrays of numbers that have elements, and x of net is {what};"):
        export_c(compiled(net.partition(net.input("x", shape, dtype))), tmp_path)


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ArtifactError, match="there is no cc or gcc or clang on the PATH; install gcc or clang"):
        export_c(compiled(residual()), tmp_path)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ArtifactError, match="there is no no-such-compiler on the PATH"):
        export_c(compiled(residual()), tmp_path)


def test_a_compiler_for_another_target_fails_with_its_words(tmp_path: Path) -> None:
    model = compiled(residual(), "aarch64")
    with pytest.raises(ArtifactError, match=r"could not make the C library for llvm -mcpu=generic -mtriple=aarch64"):
        export_c(model, tmp_path / "c", compiler="cc")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("name", ["", "1st", "a-b", "é"])
def test_a_name_that_c_does_not_allow(tmp_path: Path, name: Any) -> None:
    with pytest.raises(UsageError, match="it must be an identifier of C"):
        export_c(compiled(residual()), tmp_path, name=name)
