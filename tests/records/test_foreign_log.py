"""Logs of other tools: how their lines are found and read, whatever they are packed in."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tilewright.errors import RecordFormatError, TilewrightError
from tilewright.records import read_ansor_log
from tilewright.records.ansor import parse_ansor_line
from tilewright.records.autotvm import is_autotvm, parse_autotvm_line
from tilewright.records.foreign_log import BROKEN_LINE, log_lines, parsed
from tilewright.records.json_line import MAX_LINE_BYTES

STEPS = [
    ["CHW", 3, "local"],
    ["SP", 2, 0, 64, [2, 1, 4], 1],
    ["RE", 2, [0, 1, 2]],
    ["FSP", 4, 0, 1, 3],
    ["AN", 2, 0, 3],
    ["AN", 2, 1, 99],
    ["CHR", 2, "shared", [3, 4]],
    ["FFSP", 4, 0, [4, 3], 1, 1],
    ["PR", 5, 0, "auto_unroll_max_step$512"],
    ["PR", 5, 0, "debug_skip_region"],
    ["CI", 1],
]
ANSOR: dict[str, Any] = {
    "i": [['["8f2c", 64, [1, 1], "SAME"]', "llvm"], [[], STEPS]],
    "r": [[2e-3, 4e-3], 0, 0.5, 1600000000],
    "v": "v0.6",
}
ENTITY = [
    ["tile_y", "sp", [-1, 64]],
    ["reorder_0", "re", [0, 2, 1]],
    ["ann", "an", ["unroll", "none"]],
    ["unroll_kw", "ot", True],
    ["layout", "ot", "NCHW"],
    ["nothing", "ot", None],
]
AUTOTVM: dict[str, Any] = {
    "input": ["llvm -keys=cpu ", "dense.x86", [["TENSOR", [1, 128], "float32"]], {}],
    "config": {"index": 3, "code_hash": None, "entity": ENTITY},
    "result": [[1e-3, 3e-3], 0, 0.9, 1.6e9],
    "version": 0.2,
}


def test_steps_of_the_auto_scheduler_are_primitives() -> None:
    program = parse_ansor_line(ANSOR).program
    assert json.loads(program.workload) == ["8f2c", 64, [1, 1], "SAME"]
    assert program.form == (
        ("CHW", ("local",), 1),
        ("SP", (), 7),
        ("RE", (), 4),
        ("FSP", (), 4),
        ("AN", ("parallel",), 2),
        ("AN", (), 3),  # an annotation of a newer version
        ("CHR", ("shared",), 3),
        ("FFSP", (), 6),
        ("PR", ("auto_unroll_max_step",), 3),
        ("PR", ("debug_skip_region",), 2),
        ("CI", (), 1),
    )
    assert program.numbers[:8] == (3, 2, 0, 64, 2, 1, 4, 1)
    assert program.numbers[-6:] == (5, 0, 512, 5, 0, 1)
    assert program.latency_s == pytest.approx(3e-3)


def test_knobs_of_autotvm_are_primitives() -> None:
    program = parse_autotvm_line(AUTOTVM)
    assert json.loads(program.workload) == ["dense.x86", [["TENSOR", [1, 128], "float32"]]]
    assert program.form == (
        ("sp", ("tile_y",), 1),
        ("re", ("reorder_0",), 3),
        ("an", ("ann", "unroll", "none"), 0),
        ("ot", ("unroll_kw",), 1),
        ("ot", ("layout", "NCHW"), 0),
        ("ot", ("nothing", "None"), 0),
    )
    assert program.numbers == (64, 0, 2, 1, 1)
    assert program.latency_s == pytest.approx(2e-3)


def test_lines_of_the_version_before_of_autotvm_are_read_too() -> None:
    target, template, arguments, options = AUTOTVM["input"]
    config = {"i": 3, "t": "direct", "c": None, "e": ENTITY}
    old = {"i": [target, template, arguments, options, ["dense"], config], "r": AUTOTVM["result"], "v": 0.1}
    assert is_autotvm(old)
    assert is_autotvm(AUTOTVM)
    assert not is_autotvm(ANSOR)
    assert parse_autotvm_line(old) == parse_autotvm_line(AUTOTVM)


def test_a_choice_of_autotvm_is_one_of_any_values() -> None:
    entity = [["scale", "ot", 0.5], ["sizes", "ot", [4, None, 1e-3]]]
    program = parse_autotvm_line(AUTOTVM | {"config": {"entity": entity}})
    assert program.form == (("ot", ("scale", "0.5"), 0), ("ot", ("sizes", "None", "0.001"), 1))


@pytest.mark.parametrize("result", [[[1e9], 1, 0.1, 1.6e9], [[1e10], 0, 0.1, 1.6e9], [[], 0, 0.1, 1.6e9]])
def test_failures_have_no_latency(result: list[Any]) -> None:
    assert parse_autotvm_line(AUTOTVM | {"result": result}).latency_s is None
    assert parse_ansor_line(ANSOR | {"r": [*result[:1], result[1] or 4, *result[2:]]}).program.latency_s is None


@pytest.mark.parametrize(
    "changes",
    [
        {"input": ["llvm"]},
        {"input": ["llvm", "dense", [float("nan")], {}]},
        {"config": {}},
        {"config": {"entity": [["tile_y", "sp"]]}},
        {"config": {"entity": [["tile_y", "sp", {"a": 1}]]}},
        {"config": {"entity": [["tile_y", "sp", 1.5]]}},
        {"config": {"entity": "abc"}},
        {"config": {"entity": {"abc": 1}}},
        {"config": {"entity": ["abc"]}},
        {"result": [[float("nan")], 0, 0, 0]},
        {"result": [[-1.0], 0, 0, 0]},
        {"result": ["what", 0, 0, 0]},
        {"result": ["123", 0, 0, 0]},
        {"result": [{"1": 1e-3}, 0, 0, 0]},
        {"result": [["1e-3"], 0, 0, 0]},
        {"result": [[True], 0, 0, 0]},
        {"result": [[1e-3], 0.5, 0, 0]},
        {"result": [[1e-3], "0", 0, 0]},
        {"result": None},
    ],
)
def test_what_is_no_record_of_autotvm_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BROKEN_LINE):
        parse_autotvm_line(AUTOTVM | changes)


@pytest.mark.parametrize(("pack", "name"), [(bytes, "a"), (gzip.compress, "a.gz"), (lzma.compress, "a.xz")])
def test_files_are_known_by_what_they_are_and_not_by_their_names(
    pack: Callable[[bytes], bytes], name: str, tmp_path: Path
) -> None:
    text = b"# a comment\n\n" + json.dumps(ANSOR).encode() + b"\n"
    path = tmp_path / "log.json"
    path.write_bytes(pack(text))
    assert [number for number, _ in log_lines(path)] == [3]
    assert [record.version for record in read_ansor_log(path)] == ["v0.6"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_log_may_be_a_pipe(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    lines = b"".join(json.dumps(ANSOR | {"v": str(n)}).encode() + b"\n" for n in range(100))
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=[pack(lines)])
    writer.start()
    assert [number for number, _ in log_lines(path)] == list(range(1, 101))
    writer.join()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_a_log_may_be_of_another_encoding(pack: Callable[[bytes], bytes], encoding: str, tmp_path: Path) -> None:
    text = "".join(f"{json.dumps(ANSOR | {'v': str(n)})}\r\n" for n in range(3))
    mark = "\ufeff" if encoding == "utf-16-be" else ""  # the others write it themselves
    path = tmp_path / "log"
    path.write_bytes(pack((mark + text).encode(encoding)))
    assert [record.version for record in read_ansor_log(path)] == ["0", "1", "2"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_file_that_ends_early_gives_what_comes_before(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    lines = b"".join(json.dumps(ANSOR | {"v": str(n)}).encode() + b"\n" for n in range(20_000))
    path = tmp_path / "log"
    whole = pack(lines)
    path.write_bytes(whole[: len(whole) // 2])
    found: list[int] = []
    with pytest.raises(RecordFormatError, match="the compressed file ends here"):
        found.extend(number for number, _ in log_lines(path))
    assert len(found) > 100


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="cannot be used"):
        list(log_lines(tmp_path))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_line_that_is_too_long_is_one_line(pack: Callable[[bytes], bytes], encoding: str, tmp_path: Path) -> None:
    long = json.dumps(ANSOR | {"v": "x" * (2 * MAX_LINE_BYTES)})
    comment, blank = "#" + "x" * MAX_LINE_BYTES, " " * (MAX_LINE_BYTES + 100)
    path = tmp_path / "log"
    path.write_bytes(pack("\n".join([long, comment, json.dumps(ANSOR), blank, json.dumps(ANSOR)]).encode(encoding)))
    found = list(log_lines(path))
    assert [number for number, _ in found] == [1, 3, 4, 5]
    for number, line in found:
        if number in (1, 4):
            with pytest.raises(ValueError, match=f"a line has at most {MAX_LINE_BYTES} bytes"):
                parsed(line)
        else:
            assert parsed(line) == ANSOR


def test_a_byte_order_mark_may_stand_before_a_comment_and_where_files_were_joined(tmp_path: Path) -> None:
    one = f"\ufeff# a comment\r\n\ufeff\r\n\ufeff{json.dumps(ANSOR)}\r\n"
    path = tmp_path / "log"
    path.write_text(one + one, encoding="utf-8")
    assert [number for number, _ in log_lines(path)] == [3, 6]
    assert len(list(read_ansor_log(path))) == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_line_ends_at_a_line_feed_alone(encoding: str, tmp_path: Path) -> None:
    names = "separated\u2028by\u0085what\u2029others\x7ftake for an end"
    path = tmp_path / "log"
    path.write_bytes((json.dumps(ANSOR | {"v": names}, ensure_ascii=False) + "\n").encode(encoding))
    assert [record.version for record in read_ansor_log(path)] == [names]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_archive_of_logs_says_so(mode: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(ANSOR) + "\n")
    with tarfile.open(tmp_path / "logs.tar", mode) as archive:  # type: ignore[call-overload]
        archive.add(tmp_path / "log.json", "log.json")
    with pytest.raises(RecordFormatError, match="logs.tar:1: the file is packed by tar, .*; unpack it"):
        list(log_lines(tmp_path / "logs.tar"))
    (tmp_path / "log.json").write_text(f"#{'x' * 256}ustar\n{json.dumps(ANSOR)}\n")
    assert len(list(read_ansor_log(tmp_path / "log.json"))) == 1
