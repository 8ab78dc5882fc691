"""`tilewright inspect`: each part that it prints, and which program it shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilewright import workloads
from tilewright.cli import main
from tilewright.records import Record, RecordLog, names_of
from tilewright.schedule import Schedule, Trace
from tilewright.target import Target

WORKLOAD = "gmm:32x32x32+relu"


@pytest.fixture
def records(tmp_path: Path) -> str:
    """A file with one program, which is vectorized by 8."""
    task = workloads.parse(WORKLOAD)
    schedule = Schedule(task)
    _, lanes = schedule["C"].split("j", 8)
    schedule["C"].reorder("i", "j.0", "k", "j.1")
    schedule["C"].vectorize(lanes)
    log = RecordLog(tmp_path / "r.jsonl")
    log.append(Record(task.hash, WORKLOAD, str(Target.native()), 1, schedule.trace, "OK", 1e-3, (1e-3,)))
    return str(log.path)


def test_the_computation_is_always_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", WORKLOAD]) == 0
    printed = capsys.readouterr().out
    assert "flop 6.656e+04" in printed
    assert "  A: float32[32, 32]\n" in printed
    assert "  C[i, j] = sum(A[i, k] * B[k, j], axis=[k])\n" in printed
    assert "sketch" not in printed


def test_sketches_show_their_loops_and_knobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", WORKLOAD, "--sketches", "--target", "llvm -mcpu=haswell", "--threads", "2"]) == 0
    sketches = capsys.readouterr().out.split("\nsketch ")[1:]
    assert len(sketches) >= 2
    assert all("vectorize j." in sketch and "range(?)" in sketch and " candidates\n" in sketch for sketch in sketches)
    assert any("C.unroll" in sketch and "unroll, 3 choices, such as 16" in sketch for sketch in sketches)


def test_the_code_of_the_recorded_program_is_shown(records: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", WORKLOAD, "--records", records, "--threads", "1", "--ir", "--llvm", "--asm"]) == 0
    printed = capsys.readouterr().out
    assert f"# the best of {records}, recorded with 1 ms" in printed
    assert 's["C"].vectorize("j.1")' in printed
    assert "vectorize j.1 in range(8):" in printed
    assert "define " in printed
    assert ".text" in printed


def test_an_algorithm_that_rounds_more_is_named_unless_sums_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["inspect", "c2d:1x24x24x32,32,3x3,s1,p1", "--target", "llvm -mcpu=haswell", "--threads", "2", "--ir"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert 's["conv"].algorithm("winograd' in printed
    assert ", which rounds more than sums do" in printed
    assert main([*command, "--exact"]) == 0
    assert "winograd" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([{"step": "vectorize", "stage": "C", "arguments": ["nowhere"]}], "stage C has no loop 'nowhere'"),
        (
            [{"step": "unroll", "stage": "C", "arguments": [loop]} for loop in "ijk"],
            "unrolls to more than 8192 statements",
        ),
    ],
)
def test_a_record_that_cannot_be_used_gives_way_to_the_next_or_the_default(
    steps: list[dict[str, object]], reason: str, records: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (known,) = RecordLog(records).read()
    names = names_of(workloads.parse(WORKLOAD))
    useless = replace(known, trace=Trace.from_json(steps), latency_s=1e-4, names=names)
    RecordLog(records).append(useless)
    assert main(["inspect", WORKLOAD, "--records", records, "--threads", "1", "--ir"]) == 0
    printed = capsys.readouterr()
    assert f"# the best of {records}, recorded with 1 ms" in printed.out
    assert printed.err.startswith(f"tilewright: warning: {records}:3: the record is set aside, since its program")
    assert reason in printed.err
    alone = RecordLog(tmp_path / "alone.jsonl")
    alone.append(useless)
    assert main(["inspect", WORKLOAD, "--records", str(alone.path), "--threads", "1", "--ir"]) == 0
    printed = capsys.readouterr()
    assert f"# the best by the cost model that ships; no program of {alone.path} can be used" in printed.out
    assert f"{alone.path}:2: the record is set aside" in printed.err


def test_without_records_the_analytical_model_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", WORKLOAD, "--ir", "--target", "llvm -mcpu=haswell"]) == 0
    printed = capsys.readouterr().out
    assert "# the best by the cost model that ships; nothing was measured" in printed
    assert "# loop nest\ndef gmm_32x32x32_relu(" in printed


def test_records_without_the_workload_are_wrong_usage(records: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", WORKLOAD, "--records", records, "--threads", "3", "--ir"]) == 2
    assert "it has it for 1 threads on " in capsys.readouterr().err
    assert main(["inspect", "gmm:8x8x8", "--records", records, "--ir"]) == 2
    assert "it holds other workloads" in capsys.readouterr().err


def test_an_unknown_workload_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "gemm:8x8x8"]) == 2
    assert "a workload begins with one of" in capsys.readouterr().err


def test_the_tasks_of_a_network_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "zoo:dcgan", "--tasks"]) == 0
    printed = capsys.readouterr().out
    assert "input input: float32[1, 100, 1, 1]\noutput output: float32[1, 3, 64, 64]\n" in printed
    assert "kernels 6, of 6 tasks; views 5\n" in printed
    assert "fallbacks 0\n" in printed
    assert "convtranspose_relu(x0[1, 8, 8, 256], " in printed
    assert main(["inspect", "zoo:dcgan"]) == 0
    assert "convtranspose" not in capsys.readouterr().out


def test_shapes_that_a_model_leaves_open_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx

    path = tmp_path / "open.onnx"
    text = '<ir_version: 8, opset_import: ["" : 18]> open (float[n,4] x) => (int64[2,m] y) { y = NonZero(x) }'
    onnx.save(onnx.parser.parse_model(text), path)
    assert main(["inspect", str(path), "--tasks", "--shape", "x=3x4"]) == 0
    printed = capsys.readouterr().out
    assert "input x: float32[3, 4]\noutput y: known when it runs\n" in printed
    assert "fallbacks 1, by the reference evaluator of ONNX\n" in printed
    assert "y = NonZero(x): the type of y is known only when the network runs" in printed
    assert main(["inspect", str(path), "--shape", "3x4"]) == 2
    assert "give a name and sizes, such as input=1x3x224x224" in capsys.readouterr().err


def test_a_model_with_open_dimensions_shows_how_to_give_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    monkeypatch.chdir(tmp_path)
    text = '<ir_version: 8, opset_import: ["" : 18]> net (float[n,4] x, float[m] b) => (float[n,k] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), "net.onnx")
    assert main(["inspect", "net.onnx", "--tasks", "--shape", "n=2"]) == 0
    *described, _, command, call = capsys.readouterr().out.splitlines()
    assert described == [
        "network net",
        "input x: float32[n, 4]",
        "input b: float32[m]",
        "output y: float32[n, k]",
    ]
    assert command == "  tilewright inspect net.onnx --shape n=2 --shape m=1"
    assert call == "  tw.InferenceSession('net.onnx', shapes={'n': 2, 'm': 1})"
    assert main(command.split()[1:]) == 0
    assert "input x: float32[2, 4]\ninput b: float32[1]\noutput y: float32[2, 4]\n" in capsys.readouterr().out


def test_outputs_of_any_kind_are_described_before_shapes_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import onnx

    path = tmp_path / "net.onnx"
    text = (
        '<ir_version: 8, opset_import: ["" : 18]> net (float[n] x, float[] c, float y) => (seq(float[n]) s) '
        "{ s = SequenceConstruct(x) }"
    )
    proto = onnx.parser.parse_model(text)
    proto.graph.input[2].type.tensor_type.ClearField("shape")
    onnx.save(proto, path)
    assert main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "network net\ninput x: float32[n]\n" in printed
    assert "input y: float32 of unknown rank\noutput s: sequence\n" in printed


@pytest.mark.parametrize("command", [["compile", "-o", "net.tw"], ["run", "--random"], ["bench", "--rounds", "1"]])
def test_a_dimension_is_given_by_name_to_every_command(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    monkeypatch.chdir(tmp_path)
    text = '<ir_version: 8, opset_import: ["" : 18]> net (float[n,4] x) => (float[n,4] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), "net.onnx")
    name, *options = command
    assert main([name, "net.onnx", "--shape", "n=3", *options]) == 0
    assert main([name, "net.onnx", *options]) == 1
    assert "--shape n=1; in Python, shapes={'n': 1}" in capsys.readouterr().err


def test_tasks_are_of_models_and_code_is_of_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", WORKLOAD, "--tasks"]) == 2
    assert "is one task" in capsys.readouterr().err
    assert main(["inspect", "zoo:dcgan", "--ir"]) == 2
    assert "--ir was given, but zoo:dcgan is a model, not one workload" in capsys.readouterr().err
