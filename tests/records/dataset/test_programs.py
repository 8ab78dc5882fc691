"""The programs of a task: they come back from their file, and a file that holds something else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.records.dataset.samples import GEMM, OPTIONS, SMALL, some_programs
from tilewright.errors import RecordFormatError
from tilewright.measure import OK, STATUSES, Measurement
from tilewright.records.dataset import TaskPrograms
from tilewright.records.dataset.files import read_arrays, write_arrays
from tilewright.space import derive


def test_programs_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    programs = some_programs(GEMM).with_again([0, 2], [5e-3, None])
    programs.write(path, GEMM, "warm")
    again = TaskPrograms.read(path, GEMM, OPTIONS)
    assert [c.trace for c in again.candidates()] == [c.trace for c in programs.candidates()]
    np.testing.assert_allclose(again.latencies_s, programs.latencies_s, rtol=1e-6)
    np.testing.assert_allclose(again.again_s, programs.again_s, rtol=1e-6)
    assert again.again_s[0] == pytest.approx(5e-3)
    assert np.isnan(again.again_s[1:]).all()
    for name in ("status", "origin", "num_runs", "sketch"):
        np.testing.assert_array_equal(getattr(again, name), getattr(programs, name))
    assert again.best_latency_s == pytest.approx(1e-3)
    assert again.is_valid.sum() == 10
    assert again.origins == ("random",)


def test_programs_of_an_older_run_and_new_ones_share_their_sketches(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    some_programs(GEMM).write(path, GEMM, "warm")
    old = TaskPrograms.read(path, GEMM, OPTIONS)
    sketches = old.own_sketches(derive(GEMM, OPTIONS))
    assert {id(sketch) for sketch in old.sketches} <= {id(sketch) for sketch in sketches}
    candidate = next(iter(sketches[-1].sample(np.random.default_rng(9), 1)))
    more = old.with_measured([candidate], ["liked"], [Measurement(OK, 1e-3, (1e-3,) * 500)])
    assert len(more) == len(old) + 1
    more.write(path, GEMM, "warm")
    again = TaskPrograms.read(path, GEMM, OPTIONS)
    assert again.candidate(len(old)).trace == candidate.trace
    assert again.num_runs[-1] == 255
    assert again.origins[again.origin[-1]] == "liked"


def test_nothing_is_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    TaskPrograms().write(path, GEMM, "warm")
    assert len(TaskPrograms.read(path, GEMM, OPTIONS)) == 0
    assert TaskPrograms().best_latency_s is None


def rewritten(path: Path, header: dict[str, Any], **arrays: np.ndarray | None) -> None:
    """The file with other parts; None leaves one out."""
    old_header, old_arrays = read_arrays(path, "programs")
    chosen = {name: array for name, array in (old_arrays | arrays).items() if array is not None}
    write_arrays(path, "programs", old_header | header, chosen)


def column(number: int, value: int) -> np.ndarray:
    programs = np.zeros((12, 4), np.int16)
    programs[3, number] = value
    return programs


def times(value: float, program: int = 0, turn: int = 0) -> np.ndarray:
    found = np.full((12, 2), np.nan, np.float32)
    found[:, 0] = np.where(np.arange(12) % 5 == 4, np.nan, 1e-3)
    found[program, turn] = value
    return found


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"task": SMALL.hash}, {}, f"should be of the task {GEMM.hash}"),
        ({"sketches": None}, {}, "sketches must be a list"),
        ({"sketches": []}, {}, "sketch of a program is a number below 0"),
        ({"origins": "random"}, {}, "origins must be a list of words"),
        ({"statuses": ["EXPLODED"] * 7}, {}, "got 'EXPLODED'"),
        ({}, {"programs": None}, "programs has a row of numbers for each program, got nothing"),
        ({}, {"programs": np.zeros((12, 3), np.int16)}, "programs has 4 columns, got 3"),
        ({}, {"programs": np.zeros((12, 4), np.float32)}, "got float32"),
        ({}, {"programs": column(0, 99)}, "sketch of a program is a number below"),
        ({}, {"programs": column(0, -1)}, "got -1"),
        ({}, {"programs": column(2, len(STATUSES))}, "status of a program"),
        ({}, {"rows": np.zeros((11, 4), np.int32)}, "rows has a row of numbers for each program"),
        ({}, {"rows": np.zeros((12, 1), np.int32)}, "a choice for each of 4 knobs, got 1"),
        ({}, {"rows": np.zeros((12, 5), np.int32)}, "a choice for each of 4 knobs at most, got 5"),
        ({}, {"rows": np.full((12, 4), 10**6, np.int32)}, "got 1000000"),
        ({}, {"rows": np.full((12, 4), -1, np.int32)}, "got -1"),
        ({}, {"latencies_s": times(0.0)}, "got 0.0"),
        ({}, {"latencies_s": times(-1.0)}, "got -1.0"),
        ({}, {"latencies_s": times(np.nan)}, "got nan"),
        ({}, {"latencies_s": times(np.inf)}, "got inf"),
        ({}, {"latencies_s": times(1e-3, program=4)}, "a program that failed has no latency"),
        ({}, {"latencies_s": times(0.0, turn=1)}, "a second latency is from"),
        ({}, {"latencies_s": np.zeros(12, np.float32)}, "got float32"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    header: dict[str, Any], arrays: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.npz"
    some_programs(GEMM).write(path, GEMM, "warm")
    rewritten(path, header, **arrays)
    with pytest.raises(RecordFormatError, match=message) as caught:
        TaskPrograms.read(path, GEMM, OPTIONS)
    assert str(path) in str(caught.value)
