"""`LoggedPrograms`: what logs of another tool hold of one workload on one device, as arrays, and their file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shown
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.features import Primitive, PrimitiveSequence
from tilewright.records.dataset.files import broken, read_arrays, write_arrays

KIND = "log"
CONTEXT = "log"
"""In place of the context of programs that were not measured here."""
MAX_PRIMITIVES = 10_000
"""Of a program; and the numbers of a primitive."""
LEAST_S, MOST_S = float(np.float32(1e-12)), 1e8  # latencies are written as float32

Form: TypeAlias = tuple[tuple[str, tuple[str, ...], int], ...]
"""Of each primitive its kind, its names and how many numbers it has."""


@dataclass(frozen=True, slots=True, eq=False)
class LoggedForm:
    """Programs that have the same primitives, and differ in numbers alone: rows[program, number]."""

    form: Form
    rows: NDArray[np.int64]
    latencies_s: NDArray[np.float64]
    """NaN for a failure."""
    errors: NDArray[np.int64]
    """What the tool calls the failure; 0 for none."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        """How many numbers a program has."""
        return sum(count for _, _, count in self.form)

    @property
    def primitives(self) -> PrimitiveSequence:
        """The programs as models read them."""
        found: list[Primitive] = []
        start = 0
        for kind, names, count in self.form:
            found.append(Primitive(kind, names, tuple(_column(self.rows[:, start + n]) for n in range(count))))
            start += count
        return tuple(found)

    def joined(self, other: LoggedForm) -> LoggedForm:
        """The programs of both; what is there twice, with the same latency, counts once."""
        rows = np.concatenate([self.rows, other.rows])
        times = np.concatenate([self.latencies_s, other.latencies_s])
        errors = np.concatenate([self.errors, other.errors])
        # As they are written, so that a log that is imported again adds nothing.
        bits = times.astype(np.float32).view(np.int32).astype(np.int64)
        _, first = np.unique(np.column_stack([rows, bits, errors]), axis=0, return_index=True)
        first.sort()
        return LoggedForm(self.form, rows[first], times[first], errors[first])


@dataclass(frozen=True, slots=True, eq=False)
class LoggedPrograms:
    """Programs of one workload, by their forms."""

    forms: tuple[LoggedForm, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.forms))

    @property
    def latencies_s(self) -> NDArray[np.float64]:
        """Of all programs; NaN for failures."""
        return np.concatenate([np.zeros(0), *(form.latencies_s for form in self.forms)])

    def joined(self, others: Sequence[LoggedForm]) -> LoggedPrograms:
        """These and more programs, each once."""
        found = {form.form: form for form in self.forms}
        for other in others:
            empty = LoggedForm(other.form, other.rows[:0], other.latencies_s[:0], other.errors[:0])
            found[other.form] = found.get(other.form, empty).joined(other)
        return LoggedPrograms(tuple(found.values()))

    def write(self, path: Path, workload: str) -> None:
        """Put the file in its place; `workload` is the hash of the task."""
        header = {
            "task": workload,
            "forms": [[[kind, list(names), count] for kind, names, count in form.form] for form in self.forms],
            "num_programs": [len(form) for form in self.forms],
        }
        numbers = np.concatenate([np.zeros(0, np.int64), *(form.rows.T.reshape(-1) for form in self.forms)])
        errors = np.concatenate([np.zeros(0, np.int64), *(form.errors for form in self.forms)])
        arrays: Mapping[str, NDArray[Any]] = {
            "numbers": numbers.astype(_smallest_type(numbers)),
            "latencies_s": self.latencies_s.astype(np.float32),
            "errors": errors.astype(np.int16),
        }
        write_arrays(path, KIND, header, arrays)

    @staticmethod
    def read(path: Path, workload: str) -> LoggedPrograms:
        """The programs of a file; RecordFormatError says what is wrong with another."""
        header, arrays = read_arrays(path, KIND)
        if header.get("task") != workload:
            raise broken(path, f"it should be of the workload {workload}, and is of {shown(header.get('task'))}")
        forms = [_form(path, form) for form in _list(path, header, "forms")]
        counts = _list(path, header, "num_programs")
        if len(counts) != len(forms) or not all(type(count) is int and 1 <= count < 2**31 for count in counts):
            raise broken(path, f"num_programs has a number for each of {len(forms)} forms, from 1, got {shown(counts)}")
        widths = [sum(count for _, _, count in form) for form in forms]
        numbers = _checked(path, arrays, "numbers", "i", sum(n * w for n, w in zip(counts, widths, strict=True)))
        times = _checked(path, arrays, "latencies_s", "f", sum(counts)).astype(np.float64)
        errors = _checked(path, arrays, "errors", "i", sum(counts)).astype(np.int64)
        _check_times(path, times)
        found: list[LoggedForm] = []
        at_number = at_program = 0
        for form, num, width in zip(forms, counts, widths, strict=True):
            mine = slice(at_program, at_program + num)
            block = numbers[at_number : at_number + num * width].reshape(width, num).T.astype(np.int64)
            found.append(LoggedForm(form, block, times[mine], errors[mine]))
            at_number, at_program = at_number + num * width, at_program + num
        return LoggedPrograms(tuple(found))


def _column(values: NDArray[np.int64]) -> int | NDArray[np.int64]:
    """One number where all programs agree."""
    return int(values[0]) if len(values) and (values == values[0]).all() else np.ascontiguousarray(values)


def _smallest_type(numbers: NDArray[np.int64]) -> type[np.signedinteger[Any]]:
    most = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))  # the least int64 has no absolute value
    return np.int16 if most < 2**15 else np.int32 if most < 2**31 else np.int64


def _list(path: Path, header: Mapping[str, Any], name: str) -> list[Any]:
    found = header.get(name)
    if not isinstance(found, list):
        raise broken(path, f"{name} must be a list, got {shown(found)}")
    return found


def _form(path: Path, data: object) -> Form:
    if not isinstance(data, list) or len(data) > MAX_PRIMITIVES or not all(map(_is_primitive, data)):
        raise broken(path, f"a form has a kind, names and a count for each primitive, got {shown(data)}")
    return tuple((kind, tuple(names), count) for kind, names, count in data)


def _is_primitive(data: object) -> bool:
    if not isinstance(data, list) or len(data) != 3:
        return False
    kind, names, count = data
    are_words = isinstance(kind, str) and isinstance(names, list) and all(isinstance(name, str) for name in names)
    return are_words and type(count) is int and 0 <= count <= MAX_PRIMITIVES


def _checked(path: Path, arrays: Mapping[str, NDArray[Any]], name: str, kind: str, num: int) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.dtype.kind != kind or array.shape != (num,):
        what = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
        raise broken(path, f"{name} has {num} numbers, got {what}")
    return array


def _check_times(path: Path, times: NDArray[np.float64]) -> None:
    wrong = ~np.isnan(times) & ~((times >= LEAST_S) & (times <= MOST_S))
    if wrong.any():
        raise broken(path, f"a latency is from {LEAST_S:g} to {MOST_S:g} s, got {times[wrong][0]}")
