"""A short run of the fuzzer of record files, and that a case follows from its seed."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from tilewright.errors import RecordFormatError
from tilewright.records import read_tasks
from tilewright.schedule.steps import STEPS, AlgorithmStep
from tilewright.testing.fuzz import harness
from tilewright.testing.fuzz.harness import Limits
from tilewright.testing.fuzz.record_corpus import networks, records_of, task_lines
from tilewright.testing.fuzz.record_files import RecordFiles

SEED = int(os.environ.get("TILEWRIGHT_FUZZ_SEED", "20250"))
NUM_CASES = 60


def test_changed_record_files_are_used_or_refused_by_a_named_error() -> None:
    print(f"seed {SEED}")
    tally = harness.run(RecordFiles(), SEED, Limits(300, num_cases=NUM_CASES))
    assert not tally.failures, harness.describe(tally, "records", str)
    assert tally.num_cases == NUM_CASES
    assert {"used", "refused", "set aside"} <= set(tally.labels)


def test_a_case_follows_from_its_seed() -> None:
    cases = [RecordFiles().content(seed) for seed in range(24)]
    assert cases == [RecordFiles().content(seed) for seed in range(24)]
    assert len({data for _, data in cases}) == 24


def test_some_changed_tasks_are_other_tasks_and_some_are_none(tmp_path: Path) -> None:
    path, found = tmp_path / "records.jsonl", Counter[str]()
    for seed in range(1, 150):
        path.write_bytes(RecordFiles().content(seed)[1])
        try:
            tasks = read_tasks(path)
            found["another" if set(tasks) - set(task_lines()) else "known"] += 1
        except RecordFormatError as error:
            found["none" if "the task cannot be read" in str(error) else "no file"] += 1
    assert min(found[kind] for kind in ("another", "known", "none")) > 0


def test_every_kind_of_step_is_among_the_records() -> None:
    records = [record for number in range(len(networks())) for record in records_of(number)]
    # Algorithms are for more channels than these small networks have; tests/schedule/test_algorithm.py has their JSON.
    assert {step.name for record in records for step in record.trace.steps} == set(STEPS) - {AlgorithmStep.name}
