"""`--template`: a space from a file, tuned in, looked at, and given to a network for an operator."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tilewright.cli import main, tune_network
from tilewright.records import read_records
from tilewright.space.templates import registry

FILE = """
import tilewright as tw

@tw.template
def blocked(s, knobs):
    i, j, k = s["C"].loops
    i0, i1 = s["C"].split(i, knobs.split("rows", i, 2))
    j0, j1 = s["C"].split(j, knobs.split("columns", j, 2, max_inner=8))
    s["C"].reorder(i0, j0, k, i1, j1)
    s["C"].vectorize(j1)
    if knobs.choice("unroll", [False, True]):
        s["C"].unroll(i1)

@tw.template
def broken(s, knobs):
    raise ValueError("of its own")

def plain(s, knobs):
    pass
"""
TUNE = ["tune", "gmm:16x8x4", "--trials", "2", "--threads", "1", "--records", "r.jsonl"]
INSPECT = ["inspect", "gmm:16x8x4", "--threads", "1", "--target", "llvm -mcpu=haswell"]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)


def test_a_workload_is_tuned_in_the_space_of_a_template(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TUNE, "--template", "mine.py:blocked"]) == 0
    assert 's["C"].reorder("i.0", "j.0", "k", "i.1", "j.1")' in capsys.readouterr().out
    for record in read_records("r.jsonl"):
        assert str(record.trace.steps[2]) == 's["C"].reorder("i.0", "j.0", "k", "i.1", "j.1")'


def test_with_an_operator_it_is_searched_with_what_is_derived() -> None:
    assert main([*TUNE, "--template", "matmul=mine.py:blocked"]) == 0
    assert registry._ENTRIES == []


def test_the_space_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*INSPECT, "--template", "mine.py:blocked"]) == 0
    printed = capsys.readouterr().out
    assert f"template blocked of {Path('mine.py').absolute()}:4: 2 sketches, 40 candidates\n" in printed
    assert "blocked unroll=True: 20 candidates, " in printed
    assert "% legal\n  knobs\n    rows     tile, 5 choices, such as 4\n    columns  tile, 4 choices" in printed
    assert "  one of them, with rows " in printed
    assert "vectorize j.1 in range(" in printed
    assert "sketch 0" not in printed


def test_the_code_is_that_of_a_program_of_the_template(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*INSPECT, "--template", "mine.py:blocked", "--ir"]) == 0
    printed = capsys.readouterr().out
    assert "# the best of the template by the cost model that ships; nothing was measured" in printed
    assert 's["C"].reorder("i.0", "j.0", "k", "i.1", "j.1")\n' in printed


def test_templates_of_a_network_are_registered_while_it_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str | None, str]] = []

    def run(arguments: argparse.Namespace) -> None:
        seen.extend((entry.operator, entry.template.name) for entry in registry._ENTRIES)

    monkeypatch.setattr(tune_network, "run", run)
    given = ["--template", "conv2d=mine.py:blocked", "--template", "matmul=tilewright.space.templates.x86:matmul"]
    assert main(["tune", "zoo:resnet18", *given]) == 0
    assert seen == [("conv2d", "blocked"), ("matmul", "matmul")]
    assert registry._ENTRIES == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*TUNE, "--template", "none.py:blocked"], "none.py is not there"),
        ([*TUNE, "--template", "mine.py:none"], "mine.py has no none; its templates are: blocked, broken"),
        ([*TUNE, "--template", "mine.py:plain"], "a plain that is no template"),
        ([*TUNE, "--template", "mine.py"], "a template is given as FILE.py:NAME"),
        ([*TUNE, "--template", "mine.py:broken"], "/mine.py:16: of its own"),
        ([*TUNE, "--template", "gemm=mine.py:blocked"], "operator is 'gemm'; it must be one of matmul"),
        ([*TUNE, *["--template", "mine.py:blocked"] * 2], "is the whole space of gmm:16x8x4; give it alone"),
        (["tune", "zoo:resnet18", "--template", "mine.py:blocked"], "say for which operator it is, such as conv2d="),
        ([*INSPECT, "--template", "mine.py:broken"], "/mine.py:16: of its own"),
        (["inspect", "zoo:resnet18", "--template", "mine.py:blocked"], "--template was given, but zoo:resnet18 is"),
    ],
)  # fmt: skip
def test_wrong_usage_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_template_without_a_legal_program_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "sfm:1x8x8", "--template", "mine.py:blocked"]) == 1
    printed = capsys.readouterr().err
    assert "no program of template blocked is legal for task sfm_1x8x8; " in printed
    assert "/mine.py:6: there is no stage 'C'; the stages are: " in printed
