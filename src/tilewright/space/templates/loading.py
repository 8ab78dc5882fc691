"""Templates from files that a user names. To load one is to run the file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from tilewright.errors import UsageError
from tilewright.space.templates.definition import Template


def find_template(given: object) -> Template:
    """What a caller means: a template, a function that is to be one, or where it is, as `load_template` takes it."""
    if isinstance(given, Template):
        return given
    if isinstance(given, str):
        return load_template(given)
    return Template(given)  # type: ignore[arg-type]  # which checks it


def load_template(text: str) -> Template:
    """The template that FILE.py:NAME says, or MODULE:NAME. The file is run as Python runs any."""
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise UsageError(f"a template is given as FILE.py:NAME, such as blocked.py:blocked, got {text!r}")
    module = _run_file(place) if place.endswith(".py") else _imported(place)
    found = getattr(module, name, None)
    if isinstance(found, Template):
        return found
    known = ", ".join(key for key, value in vars(module).items() if isinstance(value, Template)) or "none"
    problem = f"has no {name}" if found is None else f"has a {name} that is no template; write @tw.template before it"
    raise UsageError(f"{place} {problem}; its templates are: {known}")


def _run_file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise UsageError(f"a template is read from a file, but {path} is not there; check the path")
    # A name that no other module has, and the same for the same file: classes of the file look for their module by it.
    name = f"tilewright_template_{Path(path).absolute()}"
    spec = spec_from_file_location(name, path)
    assert spec is not None, "it ends with .py"
    assert spec.loader is not None, "it ends with .py"
    module = module_from_spec(spec)
    sys.modules[name] = module
    with _found_beside(path), _told(path):
        spec.loader.exec_module(module)
    return module


def _imported(name: str) -> ModuleType:
    with _told(name):
        return import_module(name)


@contextmanager
def _found_beside(path: str) -> Iterator[None]:
    """Inside, the file imports those next to it, as a program does."""
    folder = str(Path(path).absolute().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Whatever goes wrong inside is said to have gone wrong in the file."""
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename.endswith(place)]
        line = f", line {frames[-1].lineno}" if frames else ""
        raise UsageError(f"{place} cannot be loaded{line}: {type(error).__name__}: {error}") from error
