"""The file from which an interrupted training goes on: arrays and a JSON header, replaced as a whole each epoch."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.array_file import plain
from tilewright.cost_model.base import read_arrays, write_arrays
from tilewright.cost_model.neural.batches import BatchMaker
from tilewright.errors import UsageError

FORMAT = "tilewright-training"
FORMAT_VERSION = 1
_ARRAYS = ("weights", "best", "first_moments", "second_moments")
_COUNTS = ("epoch", "best_epoch", "num_steps")
_SEPARATOR = "/"
_MAX_BYTES = 1 << 30
"""Four times what the file of a model may hold: one that will be too large for it is refused after an epoch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """A training after some epoch. Arrays are by the names that torch has for the weights."""

    fingerprint: str
    epoch: int
    best_epoch: int
    best_loss: float
    num_steps: int
    """Of Adam."""
    weights: dict[str, NDArray[Any]]
    best: dict[str, NDArray[Any]]
    first_moments: dict[str, NDArray[Any]]
    second_moments: dict[str, NDArray[Any]]


def fingerprint(maker: BatchMaker, options: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]) -> str:
    """What a training depends on: its data, its options and the weights it begins with."""
    described = json.dumps([maker.loss, maker.batch_size, options], default=plain)
    digest = hashlib.blake2b(described.encode(), digest_size=16)
    data = {field.name: getattr(maker.examples, field.name) for field in fields(maker.examples)}
    for name, value in (*weights.items(), *data.items()):
        is_array = isinstance(value, np.ndarray)
        digest.update(f"{name} {value.shape if is_array else value!r}".encode())
        if is_array:
            digest.update(np.ascontiguousarray(value).data)
    return digest.hexdigest()


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Replace the file in one step."""
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "fingerprint": checkpoint.fingerprint,
        "epoch": checkpoint.epoch,
        "best_epoch": checkpoint.best_epoch,
        "best_loss": checkpoint.best_loss if math.isfinite(checkpoint.best_loss) else None,
        "num_steps": checkpoint.num_steps,
    }
    arrays = {
        f"{kind}{_SEPARATOR}{name}": array for kind in _ARRAYS for name, array in getattr(checkpoint, kind).items()
    }
    write_arrays(path, header, arrays, _MAX_BYTES)


def read_checkpoint(path: str | os.PathLike[str], wanted: str, network: Mapping[str, NDArray[Any]]) -> Checkpoint:
    """The training in the file, which has to be the one with the fingerprint `wanted`, of such a network."""
    header, arrays = read_arrays(
        path, "the checkpoint of a training", FORMAT, FORMAT_VERSION, "remove it to begin anew", _MAX_BYTES
    )
    if header.get("fingerprint") != wanted:
        raise UsageError(
            f"a training goes on from a checkpoint of the same data, options and model, and {os.fspath(path)} is of "
            "others; remove it to begin anew, or name another file"
        )
    kinds: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in _ARRAYS}
    for name, array in arrays.items():
        kind, _, rest = name.partition(_SEPARATOR)
        kinds.setdefault(kind, {})[rest] = array
    numbers = {name: header.get(name) for name in _COUNTS}
    best_loss = header.get("best_loss", math.nan)
    if not (_are_of(kinds, network) and all(type(number) is int and number >= 0 for number in numbers.values())):
        raise UsageError(
            f"a checkpoint has the weights of the network, their moments, and counts such as {_COUNTS[0]}, got "
            f"{shown(numbers)} and {len(arrays)} arrays in {os.fspath(path)}; remove it to begin anew"
        )
    if not isinstance(best_loss, float | None) or math.isnan(best_loss or 0.0):
        raise UsageError(
            f"the best_loss of a checkpoint is a number or null, got {shown(best_loss)} in {os.fspath(path)}; remove "
            "it to begin anew"
        )
    return Checkpoint(
        fingerprint=wanted,
        epoch=header["epoch"],
        best_epoch=header["best_epoch"],
        best_loss=math.inf if best_loss is None else best_loss,
        num_steps=header["num_steps"],
        **kinds,
    )


def _are_of(kinds: Mapping[str, Mapping[str, NDArray[Any]]], network: Mapping[str, NDArray[Any]]) -> bool:
    """Whether the arrays of each kind belong to the weights of the network; not every weight has moments."""
    forms = {kind: _forms(arrays) for kind, arrays in kinds.items()}
    are_weights = forms["weights"] == forms["best"] == _forms(network)
    moments = forms["first_moments"]
    are_moments = moments == forms["second_moments"] and moments.items() <= forms["weights"].items()
    return {*kinds} == {*_ARRAYS} and are_weights and are_moments


def _forms(arrays: Mapping[str, NDArray[Any]]) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (array.shape, array.dtype.str) for name, array in arrays.items()}
