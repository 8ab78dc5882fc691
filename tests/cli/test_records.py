"""`tilewright records`: what it prints, and what it says of files that are not there or broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.records.samples import TARGET, failed, record
from tilewright.cli import main
from tilewright.records import RecordLog
from tilewright.te import Task
from tilewright.workloads import parse


@pytest.fixture
def path(tmp_path: Path) -> str:
    log = RecordLog(tmp_path / "r.jsonl")
    log.extend([record(latency_s=2.5e-3), record(latency_s=1.25e-3), failed(), failed(task="bad0", workload="")])
    return str(log.path)


def test_list_has_one_line_for_each_task(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "list", path]) == 0
    lines = [line.split(maxsplit=7) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["workload", "task", "threads", "trials", "failed", "best", "target"]
    assert lines[1] == ["gmm:512x512x512", "5f3a", "2", "3", "1", "1.25", "ms", TARGET]
    assert lines[2] == ["-", "bad0", "2", "1", "1", "none", "valid", TARGET]


def test_contexts_are_listed_where_not_all_is_warm(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    RecordLog(path).append(record(latency_s=5e-3, context="cold-47M"))
    assert main(["records", "list", path]) == 0
    lines = [line.split(maxsplit=8) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["workload", "task", "threads", "trials", "failed", "best", "context", "target"]
    assert lines[1] == ["gmm:512x512x512", "5f3a", "2", "3", "1", "1.25", "ms", "warm", TARGET]
    assert lines[-1] == ["gmm:512x512x512", "5f3a", "2", "1", "0", "5", "ms", "cold-47M", TARGET]
    assert main(["records", "best", path]) == 0
    assert f"# gmm:512x512x512 5f3a on {TARGET}, 2 threads, cold-47M: 5 ms" in capsys.readouterr().out


def test_programs_that_were_measured_again_are_one_trial(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    RecordLog(path).extend([record(latency_s=2.5e-3, time=2.0), record(latency_s=1.25e-3, time=2.0)])
    assert main(["records", "list", path]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[3:5] == ["3", "1"]


def test_tune_and_list_count_the_same_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "gmm.jsonl")
    for trials in ("3", "4"):
        assert main(["tune", "gmm:16x16x16", "--trials", trials, "--threads", "1", "--records", path]) == 0
        assert f"trials: {trials} in " in capsys.readouterr().out
        assert main(["records", "list", path]) == 0
        assert capsys.readouterr().out.splitlines()[1].split()[3] == trials


def test_best_prints_the_trace_to_paste(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "best", path, "--task", "5f"]) == 0
    first, *trace = capsys.readouterr().out.splitlines()
    assert first == f"# gmm:512x512x512 5f3a on {TARGET}, 2 threads: 1.25 ms"
    assert trace == ["s = tw.Schedule(task)", 's["C"].split("i", [4, 1250])', 's["C"].vectorize("i.2")']


def test_best_of_a_task_that_is_not_there_is_an_error(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "best", path, "--task", "zz"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no record is of a task whose hash begins with 'zz'; the tasks are 5f3a" in printed.err


def test_best_of_failures_alone_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = RecordLog(tmp_path / "r.jsonl")
    log.extend([failed(), failed("WRONG_RESULT")])
    assert main(["records", "best", str(log.path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "there is no best program: 2 records, and none of them is of one that ran" in printed.err


def test_what_names_hold_stays_in_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = RecordLog(tmp_path / "r.jsonl")
    log.append(record(workload="gmm\nimport os\x1b[31m", target="llvm\rimport sys"))
    assert main(["records", "best", str(log.path)]) == 0
    first, *trace = capsys.readouterr().out.splitlines()
    assert first.startswith(r"# gmm\nimport os\x1b[31m 5f3a on llvm\rimport sys, 2 threads")
    assert trace[0] == "s = tw.Schedule(task)"
    assert main(["records", "list", str(log.path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_merge_and_prune_change_files(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out.jsonl")
    assert main(["records", "merge", path, path, "-o", out]) == 0
    assert main(["records", "prune", out, "--keep", "1"]) == 0
    assert capsys.readouterr().out == f"{out}: 4 records\n{out}: 1 of 4 records kept\n"
    assert [r.latency_s for r in RecordLog(out).read()] == [1.25e-3]


GEMM, NORM = parse("gmm:8x8x8"), parse("nrm:1x8x8")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Of two tasks one in both files, on two numbers of threads; the other with failures alone."""
    logs = [RecordLog(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    logs[0].extend([record(task=GEMM.hash, latency_s=x) for x in (2.5e-3, 1.25e-3)], GEMM)
    logs[0].append(record(task="5f3a"))
    logs[1].append(failed(task=NORM.hash), NORM)
    logs[1].append(record(task=GEMM.hash, latency_s=3e-3, threads=1), GEMM)
    return [str(log.path) for log in logs]


def test_tasks_are_listed_with_what_is_recorded_of_them(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "tasks", *files]) == 0
    lines = [line.split(maxsplit=7) for line in capsys.readouterr().out.splitlines()]
    gemm, norm = [GEMM.hash[:12], "gmm_8x8x8", "1024"], [NORM.hash[:12], "nrm_1x8x8"]
    assert lines[0] == ["task", "name", "flop", "records", "best", "threads", "target"]
    assert lines[1] == [*gemm, "2", "1.25", "ms", "2", TARGET]
    assert lines[2] == [*gemm, "1", "3", "ms", "1", TARGET]
    assert [*lines[3][:2], *lines[3][3:]] == [*norm, "1", "none", "valid", "2", TARGET]
    assert len(lines) == 4


def test_tasks_are_printed_whole_for_other_programs(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "tasks", "--format", "json", *files]) == 0
    gemm, norm = json.loads(capsys.readouterr().out)
    assert (gemm["task"], gemm["name"], gemm["flop"]) == (GEMM.hash, GEMM.name, GEMM.flop)
    assert Task.from_json(gemm["definition"]).hash == GEMM.hash
    group = {"target": TARGET, "context": "warm"}
    assert gemm["measured"] == [
        group | {"threads": 2, "records": 2, "best_latency_s": 1.25e-3},
        group | {"threads": 1, "records": 1, "best_latency_s": 3e-3},
    ]
    assert norm["measured"] == [group | {"threads": 2, "records": 1, "best_latency_s": None}]


def test_a_task_without_records_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = RecordLog(tmp_path / "r.jsonl")
    log.append(record(task=GEMM.hash), GEMM)
    header, task, _ = log.path.read_text().splitlines()
    log.path.write_text(f"{header}\n{task}\n")
    assert main(["records", "tasks", str(log.path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[3:] == ["0", "-", "-", "-"]


def test_a_file_without_tasks_has_none_to_list(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "tasks", path]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_broken_task_is_an_error_of_tasks_and_a_warning_elsewhere(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(files[0])
    path.write_text(path.read_text().replace('"definition":', "", 1))
    assert main(["records", "tasks", *files]) == 1
    assert f"error: {path}:2: the line is not JSON" in capsys.readouterr().err
    assert main(["records", "list", *files]) == 0
    printed = capsys.readouterr()
    assert f"{path}:2: the line is not JSON" in printed.err
    assert len(printed.out.splitlines()) == 5


def test_export_prints_csv_or_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "export", path]) == 0
    assert capsys.readouterr().out.startswith("task,workload,target,threads,")
    assert main(["records", "export", path, "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_a_missing_or_broken_file_is_an_error_that_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "list", str(tmp_path / "missing")]) == 1
    assert "missing cannot be used: No such file or directory" in capsys.readouterr().err
    (tmp_path / "other").write_text("something else\n")
    assert main(["records", "best", str(tmp_path / "other")]) == 1
    assert "other:1: a record file begins with" in capsys.readouterr().err


def test_a_wrong_number_to_keep_is_wrong_usage(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "prune", path, "--keep", "0"]) == 2
    assert "must be at least 1" in capsys.readouterr().err


HOSTILE = {
    "gzip": gzip.compress(b'{"tilewright_records": 1}\n'),
    "binary": bytes(range(256)),
    "brackets": b'{"tilewright_records": 1}\n' + b"[" * 200_000 + b"\n",
    "no latency": b'{"tilewright_records": 1}\n' + record().to_line().replace("0.002", "0.0").encode() + b"\n",
    "no UTF-8": b'{"tilewright_records": 1}\n\xff\xfe\n',
    "zeros": bytes(4096),
}
COMMANDS = {
    "list": ["records", "list", "r.jsonl"],
    "best": ["records", "best", "r.jsonl"],
    "export": ["records", "export", "r.jsonl"],
    "tasks": ["records", "tasks", "r.jsonl"],
    "prune": ["records", "prune", "r.jsonl"],
    "merge": ["records", "merge", "r.jsonl", "-o", "out.jsonl"],
    "tune": ["tune", "gmm:8x8x8", "--trials", "1", "--threads", "1", "--records", "r.jsonl"],
    "inspect": ["inspect", "gmm:8x8x8", "--ir", "--records", "r.jsonl"],
    "bench": ["bench", "gmm:8x8x8", "--rounds", "1", "--records", "r.jsonl"],
}


@pytest.mark.parametrize("kind", [*HOSTILE, "folder"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_holds_no_records_is_one_line_of_error_and_stays_as_it_is(
    kind: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("r.jsonl")
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(HOSTILE[kind])
    assert main(COMMANDS[command]) == 1
    printed = capsys.readouterr()
    (error,) = [line for line in printed.err.splitlines() if not line.startswith("tuning ")]
    assert error.startswith("tilewright: error: ")
    assert "r.jsonl" in error
    assert len(error) < 1000
    assert printed.out == "" or command == "inspect"  # which begins with the computation
    assert kind == "folder" or path.read_bytes() == HOSTILE[kind]


def test_an_empty_file_holds_no_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.jsonl").write_bytes(b"")
    assert main(["records", "list", str(tmp_path / "r.jsonl")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
