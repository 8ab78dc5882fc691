"""Search by Optuna: it learns from what is told, and is asked for only when it is used."""

from __future__ import annotations

import sys

import numpy as np
import optuna
import pytest

from tests.search.spaces import SKETCHES, TARGET, bowl, no_scores, sketch_of
from tilewright.errors import UsageError
from tilewright.search import RandomSearch, SearchStrategy, TPESearch, find_strategy
from tilewright.search.tpe import _KnobParameters, _parameters
from tilewright.space import Candidate, TileKnob

OTHER = sketch_of([1, 2, 4], [1, 2, 4])


def test_it_finds_better_programs_than_random() -> None:
    def later(search: SearchStrategy) -> float:
        for _ in range(6):
            found = search.ask(16)
            search.tell(found, bowl(found))
        return float(np.median(bowl(found)))

    ours, random = (
        strategy.begin(SKETCHES[:2], no_scores, TARGET, seed=1) for strategy in (TPESearch(), RandomSearch())
    )
    assert later(ours) < later(random)


def test_without_optuna_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    strategy = find_strategy("tpe")
    with pytest.raises(UsageError, match=r"pip install tilewright\[optuna\]"):
        strategy.begin(SKETCHES, no_scores, TARGET)


def test_optuna_is_told_of_the_choices_that_were_measured() -> None:
    search = TPESearch().begin([OTHER], no_scores, TARGET)
    search.tell([Candidate(OTHER, (1, 2)), Candidate(OTHER, (0, 0))], [2e-3, None])
    first, second = search._study.trials
    assert (first.value, first.params) == (2e-3, {"knob 0.0": 1, "knob 1.0": 2, "sketch": 0})
    assert second.state == optuna.trial.TrialState.PRUNED


def test_what_is_under_way_is_a_running_trial_until_it_is_told() -> None:
    search = TPESearch().begin([OTHER], no_scores, TARGET)
    found = search.ask(3)
    states = [trial.state.name for trial in search._study.trials]
    assert states.count("RUNNING") == 3
    search.tell(found, [1e-3, None, 2e-3])
    states = [trial.state.name for trial in search._study.trials]
    assert (states.count("RUNNING"), states.count("COMPLETE")) == (0, 2)


def test_what_was_told_is_known_after_a_sketch_is_added() -> None:
    search = TPESearch().begin([OTHER], no_scores, TARGET)
    found = search.ask(3)
    search.tell(found, [1e-3, 3e-3, 2e-3])
    search.add(sketch_of([1, 2]))
    assert [trial.value for trial in search._study.trials if trial.value] == [1e-3, 3e-3, 2e-3]
    search.tell(search.ask(2), [1e-3, 2e-3])


def test_the_column_of_a_table_is_a_parameter_and_the_nearest_choice_is_taken() -> None:
    knob = TileKnob("C.i", [[1, 4, 8], [2, 4, 8], [16, 4, 4], [1, 4, 64]])
    parameters = _KnobParameters.of(knob, "i")
    assert parameters.ranges == {"i.0": 2, "i.2": 2}, "a column with one number is none"
    assert [parameters.choice(place) for place in parameters.places.tolist()] == [0, 1, 2, 3]
    assert parameters.choice([0, 0]) == 0


def test_knobs_with_the_same_choices_are_the_same_parameters_but_for_those_of_one_sketch() -> None:
    first, second = (_parameters(SKETCHES)[sketch] for sketch in (SKETCHES[0], SKETCHES[-1]))
    assert [parameters.ranges for parameters in first] == [parameters.ranges for parameters in second]
    (equal,) = _parameters([OTHER]).values()
    assert [list(parameters.ranges) for parameters in equal] == [["knob 0.0"], ["knob 1.0"]]


def test_the_users_logging_stays_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    before = optuna.logging.get_verbosity()
    TPESearch().begin([OTHER], no_scores, TARGET).ask(2)
    assert optuna.logging.get_verbosity() == before
    assert capfd.readouterr().err == ""
