"""The public face: names that load when first used, and an import that costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tilewright
from tilewright.errors import TilewrightError

HEAVY = {"numpy", "llvmlite", "torch"}


def heavy_modules_after(program: str) -> set[str]:
    """Which heavy libraries a fresh interpreter has loaded after `program`."""
    report = f"import sys\n{program}\nprint('loaded:', *sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_import_loads_no_heavy_library() -> None:
    assert heavy_modules_after("import tilewright") == set()


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_command_line_options_load_no_heavy_library(option: str) -> None:
    program = f"""
from tilewright.cli import main
try:
    main([{option!r}])
except SystemExit as stop:
    assert stop.code == 0
"""
    assert heavy_modules_after(program) == set()


@pytest.mark.parametrize("name", tilewright.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tilewright, name) is not None


def test_submodule_te_is_an_attribute_and_importable() -> None:
    from tilewright import te

    assert tilewright.te is te


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="no attribute 'shedule'; it has .*Schedule"):
        _ = tilewright.shedule


def test_dir_lists_the_public_names() -> None:
    assert set(dir(tilewright)) == set(tilewright.__all__)


def test_all_errors_have_one_base() -> None:
    errors = [getattr(tilewright, name) for name in tilewright.__all__ if name.endswith("Error")]
    assert len(errors) == 12
    assert all(issubclass(error, TilewrightError) for error in errors)
