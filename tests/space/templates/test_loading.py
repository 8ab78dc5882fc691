"""Templates from files: what is in them, and what is wrong with them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.space.templates.programs import OPTIONS, blocked, product
from tilewright.errors import UsageError
from tilewright.space import Template, find_template
from tilewright.space.templates import load_template

FILE = """
from dataclasses import dataclass

import tilewright as tw
from beside import WIDTH

@dataclass
class Plan:
    width: int = WIDTH

@tw.template
def wide(s, knobs):
    s["C"].split("j", Plan().width)

@tw.template
def wrong(s, knobs):
    raise ValueError("no")

def plain(s, knobs):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("WIDTH = 8\n")
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def test_a_file_is_run_with_those_beside_it(folder: Path) -> None:
    before = list(sys.path)
    (sketch,) = load_template(f"{folder}/mine.py:wide").sketches(product(), OPTIONS)
    assert [str(step) for step in sketch.steps] == ['s["C"].split("j", 8)']
    assert sys.path == before
    with pytest.raises(UsageError, match=r"wrong raised ValueError at .*mine.py:17: no"):
        load_template(f"{folder}/mine.py:wrong").sketches(product(), OPTIONS)


def test_a_module_is_imported_and_a_function_taken_as_it_is() -> None:
    assert load_template("tilewright.space.templates.x86:conv2d").name == "conv2d"
    assert find_template(blocked) is blocked
    assert isinstance(find_template(lambda s, knobs: None), Template)
    assert find_template("tests.space.templates.programs:blocked").name == "blocked"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine.py", "a template is given as FILE.py:NAME"),
        (":wide", "a template is given as FILE.py:NAME"),
        ("mine.py:", "a template is given as FILE.py:NAME"),
        ("mine.py:not a name", "a template is given as FILE.py:NAME"),
        ("other.py:wide", "other.py is not there"),
        ("mine.py:narrow", "mine.py has no narrow; its templates are: wide, wrong"),
        ("mine.py:plain", "has a plain that is no template; write @tw.template before it; its templates are: wide"),
        ("beside.py:WIDTH", "has a WIDTH that is no template.*; its templates are: none"),
        ("syntax.py:wide", "syntax.py cannot be loaded: SyntaxError"),
        ("raises.py:wide", "raises.py cannot be loaded, line 2: ZeroDivisionError"),
        ("exits.py:wide", "exits.py cannot be loaded, line 2: SystemExit: 3"),
        ("no_such_module:wide", "no_such_module cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, message: str, folder: Path) -> None:
    (folder / "syntax.py").write_text("def (:\n")
    (folder / "raises.py").write_text("x = 1\nx / 0\n")
    (folder / "exits.py").write_text("import sys\nsys.exit(3)\n")
    place = text if text[0] == ":" or ".py" not in text else f"{folder}/{text}"
    with pytest.raises(UsageError, match=message):
        load_template(place)
