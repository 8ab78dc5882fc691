"""Sketches of templates are sketches: encoders, cost models and search strategies work on them as on derived ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.space.templates.programs import OPTIONS, blocked, product
from tilewright.cost_model import CostModel, Dataset, create, names
from tilewright.cost_model.neural.inference import choose_engine, reference_engine
from tilewright.features import create_encoder, encoder_names
from tilewright.search.registry import STRATEGIES
from tilewright.space import Candidate, Population, Sketch
from tilewright.space.templates import x86
from tilewright.testing.search_checks import near_the_middle
from tilewright.workloads import parse

SKETCHES: list[Sketch] = [
    *blocked.sketches(product(), OPTIONS),
    *x86.conv2d.sketches(parse("c2d:1x9x11x5,24,3x3,s1,p1+bias+relu"), OPTIONS)[:2],
]
# So that networks are made and trained in no time.
SMALL = {"width": 8, "epochs": 1, "num_heads": 2, "num_members": 1, "num_slots": 2, "length": 8, "num_rounds": 2}


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    """Networks run on the reference evaluator, which is there at once."""
    before = choose_engine(reference_engine)
    yield
    choose_engine(before)


def small(name: str) -> CostModel:
    return create(name, **{key: value for key, value in SMALL.items() if key in create(name).options})


@pytest.mark.parametrize("name", encoder_names())
def test_every_encoder_reads_them_row_by_row(name: str) -> None:
    for sketch in SKETCHES:
        population = sketch.sample(np.random.default_rng(0), 6)
        values = create_encoder(name).encode(population)
        assert len(values) == 6
        assert np.isfinite(values).all()
        alone = create_encoder(name).encode(population[np.array([4])])
        np.testing.assert_allclose(alone[0], values[4], rtol=1e-6)


@pytest.mark.parametrize("name", names())
def test_every_cost_model_learns_from_them_and_scores_them(name: str) -> None:
    population = SKETCHES[1].sample(np.random.default_rng(0), 12)
    model = small(name)
    model.update(Dataset().with_trials(list(population), np.linspace(1e-3, 2e-3, 12).tolist()))
    scores = model.predict(population)
    assert scores.shape == (12,)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_searches_them(name: str) -> None:
    search = STRATEGIES[name]().begin(SKETCHES[:2], near_the_middle, OPTIONS.target, seed=0)
    seen: set[Candidate] = set()
    for _ in range(3):
        found = search.ask(8)
        assert len(found) == 8
        assert not seen & set(found)
        seen |= set(found)
        assert all(Population.of([candidate]).legal(OPTIONS.target).all() for candidate in found)
        search.tell(found, np.linspace(1e-3, 2e-3, len(found)).tolist())
