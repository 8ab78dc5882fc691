"""Several encoders at once: one that gives the rows of all, how to take the rows of each out of its arrays, and how to
have the numbers of the device in every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, starmap

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples
from tilewright.errors import UsageError
from tilewright.features import Encoder, HardwareEncoder, JoinedEncoder


def joined_encoder(encoders: Sequence[Encoder]) -> Encoder:
    """One that gives the rows of all of them, those that several give once.

    >>> from tilewright.features import create_encoder
    >>> joined_encoder([create_encoder("statements+hardware"), create_encoder("statements")]).columns[-1]
    'hardware.region_cycles'
    """
    parts = tuple(dict.fromkeys(part for encoder in encoders for part in _parts(encoder)))
    for part in parts:
        if not part.columns:
            raise UsageError(
                f"encoders are joined by their columns, and those of {part.name} differ from sketch to sketch; "
                f"choose a model that reads something else"
            )
    return parts[0] if len(parts) == 1 else JoinedEncoder(parts)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What one encoder gives, in the arrays of a joined one, whose parts have their rows one after the other."""

    columns: tuple[slice, ...]
    """Of each part of the joined encoder."""
    num_rows: tuple[int | None, ...]
    """Of each of these, where all programs have as many."""
    own: tuple[int, ...]
    """Which of these the encoder has, in the order of its rows."""
    is_whole: bool

    @staticmethod
    def of(encoder: Encoder, joined: Encoder) -> View:
        """The view of an encoder that is joined with others."""
        parts = _parts(joined)
        ends = list(accumulate(len(part.columns) for part in parts))
        columns = tuple(starmap(slice, pairwise([0, *ends])))
        own = tuple(parts.index(part) for part in _parts(encoder))
        return View(columns, tuple(part.num_rows for part in parts), own, encoder == joined)

    def values(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Its values[candidate, row, number]; candidates of a sketch have the same rows."""
        if self.is_whole:
            return values
        counts = self._counts(values[0], np.array([values.shape[1]]))[:, 0]
        begins = np.cumsum(counts) - counts
        rows = _ranges(begins[[*self.own]], counts[[*self.own]])
        if np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
            return self._selected(values[:, rows[0] : rows[0] + len(rows)])  # without a copy
        return self._selected(values[:, rows])

    def examples(self, examples: Examples) -> Examples:
        """Its rows of the programs."""
        if self.is_whole:
            return examples
        counts = self._counts(examples.values, examples.num_statements)
        begins = examples.offsets[:-1] + np.cumsum(counts, axis=0) - counts
        own = counts[[*self.own]]
        rows = _ranges(begins[[*self.own]].T.ravel(), own.T.ravel())
        return replace(
            examples,
            values=self._selected(examples.values[rows]),
            offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(own.sum(axis=0))]),
        )

    def _counts(self, rows: NDArray[np.float32], num_rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many rows each part has in each program, whose rows are one after the other.

        The last part of which that is not known has the rest; of another, rows are those with a number in its columns.
        """
        program = np.repeat(np.arange(len(num_rows)), num_rows)
        counts = np.zeros((len(self.columns), len(num_rows)), np.int64)
        for part, (num, own) in enumerate(zip(self.num_rows, self.columns, strict=True)):
            if num is not None:
                counts[part] = num
            elif None in self.num_rows[part + 1 :]:
                has_numbers = np.any(rows[:, own] != 0, axis=1)
                counts[part] = np.maximum(np.bincount(program[has_numbers], minlength=len(num_rows)), 1)
        if None in self.num_rows:
            last = len(self.num_rows) - 1 - self.num_rows[::-1].index(None)
            counts[last] = num_rows - counts.sum(axis=0)
        return counts

    def _selected(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Its columns, which are the last axis."""
        parts = [values[..., self.columns[part]] for part in self.own]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceInRows:
    """Has the numbers of the device in the other rows of its program, in the place of a row of its own.

    A tree sees one row: so it can tell what a statement costs on one device from what it costs on another.
    """

    columns: slice
    """Those of the device."""

    @staticmethod
    def of(encoder: Encoder) -> DeviceInRows | None:
        """For what an encoder gives; None where the device is no part of it, or all of it."""
        parts = _parts(encoder)
        device = HardwareEncoder()
        if device not in parts or len(parts) == 1:
            return None
        begin = sum(len(part.columns) for part in parts[: parts.index(device)])
        return DeviceInRows(slice(begin, begin + len(device.columns)))

    def values(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of values[candidate, row, number], whichever row is the one of the device."""
        is_device = np.any(values[:, :, self.columns] != 0, axis=2)
        rows: NDArray[np.float32] = values[~is_device].reshape(len(values), -1, values.shape[2])
        rows[:, :, self.columns] = values[is_device][:, np.newaxis, self.columns]
        return rows

    def examples(self, examples: Examples) -> Examples:
        program = np.repeat(np.arange(len(examples)), examples.num_statements)
        is_device = np.any(examples.values[:, self.columns] != 0, axis=1)
        devices = np.zeros((len(examples), self.columns.stop - self.columns.start), np.float32)
        devices[program[is_device]] = examples.values[is_device, self.columns]
        rows, own = examples.values[~is_device], program[~is_device]
        rows[:, self.columns] = devices[own]
        counts = np.bincount(own, minlength=len(examples))
        return replace(examples, values=rows, offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))


def _ranges(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """So many numbers from each beginning on, one range after the other."""
    rows: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(begins - np.cumsum(counts) + counts, counts)
    return rows


def _parts(encoder: Encoder) -> tuple[Encoder, ...]:
    return encoder.parts if isinstance(encoder, JoinedEncoder) else (encoder,)
