"""The operator suite: all its cases, in canonical form, with the sizes meant."""

from __future__ import annotations

from collections import Counter

import pytest

from tilewright import UsageError, workloads


@pytest.mark.parametrize("batch", [1, 16])
def test_every_case_builds_and_is_canonical(batch: int) -> None:
    cases = workloads.suite(batch)
    assert all(workloads.canonical(workload) == workload for workload, _ in cases)
    assert all(workloads.parse(workload).hash == task.hash for workload, task in cases)
    assert len({task.hash for _, task in cases}) == len(cases)


def test_number_of_cases_per_family() -> None:
    counts = Counter(workload.partition(":")[0] for workload, _ in workloads.suite(1))
    assert counts == {**dict.fromkeys(workloads.names(), 4), "grp": 3, "tbg": 1}


def test_a_batch_multiplies_the_work_and_leaves_out_c3d() -> None:
    one = [(workload, task) for workload, task in workloads.suite(1) if not workload.startswith("c3d")]
    sixteen = workloads.suite(16)
    assert len(one) == len(sixteen) == 44
    assert all(b.flop == 16 * a.flop for (_, a), (_, b) in zip(one, sixteen, strict=True))


def test_a_batch_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="a batch is at least 1, got 0"):
        workloads.suite(0)
