"""The record file: what is written is read, and what other things do to it is survived or named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tests.records.samples import failed, record
from tilewright.errors import RecordFormatError, TilewrightError
from tilewright.records import RecordLog, read_records

LINE = record().to_line()


@pytest.fixture
def log(tmp_path: Path) -> RecordLog:
    return RecordLog(tmp_path / "records.jsonl")


def test_what_is_appended_is_read_in_order(log: RecordLog) -> None:
    assert log.read() == []
    written = [record(time=1.0), failed(time=2.0), record(time=3.0)]
    log.append(written[0])
    log.extend(written[1:])
    log.extend([])
    assert log.read() == written
    assert list(read_records(log.path)) == written


def test_the_first_line_tells_format_and_tool(log: RecordLog) -> None:
    log.append(record())
    header = json.loads(log.path.read_text().splitlines()[0])
    assert header["tilewright_records"] == 2
    assert header["tool_version"] == tilewright.__version__
    assert header["created"] > 1.7e9


def test_files_joined_with_cat_are_read(log: RecordLog) -> None:
    log.append(record())
    log.path.write_text(log.path.read_text() * 2)
    assert log.read() == [record(), record()]


@pytest.mark.parametrize("num_bytes", [1, 10, 100])
def test_a_torn_last_line_is_left_out_and_removed_by_the_next_writer(log: RecordLog, num_bytes: int) -> None:
    log.extend([record(time=1.0), record(time=2.0)])
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + record(time=3.0).to_line().encode()[:num_bytes])
    assert [r.time for r in log.read()] == [1.0, 2.0]
    log.append(record(time=4.0))
    assert [r.time for r in log.read()] == [1.0, 2.0, 4.0]
    assert log.path.read_bytes().startswith(whole)


def test_a_last_line_that_lacks_only_its_end_is_kept(log: RecordLog) -> None:
    log.extend([record(time=1.0), record(time=2.0)])
    log.path.write_bytes(log.path.read_bytes()[:-1])
    assert [r.time for r in log.read()] == [1.0, 2.0]
    log.append(record(time=3.0))
    assert [r.time for r in log.read()] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("header", ["", '{"tile', '{"tilewright_records": 1, "tool'])
def test_a_torn_header_is_written_anew(log: RecordLog, header: str) -> None:
    log.path.write_text(header)
    assert log.read() == []
    log.append(record())
    assert log.read() == [record()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"task": "5f3a", "wor', "the line is not JSON .*; remove the line, or restore the file"),
        ("\x00\x00\x00", "the line is not JSON"),
        ("[1, 2]", r"a line is a JSON object, got \[1, 2\]"),
        ("", "the line is not JSON"),
        ("[" * 200_000, "the line is nested too deeply; remove the line, or restore the file"),
        ('{"a":' * 200_000, "the line is nested too deeply"),
        ("[" * 900 + "]" * 900, r"a line is a JSON object, got \[\[\[\[\[\["),
        (LINE.replace('"latency_s":0.002', '"latency_s":1e-320'), "latency_s must be .*; correct or remove the line"),
        (LINE.replace('"latency_s":0.002', f'"latency_s":1{400 * "0"}'), "latency_s must be"),
        (LINE.replace('"latency_s":0.002', f'"latency_s":1{9000 * "0"}'), "the line is not JSON"),
        (LINE.replace('"split"', '"melt"'), "trace: unknown step 'melt'"),
        (LINE.replace('"split"', '["split"]'), "trace: unknown step"),
        (LINE.replace("[4,8]", "[4,[8]]"), "trace: step split: factors must be"),
        (LINE.replace("[4,8]", "[" * 500 + "]" * 500), "trace: step split: factors must be"),
        (LINE.replace('"threads":2', '"threads":1000000'), "threads must be"),
        (LINE.replace('"trace":[', '"trace":[[],'), "trace: a step is an object"),
        (LINE[:-1] + ',"trace":7}', "trace must be a list of steps, got 7"),
        (LINE.replace('"error":""', '"error":{"trace":[],"status":""}'), "error must be a string"),
        ('{"tilewright_records": 1e999}', "the format is version inf"),
        ('{"task": "5f3a"}', "needs the field workload, which is missing; correct or remove the line"),
    ],
)
def test_a_broken_line_in_the_middle_is_an_error_that_names_it(log: RecordLog, line: str, message: str) -> None:
    log.extend([record(), record()])
    lines = log.path.read_text().splitlines()
    log.path.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    with pytest.raises(RecordFormatError, match=f"records.jsonl:3: .*{message}"):
        log.read()


@pytest.mark.parametrize("line", [b"\xff\xfe\n", b"\x1f\x8b\x08\0\0\n", LINE.encode("utf-16") + b"\n"])
def test_bytes_that_are_no_text_are_an_error_that_names_the_line(log: RecordLog, line: bytes) -> None:
    log.append(record())
    with log.path.open("ab") as file:
        file.write(line)
    with pytest.raises(RecordFormatError, match="records.jsonl:3: the line is not JSON"):
        log.read()


def test_a_line_without_end_is_not_read_into_memory(log: RecordLog) -> None:
    log.append(record())
    with log.path.open("ab") as file:
        file.write(b" " * (5 << 20))
    with pytest.raises(RecordFormatError, match="records.jsonl:3: the line has more than 4194304 bytes"):
        log.read()


def test_a_last_line_that_is_whole_but_wrong_is_an_error(log: RecordLog) -> None:
    log.append(record())
    log.path.write_text(log.path.read_text().replace("0.002,", "0,").rstrip("\n"))
    with pytest.raises(RecordFormatError, match="records.jsonl:2: latency_s must be"):
        log.read()


def test_lines_end_as_on_windows_too(log: RecordLog) -> None:
    log.extend([record(time=1.0), record(time=2.0)])
    log.path.write_bytes(log.path.read_bytes().replace(b"\n", b"\r\n"))
    assert [r.time for r in log.read()] == [1.0, 2.0]


def test_a_record_knows_where_it_was_read(log: RecordLog) -> None:
    log.extend([record(), record()])
    assert [r.source for r in log.read()] == [f"{log.path}:2", f"{log.path}:3"]


@pytest.mark.parametrize("order", [1, -1])
def test_the_fields_of_a_record_have_no_order_and_any_spaces(log: RecordLog, order: int) -> None:
    log.append(record())
    fields = dict([*record().to_json().items()][::order])
    with log.path.open("a") as file:
        file.write(json.dumps(fields) + "\n")
    assert log.read() == [record(), record()]


def test_equal_steps_of_a_file_are_one_object(log: RecordLog) -> None:
    log.extend([record(), record()])
    first, second = log.read()
    assert all(a is b for a, b in zip(first.trace.steps, second.trace.steps, strict=True))


def test_a_newer_format_is_not_guessed_at(log: RecordLog) -> None:
    log.path.write_text('{"tilewright_records": 3, "tool_version": "9.0"}\n')
    with pytest.raises(RecordFormatError, match="jsonl:1: the format is version 3, .*reads versions up to 2; use"):
        log.read()


@pytest.mark.parametrize(
    "content", ["task,latency\n", "no newline at the end", "{}\n", "\x1f\x8b\x08\x00", "\ufeff{", "\0", "\n\n"]
)
def test_a_file_that_is_something_else_is_neither_read_nor_changed(log: RecordLog, content: str) -> None:
    log.path.write_text(content)
    with pytest.raises(RecordFormatError, match="jsonl:1: a record file begins with"):
        log.read()
    with pytest.raises(RecordFormatError, match="this is (something else: give another file|a file with a byte-order)"):
        log.append(record())
    assert log.path.read_text() == content


@pytest.mark.parametrize("style", [{"separators": (",", ":")}, {"separators": (" , ", " : ")}, {"sort_keys": True}])
def test_a_file_that_another_program_wrote_anew_is_read_and_goes_on(log: RecordLog, style: dict[str, Any]) -> None:
    log.extend([record(), failed()])
    lines = log.path.read_text().splitlines()
    log.path.write_text("".join(json.dumps(json.loads(line), **style) + "\n" for line in lines))
    assert log.read() == [record(), failed()]
    RecordLog(log.path).append(record(time=3.0))
    assert log.read() == [record(), failed(), record(time=3.0)]


@pytest.mark.parametrize(
    ("beginning", "remedy"),
    [
        (b"\x1f\x8b\x08", "with gunzip"),
        (b"\xfd7zXZ\x00", "with unxz"),
        (b"\xef\xbb\xbf{", "as UTF-8 without one"),
        (b"\xff\xfe{", "in UTF-16"),
    ],
)
def test_a_file_that_was_packed_or_saved_otherwise_says_what_to_do(
    log: RecordLog, beginning: bytes, remedy: str
) -> None:
    log.path.write_bytes(beginning)
    with pytest.raises(RecordFormatError, match=f"records.jsonl:1: a record file begins with .*{remedy}"):
        log.read()


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="no_such_folder/r.jsonl cannot be used: No such file or directory"):
        RecordLog(tmp_path / "no_such_folder" / "r.jsonl").read()  # before anything is measured
    with pytest.raises(TilewrightError, match="no_such_folder/r.jsonl cannot be used: No such file or directory"):
        RecordLog(tmp_path / "no_such_folder" / "r.jsonl").append(record())
    with pytest.raises(TilewrightError, match="cannot be used: File name too long"):
        RecordLog(tmp_path / ("r" * 256)).read()
    with pytest.raises(TilewrightError, match="cannot be used: Is a directory"):
        RecordLog(tmp_path).append(record())
