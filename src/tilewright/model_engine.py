"""What runs the networks of cost models: tilewright's own kernels, on one thread.

Compiling a network for one shape takes a second or so. What was compiled is kept, in memory and as `.tw` files in a
folder of the user, by all that it depends on. Weights are inputs of these networks, so another training of the same
network, or an update, finds it compiled.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.neural.inference import Arrays, Runner, Shapes
from tilewright.deploy.artifact import SUFFIX, load, save
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.session import Session
from tilewright.errors import ArtifactError, TilewrightError
from tilewright.target import Target
from tilewright.version import __version__

CACHE_VARIABLE = "TILEWRIGHT_CACHE"
"""The environment variable that names the folder; empty, it says that nothing is kept there."""

_FOLDER = "networks"
_in_memory: dict[str, Runner] = {}


def run_compiled(network: bytes, shapes: Shapes) -> Runner:
    """The engine: what runs the network compiled for inputs of the shapes."""
    target = Target.native()
    key = _key(network, shapes, target)
    if key not in _in_memory:
        folder = cache_folder()
        file = None if folder is None else folder / _FOLDER / f"{key}{SUFFIX}"
        _in_memory[key] = _runner(_kept(file) or _compiled(network, shapes, target, file))
    return _in_memory[key]


def cache_folder() -> Path | None:
    """Where what can be computed again is kept for this user; None where nobody wants it, or there is no place."""
    given = os.environ.get(CACHE_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):  # as the rules of XDG have it
        folder = os.path.expanduser("~/.cache")
    return Path(folder) / "tilewright" if os.path.isabs(folder) else None


def _key(network: bytes, shapes: Shapes, target: Target) -> str:
    described = json.dumps([sorted(shapes.items()), str(target), __version__])
    return hashlib.blake2b(described.encode() + b"\0" + network, digest_size=20).hexdigest()


def _kept(file: Path | None) -> CompiledModel | None:
    """The network in the file; a file that is broken or of another machine is as good as none."""
    if file is None or not os.path.isfile(file):  # also where it may not be looked for
        return None
    try:
        return load(file)
    except ArtifactError:
        return None


def _compiled(network: bytes, shapes: Shapes, target: Target, file: Path | None) -> CompiledModel:
    from tilewright.deploy.compilation import compile_model
    from tilewright.network import partition_network
    from tilewright.schedule import Trace
    from tilewright.tuning.untuned import default_trace

    # The programs are those of the analytical model: a learned one would ask for itself.
    choose = partial(default_trace, target=target, threads=1)
    partition = partition_network(network, shapes)
    model = compile_model(partition, {}, target, 1, default_trace=choose, last_resort=Trace())
    if file is not None:
        _keep(model, file)
    return model


def _keep(model: CompiledModel, file: Path) -> None:
    """Write it if that can be done: where it cannot, the next process compiles again."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        save(model, file)
    except (OSError, TilewrightError):  # also where something else has its name
        return


def _runner(model: CompiledModel) -> Runner:
    session = Session(model, threads=1)

    def run(arrays: Arrays) -> NDArray[np.float32]:
        (scores,) = session.run(None, arrays)
        found: NDArray[np.float32] = scores
        return found

    return run
