"""Measured programs as a model reads them: arrays, and how fast each was."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from reprlib import repr as shown
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError

_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Programs in the order they were measured. Program p has the rows offsets[p] to offsets[p + 1] of `values`.

    What a row is says the encoder: a statement, say. Programs may have different numbers of them. A label is the
    throughput relative to the best program of the same task: 1 for the best, 0 for a failure. Program p was measured on
    the device device_names[devices[p]]; all are of one device without a name unless it is said otherwise.

    >>> features = [np.zeros((2, 3), np.float32), np.ones((1, 3), np.float32)]
    >>> Examples.build(features, latencies_s=[0.5, 1.0], tasks=["gemm", "gemm"]).labels
    array([1. , 0.5])
    """

    values: NDArray[np.float32]
    offsets: NDArray[np.int64]
    labels: NDArray[np.float64]
    tasks: NDArray[np.int64]
    devices: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    device_names: tuple[str, ...] = ("",)

    def __post_init__(self) -> None:
        num = len(self.labels)
        if len(self.devices) == 0:
            object.__setattr__(self, "devices", np.zeros(num, np.int64))
        if self.values.ndim != 2 or len(self.tasks) != num or len(self.offsets) != num + 1:
            raise UsageError(
                f"examples with {num} labels have as many tasks, one offset more and two-dimensional values; got "
                f"{len(self.tasks)} tasks, {len(self.offsets)} offsets and values of shape {self.values.shape}"
            )
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.values) or np.any(np.diff(self.offsets) < 1):
            raise UsageError(
                f"the offsets of examples rise from 0 to its {len(self.values)} rows, at least one row a program; "
                f"got {self.offsets}"
            )
        if self.devices.shape != (num,) or np.any((self.devices < 0) | (self.devices >= len(self.device_names))):
            raise UsageError(
                f"the device of each of the {num} programs is the number of one of the {len(self.device_names)} names, "
                f"got {shown(self.devices.tolist())}"
            )
        if not np.isfinite(self.labels).all():
            program = int(np.argmin(np.isfinite(self.labels)))
            raise UsageError(
                f"labels are finite numbers, got {self.labels[program]} for program {program}; leave it out, or give "
                "it 0 if it failed"
            )
        if not np.isfinite(self.values).all():
            row, column = np.argwhere(~np.isfinite(self.values))[0]
            raise UsageError(
                f"features are finite numbers, got {self.values[row, column]} in row {row}, column {column}; "
                f"mend the feature or leave the program out"
            )

    @classmethod
    def build(
        cls,
        features: Sequence[NDArray[np.float32]],
        latencies_s: Sequence[float | None],
        tasks: Sequence[Hashable],
        devices: Sequence[str] | None = None,
    ) -> Examples:
        """From float32[statements, F] a program, its latency (None for a failure), any name of its task, its device.

        Programs of one task on two devices have labels that cannot be compared: name the task for each device.
        """
        if not len(features) == len(latencies_s) == len(tasks):
            raise UsageError(
                f"each program has features, a latency and a task; got {len(features)}, {len(latencies_s)} "
                f"and {len(tasks)}"
            )
        ids, _ = _numbered(tasks)
        device_ids, device_names = _numbered([""] * len(features) if devices is None else devices)
        latencies = np.array([np.inf if latency is None else latency for latency in latencies_s], np.float64)
        offsets = np.zeros(len(features) + 1, np.int64)
        np.cumsum([len(f) for f in features], out=offsets[1:])
        _check_same_columns(features)
        values = np.concatenate(features, dtype=np.float32) if features else np.zeros((0, 0), np.float32)
        return cls(values, offsets, _relative_throughput(latencies, ids), ids, device_ids, device_names or ("",))

    @classmethod
    def of_groups(
        cls,
        values: Sequence[NDArray[np.float32]],
        latencies_s: Sequence[NDArray[np.float64]],
        tasks: Sequence[Hashable],
        devices: Sequence[str] | None = None,
    ) -> Examples:
        """From float32[programs, rows, F] a group, the latencies of its programs, its task and its device.

        The latency of a failure is infinite.
        """
        _check_same_columns(values)
        counts = [len(group) for group in values]
        ids = np.repeat(_numbered(tasks)[0], counts)
        device_ids, device_names = _numbered([""] * len(values) if devices is None else devices)
        offsets = np.zeros(sum(counts) + 1, np.int64)
        np.cumsum(np.repeat([group.shape[1] for group in values], counts), out=offsets[1:])
        # Programs of a sketch without knobs have no choices: -1 for the number of rows would say nothing then.
        rows = [group.reshape(len(group) * group.shape[1], group.shape[2]) for group in values]
        flat = np.concatenate(rows) if rows else np.zeros((0, 0), np.float32)
        latencies = np.concatenate(latencies_s) if latencies_s else np.zeros(0)
        labels = _relative_throughput(latencies, ids)
        return cls(flat, offsets, labels, ids, np.repeat(device_ids, counts), device_names or ("",))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_features(self) -> int:
        return int(self.values.shape[1])

    @property
    def num_statements(self) -> NDArray[np.int64]:
        """The rows of each program."""
        return np.diff(self.offsets)

    def select(self, programs: NDArray[np.int64]) -> Examples:
        """The given programs alone, in that order, with their labels as they are."""
        counts = self.num_statements[programs]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[programs] - offsets[:-1], counts)
        return Examples(
            self.values[rows],
            offsets,
            self.labels[programs],
            self.tasks[programs],
            self.devices[programs],
            self.device_names,
        )

    def padded(self, programs: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The given programs as [program, row, number], filled up with zeros, and which of the rows are their own.

        >>> features = [np.ones((2, 1), np.float32), np.ones((1, 1), np.float32)]
        >>> values, mask = Examples.build(features, [0.5, 1.0], ["gemm", "gemm"]).padded(np.array([0, 1]))
        >>> mask.tolist()
        [[True, True], [True, False]]
        """
        counts = self.num_statements[programs]
        mask = np.arange(counts.max(initial=0)) < counts[:, np.newaxis]
        values = np.zeros((*mask.shape, self.num_features), np.float32)
        values[mask] = self.select(programs).values
        return values, mask


def _check_same_columns(parts: Sequence[NDArray[np.float32]]) -> None:
    widths = sorted({part.shape[-1] for part in parts})
    if len(widths) > 1:
        raise UsageError(
            f"examples have the same columns for all programs, got some of {shown(widths)} columns, as of the choices "
            f"of several sketches; choose an encoder whose columns are the same for all, such as knobs"
        )


def _numbered(names: Sequence[_Name]) -> tuple[NDArray[np.int64], tuple[_Name, ...]]:
    """The number of each, counted from the first that is called so, and the names in the order of their numbers."""
    numbers: dict[_Name, int] = {}
    ids = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    return ids, tuple(numbers)


def _relative_throughput(latencies_s: NDArray[np.float64], tasks: NDArray[np.int64]) -> NDArray[np.float64]:
    if not (latencies_s > 0).all():
        raise UsageError(f"a latency is above 0, got {latencies_s.min()}; give None for a failure")
    best = np.full(tasks.max(initial=-1) + 1, np.inf)
    np.minimum.at(best, tasks, latencies_s)
    is_measured = np.isfinite(latencies_s)
    labels = np.zeros(len(latencies_s))
    labels[is_measured] = best[tasks[is_measured]] / latencies_s[is_measured]
    return labels
