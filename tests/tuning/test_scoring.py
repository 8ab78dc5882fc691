"""Which model scores what while a task is tuned."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.cost_model import (
    AnalyticalModel,
    BoostedTrees,
    CostModel,
    Dataset,
    FactorTrees,
    Measured,
    Mlp,
    RandomModel,
    ResidualModel,
    find,
)
from tilewright.space import Population, SpaceOptions, derive
from tilewright.target import Target
from tilewright.tuning.scoring import Scoring, verified
from tilewright.tuning.tuner import Tuner, tune
from tilewright.tuning.untuned import search_untuned
from tilewright.workloads import parse

TARGET = Target.parse("llvm -mcpu=haswell -num-cores=2")
TASK = parse("gmm:96x64x80")


@dataclass(kw_only=True, eq=False)
class Slow(AnalyticalModel):
    """Scores that the analytical model would give the other way round, and how many it was asked for."""

    asked: list[int] = field(default_factory=list, init=False)

    @property
    def verified_share(self) -> float:
        return 1 / 4

    def predict(self, population: Population) -> NDArray[np.float64]:
        self.asked.append(len(population))
        return -super().predict(population)


@pytest.fixture
def population() -> Population:
    sketch = derive(TASK, SpaceOptions(TARGET, 2))[0]
    return sketch.sample(np.random.default_rng(0), 400).unique()


def test_a_slow_model_scores_the_best_drafts_and_all_others_follow_them(population: Population) -> None:
    model = Slow()
    drafts = AnalyticalModel().predict(population)
    scores = verified(population, drafts, model)
    (number,) = model.asked
    assert number == round(len(population) / 4)
    best = np.argsort(-drafts, kind="stable")[:number]
    others = np.setdiff1d(np.arange(len(population)), best)
    assert scores[best] == pytest.approx(-drafts[best])
    assert scores[others].max() <= scores[best].min()
    assert (np.argsort(-scores[others], kind="stable") == np.argsort(-drafts[others], kind="stable")).all()


def test_few_candidates_are_all_scored_by_a_slow_model(population: Population) -> None:
    few = population[:20]
    assert verified(few, AnalyticalModel().predict(few), Slow()) == pytest.approx(-AnalyticalModel().predict(few))


def test_scores_are_the_analytical_ones_until_the_model_has_learned(population: Population) -> None:
    expected = AnalyticalModel().predict(population)
    assert (Scoring(BoostedTrees()).scores(population) == expected).all()
    slow = Slow()
    assert (Scoring(slow).scores(population) != expected).any()
    assert slow.asked[0] < len(population)


@pytest.mark.parametrize("model", [BoostedTrees(), RandomModel(), AnalyticalModel()])
def test_a_model_that_has_learned_nothing_leaves_the_first_program_to_the_analytical_one(model: CostModel) -> None:
    assert isinstance(Scoring(model).drafting, AnalyticalModel)


def test_the_first_program_is_that_of_the_model_that_is_given() -> None:
    sketches = derive(parse("gmm:512x512x512"), SpaceOptions(TARGET, 2))
    tuner = Tuner(parse("gmm:512x512x512"), TARGET, 2, cost_model="analytical")
    assert tuner.untuned == search_untuned(sketches, model=AnalyticalModel())
    assert Tuner(parse("gmm:512x512x512"), TARGET, 2).untuned == search_untuned(sketches)


def test_a_model_from_a_file_adapts_and_stays_as_it_is(tmp_path: Path, population: Population) -> None:
    latencies_s = np.exp(-AnalyticalModel().predict(population)) * 1e-9
    trained = FactorTrees(num_rounds=2)
    trained.fit(Dataset((Measured(population, latencies_s),)))
    trained.save(tmp_path / "model.npz")
    before = trained.predict(population)

    found = find(tmp_path / "model.npz", seed=3)
    assert isinstance(found, ResidualModel)
    assert found.seed == 3
    assert found.predict(population) == pytest.approx(before)
    result = tune(TASK, trials=16, threads=1, cost_model=found)
    assert result.best.latency_s is not None
    assert found.global_ is not None
    assert (found.global_.predict(population) == before).all()


def test_a_network_from_a_file_guides_a_search_without_torch(tmp_path: Path, population: Population) -> None:
    trained = Mlp(width=8, epochs=1)
    trained.fit(Dataset((Measured(population, np.exp(-AnalyticalModel().predict(population)) * 1e-9),)))
    trained.save(tmp_path / "model.npz")
    code = f"""
import sys
sys.modules["torch"] = None
from tilewright.tuning.tuner import tune
from tilewright.workloads import parse
result = tune(parse("gmm:96x64x80"), trials=20, threads=1, cost_model={str(tmp_path / "model.npz")!r})
print(len(result.records))
"""
    environment = os.environ | {"TILEWRIGHT_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout == "20\n", done.stderr
