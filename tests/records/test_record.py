"""A record as JSON, and what is said of JSON that is no record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.records.samples import failed, record
from tilewright.errors import RecordFormatError
from tilewright.records import Record


@pytest.mark.parametrize(
    "original",
    [
        record(),
        record(names=(("A",), ("C", "i", "k")), compared_s=1.5e-3),
        record(context="cold-47M"),
        failed(),
        failed("INVALID", workload=""),
    ],
)
def test_a_record_survives_json(original: Record) -> None:
    line = original.to_line()
    assert "\n" not in line
    assert Record.from_json(json.loads(line)) == original


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threads": 0}, "threads must be a whole number from 1 to 512, got 0"),
        ({"threads": 10**30}, "threads must be"),
        ({"threads": 2.0}, "threads must be"),
        ({"threads": True}, "threads must be"),
        ({"status": "FINE"}, "status must be one of OK, INVALID, .*, got 'FINE'"),
        ({"status": ["OK"]}, "status must be one of"),
        ({"latency_s": "fast"}, "latency_s must be a number of seconds from 1e-12 to 1e\\+12, or null, got 'fast'"),
        ({"latency_s": float("nan")}, "latency_s must be"),
        ({"latency_s": float("inf")}, "latency_s must be"),
        ({"latency_s": 0}, "latency_s must be"),
        ({"latency_s": 1e-320}, "latency_s must be"),
        ({"latency_s": -1e-3}, "latency_s must be"),
        ({"latency_s": 10**400}, "latency_s must be .*, got 1000000"),
        ({"latency_s": True}, "latency_s must be"),
        ({"runs_s": [10**400]}, "runs_s must be a list of seconds"),
        ({"build_s": 10**400}, "build_s must be"),
        ({"time": -1}, "time must be"),
        ({"latency_s": None}, "latency_s is there if and only if the status is OK, got None with OK"),
        ({"runs_s": [1, None]}, "runs_s must be a list of seconds"),
        ({"trace": "split"}, "trace must be a list of steps"),
        ({"trace": [{"step": "melt", "stage": "C", "arguments": []}]}, "trace: unknown step 'melt'"),
        ({"names": [["A"], []]}, r"names must be a list of lists of names, got \[\['A'\], \[\]\]"),
        ({"names": ["A"]}, "names must be a list of lists"),
        ({"compared_s": 0}, "compared_s must be a number of seconds from 1e-12 to 1e\\+12, or null, got 0"),
        ({"compared_s": "fast"}, "compared_s must be"),
        ({"context": "cold 9M"}, "context must be a word of letters, digits, '-' and '.', 64 at most, got 'cold 9M'"),
        ({"context": ""}, "context must be"),
        ({"context": None}, "context must be"),
        ({"context": "x" * 65}, "context must be"),
        ({"context": "warm\n"}, "context must be"),
        ({"context": "wärm"}, "context must be"),
        ({"trace": [{"step": "split", "stage": "C", "arguments": ["i", ["x"]]}]}, "trace: step split: factors must be"),
        ({"trace": "split" * 10**6}, "trace must be a list of steps, got 'split.{0,50}$"),
        ({"colour": "red"}, "a record has no field 'colour'"),
    ],
)
def test_what_is_wrong_with_a_field_is_said(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordFormatError, match=message):
        Record.from_json(record().to_json() | change)


def test_what_cannot_be_read_is_not_made() -> None:
    with pytest.raises(RecordFormatError, match="context must be a word"):
        record(context="cold 9M")


def test_older_records_have_fewer_fields_and_a_pace_that_is_ignored() -> None:
    data = record().to_json() | {"pace": 1.5}
    del data["names"], data["compared_s"], data["context"]
    assert Record.from_json(data) == record()


def test_what_a_record_is_ranked_by() -> None:
    assert record(latency_s=3e-3).rank_s == 3e-3
    assert record(latency_s=3e-3, compared_s=2e-3).rank_s == 2e-3
    assert failed().rank_s == float("inf")


def test_a_missing_field_is_named() -> None:
    data = record().to_json()
    del data["target"]
    with pytest.raises(RecordFormatError, match="needs the field target, which is missing"):
        Record.from_json(data)
