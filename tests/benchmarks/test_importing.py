"""The benchmark of importing large models: what it tells, and how that is judged."""

from __future__ import annotations

import json

import pytest

from benchmarks import importing
from benchmarks.importing import Case, Import
from tilewright.testing.large_models import KINDS


def imported(total_s: float) -> Import:
    return Import(1000, 10, 2, total_s / 2, total_s / 4, total_s / 4)


@pytest.mark.parametrize(
    ("kind", "small_s", "large_s", "is_fast", "is_linear"),
    [
        ("chain", 0.5, 5.0, True, True),
        ("chain", 2.0, 20.0, False, True),
        ("chain", 0.1, 9.0, True, False),
        ("numbers", 5.0, 50.0, True, True),
    ],
)
def test_time_and_growth_are_judged(kind: str, small_s: float, large_s: float, is_fast: bool, is_linear: bool) -> None:
    case = Case(kind, imported(small_s), imported(large_s))
    assert (case.is_fast, case.is_linear) == (is_fast, is_linear)


def test_every_kind_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "RATIO_LIMIT", 1e9)
    assert importing.main(["--nodes", "40"]) == 0
    out = capsys.readouterr().out
    assert all(f"| {kind} " in out for kind in KINDS)
    assert "FAIL" not in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    importing.main(["--nodes", "40", "--case", "chain", "--format", "json"])
    (found,) = json.loads(capsys.readouterr().out)["cases"]
    assert found["kind"] == "chain"
    assert found["large"]["num_nodes"] == 40
    assert found["small"]["num_nodes"] == 4


def test_unknown_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert importing.main(["--case", "nothing"]) == 2
    assert "chain" in capsys.readouterr().err
