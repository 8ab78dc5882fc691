"""The file from which an interrupted training goes on: arrays and a JSON header, replaced as a whole each epoch."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.base import read_arrays, write_arrays
from tilewright.cost_model.neural.batches import BatchMaker
from tilewright.errors import UsageError

FORMAT = "tilewright-training"
FORMAT_VERSION = 1
_ARRAYS = ("weights", "best", "first_moments", "second_moments")
_SEPARATOR = "/"


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
    described = json.dumps([maker.loss, maker.batch_size, options])
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
    write_arrays(path, header, arrays)


def read_checkpoint(path: str | os.PathLike[str], wanted: str) -> Checkpoint:
    """The training in the file, which has to be the one with the fingerprint `wanted`."""
    header, arrays = read_arrays(
        path, "the checkpoint of a training", FORMAT, FORMAT_VERSION, "remove it to begin anew"
    )
    if header.get("fingerprint") != wanted:
        raise UsageError(
            f"a training goes on from a checkpoint of the same data, options and model, and {os.fspath(path)} is of "
            "others; remove it to begin anew, or name another file"
        )
    kinds: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in _ARRAYS}
    for name, array in arrays.items():
        kind, _, rest = name.partition(_SEPARATOR)
        kinds[kind][rest] = array
    best_loss = header["best_loss"]
    return Checkpoint(
        fingerprint=wanted,
        epoch=header["epoch"],
        best_epoch=header["best_epoch"],
        best_loss=math.inf if best_loss is None else best_loss,
        num_steps=header["num_steps"],
        **kinds,
    )
