"""Compiled models that are changed behind their checksums: none ends in anything but a run or a refusal."""

from __future__ import annotations

import pytest

from tilewright.testing.fuzz import harness
from tilewright.testing.fuzz.artifacts import Artifacts, Parts
from tilewright.testing.fuzz.harness import Limits

NUM_CASES = 150


@pytest.fixture(scope="module")
def artifacts() -> Artifacts:
    return Artifacts()


def test_a_case_follows_from_its_seed(artifacts: Artifacts) -> None:
    assert artifacts.content(3) == artifacts.content(3)
    assert len({artifacts.content(seed)[1] for seed in range(50)}) > 45


def test_a_file_that_is_put_together_again_is_the_same_model(artifacts: Artifacts) -> None:
    for file in artifacts.files:
        assert Parts.of(Parts.of(file).join()) == Parts.of(file)


def test_changed_files_run_or_are_refused(artifacts: Artifacts) -> None:
    tally = harness.run(artifacts, 0, Limits(seconds=60, num_cases=NUM_CASES))
    assert not tally.failures
    assert tally.num_cases == NUM_CASES
    assert {"ran", "refused"} <= set(tally.labels)
