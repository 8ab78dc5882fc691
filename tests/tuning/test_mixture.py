"""Which programs a dataset gets: different, legal, of every kind, and the same for the same seed."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from tilewright import te
from tilewright.search.enumeration import numbered
from tilewright.space import Population, SpaceOptions, derive, least_unrolled
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.mixture import SHARES, UNTUNED, mixture
from tilewright.workloads import parse

TARGET = Target.parse("llvm -mcpu=haswell")
SKETCHES = derive(parse("gmm:64x64x64"), SpaceOptions(TARGET, 2))


def test_shares_are_of_a_whole() -> None:
    assert sum(SHARES.values()) == pytest.approx(1.0)


def test_programs_are_different_and_legal_and_of_every_kind() -> None:
    found = mixture(SKETCHES, 60, (0, 1))
    candidates = [candidate for candidate, _ in found]
    assert len(set(candidates)) == len(candidates) == 60
    assert all(Population.of([candidate]).legal(TARGET)[0] for candidate in candidates)
    counts = Counter(origin for _, origin in found)
    assert set(counts) == {*SHARES, UNTUNED}
    for origin, share in SHARES.items():
        assert counts[origin] == pytest.approx(share * 60, abs=2)
    first = {origin for _, origin in found[:20]}
    assert len(first) >= 4  # an interrupted collection has a mixture too


def test_the_same_seed_gives_the_same_programs_and_seen_ones_are_left_out() -> None:
    first, again, other = (mixture(SKETCHES, 20, seed) for seed in ((0, 1), (0, 1), (0, 2)))
    assert first == again != other
    seen = [candidate for candidate, _ in first]
    assert not {candidate for candidate, _ in mixture(SKETCHES, 20, (0, 1), seen)} & set(seen)


def test_a_small_space_gives_all_that_it_has() -> None:
    A = te.placeholder((3,), name="A")
    task = Task([A], [te.compute((3,), lambda i: A[i] * 2.0, name="B")])
    sketches = derive(task, SpaceOptions(TARGET, 1))
    found = mixture(sketches, 50, (0,))
    assert 1 <= len(found) < 50
    assert mixture(sketches, 50, (0,), [candidate for candidate, _ in found]) == []


def test_one_program_is_the_untuned_one() -> None:
    ((_, origin),) = mixture(SKETCHES, 1, (0,))
    assert origin == UNTUNED


@pytest.mark.parametrize("workload", ["gmm:2x2x2", "gmm:1x8x16", "gmm:1x4x4", "gmm:1x1x7"])
@pytest.mark.parametrize("share", [0.3, 0.7, 1.0, 2.0])
def test_a_small_space_gives_what_is_asked_for_at_once(workload: str, share: float) -> None:
    sketches = derive(parse(workload), SpaceOptions(TARGET, 2))
    every = [numbered(sketch, 0, sketch.cardinality) for sketch in sketches]
    num_programs = sum(len(least_unrolled(population[population.legal(TARGET)]).unique()) for population in every)
    num = math.ceil(share * num_programs)
    found = {candidate for candidate, _ in mixture(sketches, num, (0,))}
    assert len(found) == min(num, num_programs)
    assert len(mixture(sketches, num_programs, (0,), found)) == num_programs - len(found)
