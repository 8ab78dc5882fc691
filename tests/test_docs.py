"""The documentation is true: its ```python blocks run, and print what the ```text block after them shows.

The blocks of one file run in order in one namespace.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    line: int
    code: str
    output: str | None


def blocks(text: str) -> list[Block]:
    """The python blocks of a page, each with the text block that follows it directly."""
    return [Block(text.count("\n", 0, m.start("code")), m["code"], m["output"]) for m in _BLOCK.finditer(text)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run_and_print_what_the_page_shows(path: Path) -> None:
    namespace: dict[str, object] = {"__name__": path.stem}
    for block in blocks(path.read_text()):
        # Empty lines before the code, so that a traceback shows the line of the page. The page is a program of its
        # own: what this file imports from __future__ is not for it.
        program = compile("\n" * block.line + block.code, str(path), "exec", dont_inherit=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        if block.output is not None:
            assert printed.getvalue() == block.output, f"the output of the block at {path.name}:{block.line}"


def test_blocks_are_found_with_their_output() -> None:
    page = "a\n```python\nx = 1\n```\ntext\n```python\nprint(x)\n```\n\n```text\n1\n```\n```text\n2\n```\n"
    assert blocks(page) == [Block(2, "x = 1\n", None), Block(6, "print(x)\n", "1\n")]


def test_every_page_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    assert [path.name for path in FILES if path.name not in ("README.md", "index.md") and path.name not in index] == []
