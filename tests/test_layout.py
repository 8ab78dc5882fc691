"""The rooms of the package: each imports those before it, and none after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright

PACKAGE = Path(tilewright.__file__).parent

# From what everything stands on to what stands on everything.
ROOMS = (
    "errors",
    "version",
    "arguments",
    "interrupts",
    "sockets",
    "te",
    "target",
    "schedule",
    "ir",
    "codegen",
    "runtime",
    "space",
    "features",
    "cost_model",
    "search",
    "measure",
    "records",
    "tuning",
    "operators",
    "graph",
    "partition",
    "deploy",
    "zoo",
    "workloads",
    "network",
    "model_engine",
    "backend",
    "peers",
    "cli",
    "__main__",
)
# Imports what it tests; the tests alone import it.
TESTING = "testing"


def room_of(module: str) -> str:
    """The first name after the package's."""
    return module.split(".")[1]


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, anywhere in it, as far as they are the package's own."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("tilewright."))
        elif isinstance(node, ast.ImportFrom) and node.module == "tilewright":
            yield from (f"tilewright.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tilewright."):
            yield str(node.module)


def files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.name != "__init__.py"]


def test_every_room_has_its_place() -> None:
    found = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in files()}
    assert found == {*ROOMS, TESTING}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_those_before_it(room: str) -> None:
    before = {*ROOMS[: ROOMS.index(room) + 1]}
    inside = [path for path in files() if path.relative_to(PACKAGE).parts[0].removesuffix(".py") == room]
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {module}"
        for path in inside
        for module in imports(path)
        if room_of(module) not in before
    ]
    assert not wrong


def test_no_test_is_left_out_for_a_missing_library() -> None:
    skips = "importor" + "skip"
    assert [path for path in sorted(Path(__file__).parent.rglob("*.py")) if skips in path.read_text()] == []
