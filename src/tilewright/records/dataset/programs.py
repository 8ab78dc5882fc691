"""`TaskPrograms`: the measured programs of one task on one device in one context, as arrays, and their file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.measure import OK, STATUSES, Measurement
from tilewright.records.dataset.files import broken, read_arrays, write_arrays
from tilewright.space import (
    Candidate,
    Population,
    Sketch,
    SpaceOptions,
    sketches_from_json,
    sketches_to_json,
)
from tilewright.te import Task

KIND = "programs"
_NO_CHOICE = -1  # behind the last knob of a sketch that has fewer than others
_COLUMNS = ("sketch", "origin", "status", "num_runs")
_MOST_RUNS = 255
_OK = STATUSES.index(OK)
_LEAST_S, _MOST_S = 1e-12, 1e6

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TaskPrograms:
    """Programs in the order in which they were measured.

    `rows[program]` has the choices of the knobs of `sketches[sketch[program]]`. A failure has a status and no latency,
    which is NaN. `num_runs` tells in how many samples a program was timed: the hopeless ones in a single one.
    `again_s` is the latency of a second measurement, in a turn of its own, of those that have one. The fastest of
    the first `num_compared` programs were timed in turns, and have the latencies of those.
    """

    sketches: tuple[Sketch, ...] = ()
    rows: Integers = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    sketch: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    origin: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each program the place in `origins` of how it was chosen."""
    status: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each program the place of its status in `measure.STATUSES`."""
    num_runs: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    latencies_s: Floats = field(default_factory=lambda: np.zeros(0))
    again_s: Floats = field(default_factory=lambda: np.zeros(0))
    origins: tuple[str, ...] = ()
    num_compared: int = 0

    def __len__(self) -> int:
        return len(self.sketch)

    @property
    def is_valid(self) -> NDArray[np.bool_]:
        """Which programs ran, and gave the right answer."""
        valid: NDArray[np.bool_] = self.status == _OK
        return valid

    @property
    def best_latency_s(self) -> float | None:
        """Of the fastest program; None where none ran."""
        valid = self.latencies_s[self.is_valid]
        return float(valid.min()) if len(valid) else None

    def candidate(self, program: int) -> Candidate:
        """One of the programs."""
        sketch = self.sketches[self.sketch[program]]
        return Candidate(sketch, tuple(self.rows[program, : len(sketch.knobs)].tolist()))

    def candidates(self) -> list[Candidate]:
        """All of them."""
        return [self.candidate(program) for program in range(len(self))]

    def populations(self) -> list[tuple[Population, Integers]]:
        """For each sketch that has any its programs, and their numbers."""
        found: list[tuple[Population, Integers]] = []
        for number, sketch in enumerate(self.sketches):
            mine = np.flatnonzero(self.sketch == number)
            if len(mine):
                found.append((Population(sketch, self.rows[mine, : len(sketch.knobs)]), mine))
        return found

    def own_sketches(self, derived: Sequence[Sketch]) -> list[Sketch]:
        """The sketches, with one that is written here already in the place of its like."""
        known = {_content(sketch): sketch for sketch in self.sketches}
        return [known.get(_content(sketch), sketch) for sketch in derived]

    def with_measured(
        self, candidates: Sequence[Candidate], origins: Sequence[str], measurements: Sequence[Measurement]
    ) -> TaskPrograms:
        """These and more programs, with what came of them."""
        if not candidates:
            return self
        sketches = tuple(dict.fromkeys([*self.sketches, *(candidate.sketch for candidate in candidates)]))
        names = tuple(dict.fromkeys([*self.origins, *origins]))
        width = max(len(sketch.knobs) for sketch in sketches)
        times = [np.nan if m.latency_s is None else m.latency_s for m in measurements]
        return TaskPrograms(
            sketches,
            np.concatenate([_widened(self.rows, width), *(_row(candidate, width) for candidate in candidates)]),
            _joined(self.sketch, [sketches.index(candidate.sketch) for candidate in candidates]),
            _joined(self.origin, [names.index(origin) for origin in origins]),
            _joined(self.status, [STATUSES.index(m.status) for m in measurements]),
            _joined(self.num_runs, [min(len(m.runs_s), _MOST_RUNS) for m in measurements]),
            np.concatenate([self.latencies_s, times]),
            np.concatenate([self.again_s, np.full(len(candidates), np.nan)]),
            names,
            self.num_compared,
        )

    def fastest(self, num: int, within: float) -> list[int]:
        """Up to `num` programs, the fastest first, none slower than `within` times the best."""
        best_s = self.best_latency_s
        if best_s is None:
            return []
        times = np.where(self.is_valid, self.latencies_s, np.inf)
        order = np.argsort(times, kind="stable")[:num]
        return [int(program) for program in order if times[program] <= within * best_s]

    def with_compared(
        self, programs: Sequence[int], measurements: Sequence[Measurement], keeps_level: bool = False
    ) -> TaskPrograms:
        """The same with the latencies of a comparison; a program that failed there keeps the one that it had.

        If it `keeps_level`, the comparison says how fast they are beside each other, and beside the other programs of
        the task they stay, in the median, where they were: a machine that is slower today than when those were measured
        makes none of them better.
        """
        told = {
            program: measurement
            for program, measurement in zip(programs, measurements, strict=True)
            if measurement.latency_s is not None
        }
        times_s = np.array([measurement.latency_s for measurement in told.values()], np.float64)
        latencies_s, num_runs = self.latencies_s.copy(), self.num_runs.copy()
        if keeps_level and told:
            times_s *= np.median(latencies_s[list(told)] / times_s)
        for (program, measurement), time_s in zip(told.items(), times_s, strict=True):
            latencies_s[program] = time_s
            num_runs[program] = min(len(measurement.runs_s), _MOST_RUNS)
        return replace(self, latencies_s=latencies_s, num_runs=num_runs, num_compared=len(self))

    def with_again(self, programs: Sequence[int], latencies_s: Sequence[float | None]) -> TaskPrograms:
        """The same with second latencies of some programs; None leaves one as it is."""
        again_s = self.again_s.copy()
        for program, latency_s in zip(programs, latencies_s, strict=True):
            if latency_s is not None:
                again_s[program] = latency_s
        return replace(self, again_s=again_s)

    def with_faster(self, programs: Sequence[int], latencies_s: Sequence[float | None]) -> TaskPrograms:
        """The same with those latencies that are lower than what is there; then the fastest are to be compared anew."""
        known_s = self.latencies_s.copy()
        for program, latency_s in zip(programs, latencies_s, strict=True):
            if latency_s is not None:
                known_s[program] = min(known_s[program], latency_s)
        is_changed = not np.array_equal(known_s, self.latencies_s, equal_nan=True)
        return replace(self, latencies_s=known_s, num_compared=0) if is_changed else self

    def write(self, path: Path, task: Task, context: str) -> None:
        """Put the file of these programs in its place."""
        header = {
            "task": task.hash,
            "context": context,
            "origins": list(self.origins),
            "statuses": list(STATUSES),
            "num_compared": self.num_compared,
            **sketches_to_json(self.sketches),
        }
        columns = np.stack([self.sketch, self.origin, self.status, self.num_runs], axis=1)
        arrays: dict[str, NDArray[Any]] = {
            "programs": np.asfortranarray(columns, np.int16),
            "rows": np.asfortranarray(self.rows, np.int32),
            "latencies_s": np.asfortranarray(np.stack([self.latencies_s, self.again_s], axis=1), np.float32),
        }
        write_arrays(path, KIND, header, arrays)

    @staticmethod
    def read(path: Path, task: Task, options: SpaceOptions) -> TaskPrograms:
        """The programs of a file, which are of this task; RecordFormatError says what is wrong with another file."""
        header, arrays = read_arrays(path, KIND)
        if header.get("task") != task.hash:
            raise broken(path, f"it should be of the task {task.hash}, and is of {shown(header.get('task'))}")
        try:
            sketches = tuple(sketches_from_json(header, task, options))
        except ScheduleError as error:
            raise broken(path, str(error)) from error
        origins, statuses = _words(path, header, "origins"), _words(path, header, "statuses")
        columns = _checked(path, arrays, "programs", "i", (len(_COLUMNS),))
        num = len(columns)
        rows = _checked(path, arrays, "rows", "i", None, num)
        times = _checked(path, arrays, "latencies_s", "f", (2,), num).astype(np.float64)
        limits = (len(sketches), len(origins), len(statuses), _MOST_RUNS + 1)
        for name, column, limit in zip(_COLUMNS, columns.T, limits, strict=True):
            _check_range(path, name, column, limit)
        status = _known_statuses(path, statuses)[columns[:, 2]]
        found = TaskPrograms(
            sketches,
            rows.astype(np.int64),
            columns[:, 0].astype(np.int64),
            columns[:, 1].astype(np.int64),
            status,
            columns[:, 3].astype(np.int64),
            times[:, 0],
            times[:, 1],
            tuple(origins),
            _num_compared(path, header, num),
        )
        _check_rows(path, found)
        _check_times(path, found)
        return found


def _content(sketch: Sketch) -> str:
    """Equal for sketches that differ in their names at most."""
    written = sketches_to_json([sketch])
    return json.dumps([written["knobs"], written["sketches"][0]["steps"]])


def _widened(rows: Integers, width: int) -> Integers:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=_NO_CHOICE)


def _row(candidate: Candidate, width: int) -> Integers:
    return np.asarray([[*candidate.row, *[_NO_CHOICE] * (width - len(candidate.row))]], np.int64)


def _joined(before: Integers, values: Sequence[int]) -> Integers:
    return np.concatenate([before, np.asarray(values, np.int64)])


def _words(path: Path, header: dict[str, Any], name: str) -> list[str]:
    found = header.get(name)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise broken(path, f"{name} must be a list of words, got {shown(found)}")
    return found


def _num_compared(path: Path, header: dict[str, Any], num_programs: int) -> int:
    found = header.get("num_compared", 0)  # nothing was compared by the first version that wrote such files
    if type(found) is not int or not 0 <= found <= num_programs:
        raise broken(path, f"num_compared is a number of its {num_programs} programs, got {shown(found)}")
    return found


def _known_statuses(path: Path, statuses: Sequence[str]) -> Integers:
    unknown = next((status for status in statuses if status not in STATUSES), None)
    if unknown is not None:
        raise broken(path, f"a status is one of {', '.join(STATUSES)}, got {shown(unknown)}")
    return np.asarray([STATUSES.index(status) for status in statuses], np.int64)


def _checked(
    path: Path,
    arrays: dict[str, NDArray[Any]],
    name: str,
    kind: str,
    shape: tuple[int, ...] | None,
    num: int | None = None,
) -> NDArray[Any]:
    """The array of a name: one row a program, of the shape, or any number of columns."""
    array = arrays.get(name)
    if array is None or array.dtype.kind != kind or array.ndim != 2 or (num is not None and len(array) != num):
        what = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
        raise broken(path, f"{name} has a row of numbers for each program, got {what}")
    if shape is not None and array.shape[1:] != shape:
        raise broken(path, f"{name} has {shape[0]} columns, got {array.shape[1]}")
    return array


def _check_range(path: Path, name: str, column: NDArray[Any], limit: int) -> None:
    wrong = (column < 0) | (column >= limit)
    if wrong.any():
        raise broken(path, f"the {name} of a program is a number below {limit}, got {column[wrong][0]}")


def _check_rows(path: Path, programs: TaskPrograms) -> None:
    """Each choice is one of its knob's."""
    most = max((len(sketch.knobs) for sketch in programs.sketches), default=0)
    if programs.rows.shape[1] > most:
        raise broken(path, f"a row has a choice for each of {most} knobs at most, got {programs.rows.shape[1]}")
    for number, sketch in enumerate(programs.sketches):
        rows = programs.rows[programs.sketch == number]
        if rows.shape[1] < len(sketch.knobs) and len(rows):
            raise broken(path, f"a row has a choice for each of {len(sketch.knobs)} knobs, got {rows.shape[1]}")
        for choices, knob in zip(rows.T, sketch.knobs, strict=False):
            _check_range(path, f"choice of {shown(knob.name)}", choices, knob.cardinality)


def _check_times(path: Path, programs: TaskPrograms) -> None:
    valid, times = programs.is_valid, programs.latencies_s
    wrong = ~((times >= _LEAST_S) & (times <= _MOST_S)) & valid
    if wrong.any():
        raise broken(
            path, f"the latency of a program that ran is from {_LEAST_S:g} to {_MOST_S:g} s, got {times[wrong][0]}"
        )
    if not np.isnan(times[~valid]).all():
        raise broken(path, f"a program that failed has no latency, got {np.nanmin(times[~valid])}")
    again = programs.again_s[~np.isnan(programs.again_s)]
    if not ((again >= _LEAST_S) & (again <= _MOST_S)).all():
        raise broken(path, f"a second latency is from {_LEAST_S:g} to {_MOST_S:g} s, got {again.min()}")
