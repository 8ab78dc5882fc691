"""A full disk, writers at the same time, writers killed: the real things, on real files."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.records.samples import record
from tilewright.errors import TilewrightError
from tilewright.records import RecordLog, prune

ROOT = Path(__file__).parents[2]
NUM_RECORDS = 1000

WRITER = """
import sys
from tests.records.samples import record
from tilewright.records import RecordLog

log = RecordLog(sys.argv[1])
for number in range(int(sys.argv[3])):
    log.append(record(task=sys.argv[2], time=float(number)))
    if number == 0:
        print("writing", flush=True)
"""


def start_writer(path: Path, name: str, num_records: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(num_records)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}/src:{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def file_size_limit() -> Iterator[int]:
    """No file may grow beyond so many bytes, as on a disk that is full."""
    limit = 20_000
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_two_processes_append_to_one_file_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    writers = [start_writer(path, name, NUM_RECORDS) for name in ("first", "second")]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            RecordLog(path).read()  # a reader in between sees whole records
    for writer in writers:
        writer.communicate()
    records = RecordLog(path).read()
    for name in ("first", "second"):
        assert [r.time for r in records if r.task == name] == list(range(NUM_RECORDS))


def test_thinning_out_a_file_that_is_written_to_loses_no_best_record(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    writers = [start_writer(path, name, NUM_RECORDS) for name in ("first", "second")]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
    for _ in range(10):
        prune(path, keep_best=NUM_RECORDS)
        time.sleep(0.01)  # so that the writers get the lock too
    for writer in writers:
        writer.communicate()
    assert len(RecordLog(path).read()) == 2 * NUM_RECORDS


def test_a_writer_killed_at_any_time_leaves_a_file_that_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    before = 0
    for round_number in range(3):
        writer = start_writer(path, f"round {round_number}", 1_000_000)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        time.sleep(0.1)
        writer.kill()
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL
        records = RecordLog(path).read()
        times = [r.time for r in records if r.task == f"round {round_number}"]
        assert times == list(range(len(times)))
        assert len(records) == before + len(times)
        before = len(records)


def test_a_full_disk_is_said_and_leaves_no_torn_line(tmp_path: Path, file_size_limit: int) -> None:
    log = RecordLog(tmp_path / "records.jsonl")
    num_that_fit = (file_size_limit - 100) // (len(record().to_line()) + 1)
    log.extend([record()] * (num_that_fit - 1))
    with pytest.raises(TilewrightError, match="records.jsonl cannot be used: File too large"):
        log.extend([record()] * 3)
    log.append(record())
    assert file_size_limit - 1000 < log.path.stat().st_size <= file_size_limit
    assert log.path.read_bytes().endswith(b"\n")
    assert log.read() == [record()] * num_that_fit


def test_a_full_disk_keeps_the_old_file_when_it_is_rewritten(tmp_path: Path, file_size_limit: int) -> None:
    log = RecordLog(tmp_path / "records.jsonl")
    log.append(record())
    with pytest.raises(TilewrightError, match="File too large"):
        log.rewrite(lambda records: records * 1000)
    assert log.read() == [record()]
    assert list(tmp_path.iterdir()) == [log.path]


def test_a_device_without_space_is_said() -> None:
    with pytest.raises(TilewrightError, match="/dev/full cannot be used: No space left on device"):
        RecordLog("/dev/full").append(record())
