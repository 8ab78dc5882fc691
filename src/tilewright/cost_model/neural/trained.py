"""A trained network as a value: its ONNX model, its weights and the columns that it reads; in a file, and run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.base import text_array
from tilewright.cost_model.neural.batches import filled_up
from tilewright.cost_model.neural.inference import MASK, VALUES, Runner, engine

CHUNK = 64
"""Programs that run together. Always as many, so that a score depends on the program alone, bit by bit."""

_WEIGHT = "weight:"


@dataclass(frozen=True, slots=True, eq=False)
class TrainedNetwork:
    """What training leaves: nothing of torch is in it."""

    onnx: bytes
    weights: dict[str, NDArray[Any]]
    columns: tuple[str, ...]
    _runners: dict[int, Runner] = field(default_factory=dict, init=False, repr=False)
    """By the number of rows."""

    def run(self, values: NDArray[np.float32], num_rows: int) -> NDArray[np.float32]:
        """What the network gives for each of the programs, filled up to `num_rows` rows or cut to them."""
        values = values[:, :num_rows]
        padded, mask = filled_up(values, np.ones(values.shape[:2], np.bool_), num_rows)
        missing = -len(values) % CHUNK
        chunks = [
            self._runner(num_rows)({VALUES: programs, MASK: own, **self.weights})
            for programs, own in zip(_chunks(padded, missing), _chunks(mask, missing), strict=True)
        ]
        return np.concatenate(chunks)[: len(values)]

    def _runner(self, num_rows: int) -> Runner:
        if num_rows not in self._runners:
            shapes: dict[str, tuple[int, ...]] = {name: array.shape for name, array in self.weights.items()}
            shapes |= {VALUES: (CHUNK, num_rows, len(self.columns)), MASK: (CHUNK, num_rows)}
            self._runners[num_rows] = engine()(self.onnx, shapes)
        return self._runners[num_rows]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What the file of a model holds of it."""
        return {
            "network": np.frombuffer(self.onnx, np.uint8),
            "columns": text_array(json.dumps(self.columns)),
            **{f"{_WEIGHT}{name}": array for name, array in self.weights.items()},
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> TrainedNetwork:
        """The network of a file."""
        return TrainedNetwork(
            arrays["network"].tobytes(),
            {name.removeprefix(_WEIGHT): array for name, array in arrays.items() if name.startswith(_WEIGHT)},
            tuple(json.loads(arrays["columns"].tobytes())),
        )


def _chunks(array: NDArray[np.float32], missing: int) -> list[NDArray[np.float32]]:
    """Of CHUNK programs each, the last one filled up with zeros."""
    full = np.pad(array, ((0, missing), *((0, 0),) * (array.ndim - 1)))
    return list(full.reshape(-1, CHUNK, *array.shape[1:]))
