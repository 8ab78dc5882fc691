"""A compiled model for programs in C: a shared library with the weights inside, a header and an example.

The library holds the kernels, the thread pool and the loop that calls them, and needs the C library alone. The
system's C compiler links it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.deploy.c_text import CText
from tilewright.deploy.compiled import CompiledModel
from tilewright.errors import ArtifactError, UsageError
from tilewright.runtime import spec as runtime_spec

_NATIVE = Path(runtime_spec.__file__).parent / "native"
_RUNTIME_SOURCES = ("pool.c", "arena.c", "program_run.c")
_COMPILERS = ("cc", "gcc", "clang")
_ALIGNMENT = 64
_LAST_LINES = 5


def export_c(
    model: CompiledModel, directory: str | os.PathLike[str], name: str = "model", compiler: str | None = None
) -> Path:
    """Write `lib<name>.so`, `<name>.h` and `example.c` into `directory`; return the path of the library.

    `compiler` is the C compiler for the model's target; by default the one that the environment variable CC names, or
    the system's. A network with fallbacks needs Python, and is refused.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"the name of a C library is {name!r}; it must be an identifier of C, such as model")
    _check_exportable(model)
    chosen = _find_compiler(compiler)
    folder = Path(directory)
    with tempfile.TemporaryDirectory() as temporary:
        build = Path(temporary)
        text = CText(model, name, *_write_weights(model, build / "weights.bin"))
        _write_sources(text, build)
        library = _link(text, chosen, build)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "example.c").write_text(text.example())
            shutil.copy(build / f"{name}.h", folder)
            shutil.copy(library, folder)
        except OSError as error:
            raise ArtifactError(
                f"the C library could not be written to {folder}: {error.strerror or error}; free or name another place"
            ) from error
    return folder / library.name


def _check_exportable(model: CompiledModel) -> None:
    operators = sorted({call.node.op for call in model.fallbacks})
    if operators:
        raise ArtifactError(
            f"a C library holds kernels alone, and these operators of {model.name} have none: {', '.join(operators)}; "
            "replace them in the model, or run it with tilewright"
        )
    types = {value.name: value.type for value in model.inputs} | {value.name: value.type for value in model.outputs}
    for name, known in types.items():
        if known is None or not known.is_compilable:
            what = "known only when it runs" if known is None else f"{known.dtype}{list(known.shape)}"
            raise ArtifactError(
                f"a C library takes arrays of numbers that have elements, and {name} of {model.name} is {what}; "
                "remove it from the model, or run it with tilewright"
            )


def _find_compiler(compiler: str | None) -> str:
    named = compiler or os.environ.get("CC")
    candidates = (named,) if named else _COMPILERS
    for candidate in candidates:
        found = shutil.which(candidate)
        if found is not None:
            return found
    raise ArtifactError(
        f"a C library needs a C compiler, and there is no {' or '.join(candidates)} on the PATH; install gcc or clang, "
        "or name a compiler in the environment variable CC"
    )


def _write_weights(model: CompiledModel, path: Path) -> tuple[list[int], list[int]]:
    """Write weights and constants one after the other; return where each of both begins."""
    with open(path, "wb") as file:
        weights = [_append(file, array) for array in model.weights]
        constants = [_append(file, array) for array in model.constants]
        _append(file, np.zeros(1, np.uint8))  # the assembler refuses an empty file
    return weights, constants


def _append(file: Any, array: npt.NDArray[Any]) -> int:
    file.write(bytes(-file.tell() % _ALIGNMENT))
    offset: int = file.tell()
    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return offset


def _write_sources(text: CText, build: Path) -> None:
    (build / f"{text.name}.h").write_text(text.header())
    (build / f"{text.name}.c").write_text(text.source())
    (build / "weights.S").write_text(text.weights())
    public = [f"{text.name}_{function}" for function in ("init", "run", "free")]
    (build / "public.map").write_text(f"{{ global: {'; '.join(public)}; local: *; }};\n")
    for number, kernel in enumerate(text.model.kernels):
        (build / f"kernel{number}.o").write_bytes(kernel.object_code)


def _link(text: CText, compiler: str, build: Path) -> Path:
    library = f"lib{text.name}.so"
    command = [
        compiler,
        *("-shared", "-fPIC", "-O2", "-std=gnu11", "-pthread"),
        # Its threads outlive a dlclose, so its code has to stay.
        *("-Wl,-z,nodelete", "-Wl,--version-script=public.map"),
        *("-I", str(_NATIVE), "-o", library, f"{text.name}.c", "weights.S"),
        *(str(_NATIVE / source) for source in _RUNTIME_SOURCES),
        *(f"kernel{number}.o" for number in range(len(text.model.kernels))),
        "-lm",
    ]
    done = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ArtifactError(
            f"{compiler} could not make the C library for {text.model.target}: {_end_of(done.stderr)}; use a C "
            "compiler for that target"
        )
    return build / library


def _end_of(message: str) -> str:
    return "\n".join(message.strip().splitlines()[-_LAST_LINES:])
