"""What all strategies share: their options, and what they are begun with and told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.search.spaces import SKETCHES, TARGET, no_scores, sketch_of
from tilewright.errors import UsageError
from tilewright.search import GeneticSearch, RandomSearch, SearchStrategy, SimulatedAnnealing
from tilewright.space import Candidate


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (SimulatedAnnealing(chains=0), "chains is a whole number from 1 to 1000000, got 0; its default is 128"),
        (SimulatedAnnealing(chains=2.0), "chains is a whole number .* got 2.0"),  # type: ignore[arg-type]
        (SimulatedAnnealing(chains=10**12), "chains is a whole number"),
        (SimulatedAnnealing(alpha=-1), "alpha is a number from 0 to 1000000, got -1"),
        (SimulatedAnnealing(alpha=math.nan), "alpha is a number from 0 to 1000000, got nan"),
        (SimulatedAnnealing(epsilon="all"), "epsilon is a number from 0 to 1, got 'all'"),  # type: ignore[arg-type]
        (GeneticSearch(elite=-1), "elite is a whole number from 0 to 1000000, got -1"),
        (GeneticSearch(mutation=10**400), "mutation is a number from 0 to 1, got 1000"),
    ],
)
def test_options_out_of_their_range_are_refused_when_a_search_begins(strategy: SearchStrategy, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        strategy.begin(SKETCHES, no_scores, TARGET)


def test_the_numbers_of_numpy_are_numbers() -> None:
    strategy = GeneticSearch(population=np.int64(8), mutation=np.float32(0.5))  # type: ignore[arg-type]
    assert len(strategy.begin(SKETCHES, no_scores, TARGET).ask(2)) == 2


def test_a_search_has_a_sketch() -> None:
    with pytest.raises(UsageError, match="at least one sketch"):
        RandomSearch().begin([], no_scores, TARGET)


def test_a_candidate_of_an_unknown_sketch_is_refused() -> None:
    search = RandomSearch().begin(SKETCHES, no_scores, TARGET)
    with pytest.raises(UsageError, match="candidates of its sketches"):
        search.tell([Candidate(sketch_of(), ())], [1e-3])


def test_only_what_ran_is_measured() -> None:
    search = RandomSearch().begin(SKETCHES, no_scores, TARGET)
    found = search.ask(4)
    search.tell(found, [None, 2e-3, math.inf, 1e-3])
    assert search.measured == [(found[3], 1e-3), (found[1], 2e-3)]


def test_a_space_too_large_to_go_through_is_not() -> None:
    sketch = sketch_of(*[[1, 2, 4, 8, 16, 32, 64]] * 8)
    search = RandomSearch().begin([sketch], no_scores, TARGET)
    assert search.remaining(3) == []
    assert len(search.ask(3)) == 3
