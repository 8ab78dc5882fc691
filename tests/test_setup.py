"""Building the extension where no compiler works ends with a few lines that say what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NATIVE = "src/tilewright/runtime/native"


def build(folder: Path, compiler: str) -> subprocess.CompletedProcess[str]:
    """A build in a copy of what it takes."""
    shutil.copy(ROOT / "setup.py", folder)
    shutil.copytree(ROOT / NATIVE, folder / NATIVE)
    return subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext"],
        cwd=folder,
        env=os.environ | {"CC": compiler},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("/no/such/cc", "tilewright needs a C compiler, and there is no '/no/such/cc'; install one:"),
        ("false", "tilewright's C sources cannot be compiled with 'false', which says why above;"),
    ],
    ids=["missing", "failing"],
)
def test_without_a_compiler_the_build_says_what_to_install(compiler: str, message: str, tmp_path: Path) -> None:
    done = build(tmp_path, compiler)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    first, *packages, last = done.stderr.splitlines()[-5:]
    assert first.startswith(message)
    assert [line.split(":")[0].strip() for line in packages] == ["Debian, Ubuntu", "Fedora", "macOS"]
    assert "environment variable CC" in last
