"""Logs in the format of TVM's auto-scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tilewright.errors import RecordFormatError, TilewrightError
from tilewright.records import read_ansor_log

STEPS = [["SP", 2, 0, 64, [2, 1, 4], 1], ["RE", 2, [0, 1, 2, 3]], ["AN", 2, 0, 3]]


def line(costs_s: list[float], error_number: int = 0, version: str = "v0.6") -> str:
    task: list[Any] = ['["8f2c", 64, 64]', "llvm -keys=cpu", [4, 64, 64, 0, 0, 0, 0, 0], "", 1, []]
    if version == "v0.2":
        task = task[:2]
    return json.dumps({"i": [task, [[], STEPS]], "r": [costs_s, error_number, 0.5, 1600000000], "v": version})


def test_records_old_and_new_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text("\n".join(["# a comment", line([2e-3, 4e-3]), "", line([1e10], 6, "v0.2")]) + "\n")
    first, second = read_ansor_log(path)
    assert first.workload_key == ("8f2c", 64, 64)
    assert first.target == "llvm -keys=cpu"
    assert first.steps[0] == ("SP", 2, 0, 64, [2, 1, 4], 1)
    assert first.latency_s == pytest.approx(3e-3)
    assert (second.version, second.error_number, second.latency_s) == ("v0.2", 6, None)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("my matmul", ("my matmul",)),
        ("", ("",)),
        ('"matmul"', ("matmul",)),
        ('["8f2c", [64, 64]]', ("8f2c", [64, 64])),
        ('["8f2c"', ('["8f2c"',)),
    ],
)
def test_a_workload_may_have_a_key_of_any_text(tmp_path: Path, text: str, key: tuple[object, ...]) -> None:
    """`SearchTask(compute_dag=dag, workload_key="my matmul")` is one that the tool takes, and writes as it is."""
    data = json.loads(line([1e-3]))
    data["i"][0][0] = text
    path = tmp_path / "log.json"
    path.write_text(json.dumps(data))
    (record,) = read_ansor_log(path)
    assert record.workload_key == key
    assert json.loads(record.program.workload) == list(key)


@pytest.mark.parametrize(
    "broken",
    [
        *("{", "[]", '{"i": [], "r": [], "v": "v0.6"}', '{"v": "v0.6"}', "[" * 200_000, "\0"),
        line([1e-3]).replace("0.001", f"1{400 * '0'}"),
        line([float("nan")]),
        line([-1.0]),
        line([True]),
        line([1e-3]).replace("[0.001]", '["0.001"]'),
        line([1e-3]).replace("[0.001]", '"123"'),
        line([1e-3]).replace("[0.001]", '{"1": 0.001}'),
        line([1e-3], error_number=0.5),  # type: ignore[arg-type]
        line([1e-3], error_number=float("inf")),  # type: ignore[arg-type]
        line([1e-3]).replace('[\\"8f2c\\", 64, 64]', "[" * 2000),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(line([1e-3]) + "\n" + broken + "\n")
    with pytest.raises(RecordFormatError, match="log.json:2: not a record of the auto-scheduler"):
        list(read_ansor_log(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="missing.json cannot be used: No such file"):
        list(read_ansor_log(tmp_path / "missing.json"))
