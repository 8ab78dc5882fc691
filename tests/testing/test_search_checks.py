"""The checks of search strategies find what is wrong with a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tilewright.search import RandomSearch, SearchStrategy
from tilewright.space import Candidate
from tilewright.testing.search_checks import SearchChecks, near_the_middle


class Repeating(RandomSearch):
    def ask(self, n: int) -> list[Candidate]:
        self.seen.clear()
        self.rng = np.random.default_rng(0)
        return super().ask(n)


class Unseeded(RandomSearch):
    def ask(self, n: int) -> list[Candidate]:
        self.rng = np.random.default_rng()
        return super().ask(n)


class Careless(SearchStrategy):
    def ask(self, n: int) -> list[Candidate]:
        return self.take_new(self.sketches[0].sample(self.rng, n), n)


class Deaf(RandomSearch):
    def tell(
        self,
        candidates: Sequence[Candidate],
        latencies_s: Sequence[float | None],
        runs_s: Sequence[Sequence[float]] | None = None,
    ) -> None:
        pass


class Discouraged(RandomSearch):
    """Gives up when all have failed."""

    def ask(self, n: int) -> list[Candidate]:
        return [] if self.seen and not self.measured else super().ask(n)


def checks_of(strategy: type[SearchStrategy]) -> SearchChecks:
    class Checks(SearchChecks):
        def make(self) -> SearchStrategy:
            return strategy()

    return Checks()


@pytest.mark.parametrize(
    ("strategy", "check"),
    [
        (Repeating, lambda checks: checks.test_it_gives_as_many_as_asked_and_none_twice(near_the_middle)),
        (Unseeded, lambda checks: checks.test_the_same_seed_gives_the_same_candidates()),
        (Careless, lambda checks: checks.test_candidates_are_legal_ones_of_the_sketches()),
        (Careless, lambda checks: checks.test_a_space_without_legal_programs_has_none_to_give()),
        (Deaf, lambda checks: checks.test_what_was_told_is_not_given()),
        (Discouraged, lambda checks: checks.test_it_goes_on_when_all_fail_and_when_all_are_alike(None)),
        (Careless, lambda checks: checks.test_it_says_whether_it_uses_scores()),
    ],
)
def test_what_is_wrong_is_found(strategy: type[SearchStrategy], check: Callable[[SearchChecks], None]) -> None:
    with pytest.raises(AssertionError):
        check(checks_of(strategy))
