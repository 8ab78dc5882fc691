"""`tilewright tune --prior`: what is said of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tiny_model import write_tiny_model
from tilewright.cli import main

TUNE = ["--trials", "2", "--threads", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for size in (16, 24):
        assert main(["tune", f"gmm:{size}x16x16", "--trials", "3", "--threads", "1", "--records", f"{size}.jsonl"]) == 0


def test_records_of_other_tasks_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "gmm:16x16x24", *TUNE, "--prior", "*.jsonl", "--records", "own.jsonl"]) == 0
    assert "prior: 6 programs of 2 tasks on 1 threads of " in capsys.readouterr().err
    assert main(["tune", "gmm:16x16x24", *TUNE, "--prior", "16.jsonl", "--records", "own.jsonl"]) == 0
    assert "prior: 3 programs of 1 tasks" in capsys.readouterr().err


def test_a_model_takes_a_prior_too(capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(Path())
    assert main(["tune", "tiny.onnx", "--trials", "3", "--threads", "1", "--prior", "16.jsonl"]) == 0
    assert "prior: 3 programs of 1 tasks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--prior", "missing.jsonl"], "prior is 'missing.jsonl', and there is no such file"),
        (["--prior", "16.jsonl", "--prior", "x*.jsonl"], "prior is 'x*.jsonl', and no file matches it"),
        (["--prior", "16.jsonl", "--cost-model", "analytical"], "the cost model analytical learns nothing"),
    ],
)
def test_a_prior_that_is_of_no_use_is_refused(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "gmm:16x16x24", *TUNE, *given]) == 2
    assert told in capsys.readouterr().err
    assert not Path("gmm_16x16x24.jsonl").exists()
