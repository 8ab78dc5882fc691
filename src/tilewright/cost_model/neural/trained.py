"""A trained network as a value: its ONNX model, its weights and the columns that it reads; in a file, and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.array_file import names_array, names_of
from tilewright.cost_model.neural.batches import filled_up
from tilewright.cost_model.neural.inference import MASK, VALUES, Runner, engine
from tilewright.cost_model.neural.network_checks import check_network
from tilewright.errors import UsageError

CHUNK = 64
"""Programs that run together. Always as many, so that a score depends on the program alone, bit by bit."""

_NETWORK, _COLUMNS, _NUM_ROWS, _WEIGHT = "network", "columns", "num_rows", "weight:"
MAX_ROWS = 1024
_MANY_ROWS = 256
"""Those of a large program, for which a network that has any number of them is checked."""
_REMEDY = "the file is broken or not of tilewright; train the model again, or get the file again"


@dataclass(frozen=True, slots=True, eq=False)
class TrainedNetwork:
    """What training leaves: nothing of torch is in it."""

    onnx: bytes = field(repr=False)
    weights: dict[str, NDArray[np.float32]] = field(repr=False)
    columns: tuple[str, ...]
    num_rows: int | None = None
    """How many rows it reads, if it is of one size."""
    _runners: dict[int, Runner] = field(default_factory=dict, init=False, repr=False)
    """By the number of rows."""

    def __deepcopy__(self, memo: dict[int, Any]) -> TrainedNetwork:
        """Itself: nothing changes it, and copies of a model share it."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what runs it, which is of this process."""
        return TrainedNetwork, (self.onnx, self.weights, self.columns, self.num_rows)

    @property
    def num_weights(self) -> int:
        return sum(array.size for array in self.weights.values())

    def run(self, values: NDArray[np.float32], num_rows: int) -> NDArray[np.float32]:
        """What the network gives for each of the programs, filled up to `num_rows` rows, or to those it has."""
        num_rows = self.num_rows or num_rows
        values = values[:, :num_rows]
        padded, mask = filled_up(values, np.ones(values.shape[:2], np.bool_), num_rows)
        runner = self._runner(num_rows)
        outputs = [
            runner({VALUES: _whole_chunk(padded, start), MASK: _whole_chunk(mask, start), **self.weights})
            for start in range(0, len(values), CHUNK)
        ]
        return np.concatenate(outputs)[: len(values)]

    def _runner(self, num_rows: int) -> Runner:
        if num_rows not in self._runners:
            self._runners[num_rows] = engine()(self.onnx, self._shapes(num_rows))
        return self._runners[num_rows]

    def _shapes(self, num_rows: int) -> dict[str, tuple[int, ...]]:
        weights = {name: array.shape for name, array in self.weights.items()}
        return {VALUES: (CHUNK, num_rows, len(self.columns)), MASK: (CHUNK, num_rows), **weights}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What the file of a model holds of it."""
        return {
            _NETWORK: np.frombuffer(self.onnx, np.uint8),
            _COLUMNS: names_array(self.columns),
            _NUM_ROWS: np.array(self.num_rows or 0),
            **{f"{_WEIGHT}{name}": array for name, array in self.weights.items()},
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> TrainedNetwork:
        """The network of a file, checked: nothing of it has run. UsageError where it is none of ours."""
        try:
            network, columns = arrays[_NETWORK].tobytes(), names_of(arrays[_COLUMNS])
            num_rows = int(arrays[_NUM_ROWS])
        except (KeyError, ValueError, TypeError) as error:
            raise UsageError(
                f"a trained network has {_NETWORK}, {_COLUMNS} and {_NUM_ROWS}, but {error}; {_REMEDY}"
            ) from error
        weights = {name.removeprefix(_WEIGHT): array for name, array in arrays.items() if name.startswith(_WEIGHT)}
        if not 0 <= num_rows <= MAX_ROWS:
            raise UsageError(f"a trained network has up to {MAX_ROWS} rows, got {num_rows}; {_REMEDY}")
        found = TrainedNetwork(network, weights, columns, num_rows or None)
        found.check(_REMEDY)
        return found

    def check(self, remedy: str) -> None:
        """That it may be run, and comes back from a file; UsageError says what to do where it does not."""
        for name, array in self.weights.items():
            if array.dtype != np.float32 or not np.isfinite(array).all():
                raise UsageError(f"the weights of a network are finite float32, got another in {name}; {remedy}")
        check_network(self.onnx, self._shapes(self.num_rows or _MANY_ROWS), remedy)


def _whole_chunk(array: NDArray[np.float32], start: int) -> NDArray[np.float32]:
    """The programs from `start` on, filled up with zeros at the end."""
    part = array[start : start + CHUNK]
    if len(part) == CHUNK:
        return part
    chunk = np.zeros((CHUNK, *array.shape[1:]), np.float32)
    chunk[: len(part)] = part
    return chunk
