"""What was measured of a core, in a file: `Target.native` takes it up if it is of this processor."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.arguments import replaceable_file
from tilewright.errors import CodegenError, UsageError
from tilewright.target.core_model import FAMILIES

CALIBRATION_VARIABLE = "TILEWRIGHT_CALIBRATION"
"""The environment variable that names the file; empty, it says that there is none."""

_FORMAT, _VERSION = "tilewright calibration", 1
_MAX_BYTES = 1 << 16
_REMEDY = "measure again with `tilewright target --calibrate`, or remove the file"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Numbers of the core of one processor.

    `processor` is the name that its maker gave it, and `target` the string of the target that was measured.
    """

    processor: str
    target: str
    core: Mapping[str, float]


def calibration_path() -> Path | None:
    """Where the file is looked for; None where nobody wants one, or there is no place for it."""
    given = os.environ.get(CALIBRATION_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # as the rules of XDG have it
        folder = os.path.expanduser("~/.config")
    return Path(folder) / "tilewright" / "calibration.json" if os.path.isabs(folder) else None


def read_calibration(path: Path) -> Calibration | None:
    """What the file holds; None where there is none; UsageError where it is no calibration."""
    try:
        return _parse(_read(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError, CodegenError) as error:
        raise UsageError(f"{path} is not a calibration ({_first_line(error)}); {_REMEDY}") from error


def find_calibration() -> Calibration | None:
    """The calibration of this user; a broken one is as good as none, and a warning says so."""
    path = calibration_path()
    try:
        return None if path is None else read_calibration(path)
    except UsageError as error:
        warnings.warn(f"the calibration is ignored: {error}", stacklevel=5)
        return None


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Put a file in the place of what is there: either all of it or none."""
    path = replaceable_file("the calibration", path)
    content = {"format": _FORMAT, "version": _VERSION} | asdict(calibration)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(fd, "w") as file:
                file.write(json.dumps(content, indent=2) + "\n")
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):  # it has its name by now
                os.unlink(temporary)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}; name another file with --calibration") from error


def _read(path: Path) -> Any:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES} bytes")
    return json.loads(content)


def _parse(data: Any) -> Calibration:
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT!r}")
    if data.get("version") != _VERSION:
        raise ValueError(f"its version is {data.get('version')!r:.40}, and this program reads {_VERSION}")
    for name, kind in (("processor", str), ("target", str), ("core", dict)):
        if not isinstance(data.get(name), kind):
            raise ValueError(f"its field {name!r} is missing or of the wrong kind")
    FAMILIES["x86"].with_values(data["core"])  # says which number is none
    return Calibration(data["processor"], data["target"], {name: float(v) for name, v in data["core"].items()})


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
