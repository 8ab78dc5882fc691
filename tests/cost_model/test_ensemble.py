"""The mean of several models: on which scale, of whom, and from which files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import UsageError
from tilewright.cost_model import AnalyticalModel, BoostedTrees, CostModel, Ensemble, Examples, load
from tilewright.cost_model.base import read_file, write_arrays
from tilewright.cost_model.views import View
from tilewright.testing.encoder_checks import sketches_of

TREES = "boosted-trees:objective=rank,num_trees=6"


def fitted(members: list[str], seed: int = 3) -> tuple[Ensemble, NDArray[np.float32]]:
    """An ensemble that has learned from programs whose latency is the analytical one with noise."""
    population = sketches_of("conv1d")[0].sample(np.random.default_rng(0), 40)
    noise = np.random.default_rng(1).normal(0, 0.3, 40)
    model = Ensemble(members=members, seed=seed)
    values = model.encoder.encode(population)
    latencies_s = np.exp(noise - AnalyticalModel().predict(population)) * 1e-9
    model.fit_examples(Examples.of_groups([values], [latencies_s], ["task"]))
    return model, values


def scores_of(member: CostModel, whole: Ensemble, values: NDArray[np.float32]) -> NDArray[np.float64]:
    return member.score(View.of(member.encoder, whole.encoder).values(values))


def test_members_say_as_much_on_the_scale_of_the_first() -> None:
    model, values = fitted(["analytical", TREES])
    first, second = (scores_of(member, model, values) for member in model.models_)
    np.testing.assert_allclose(model.score(values), first / 2 + second * (first.std() / second.std()) / 2)


def test_members_learn_what_they_would_learn_alone() -> None:
    model, values = fitted(["analytical", TREES])
    alone, own = fitted([f"{TREES},seed={model.models_[1].options['seed']}"])
    np.testing.assert_array_equal(scores_of(model.models_[1], model, values), alone.score(own))


def test_members_of_one_kind_have_different_seeds() -> None:
    seeds = [member.options["seed"] for seed in (0, 1) for member in fitted([TREES, TREES], seed=seed)[0].models_]
    assert len(set(seeds)) == 4


def test_a_member_that_tells_nothing_apart_has_no_say() -> None:
    model, values = fitted(["boosted-trees:num_trees=1,min_child_weight=1e9", "analytical"])
    assert isinstance(model.models_[0], BoostedTrees)
    scores = model.score(values)
    assert model.shares_ is not None
    assert model.shares_[0] == 0
    assert np.array_equal(np.argsort(scores), np.argsort(scores_of(model.models_[1], model, values)))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "names of 1 to 16 cost models, got"),
        (["analytical"] * 17, "names of 1 to 16"),
        ([3], "names of 1 to 16"),
        (["xgb"], "a cost model is one of"),
        (["boosted-trees:depth=3"], "the options of the cost model boosted-trees are"),
        (["analytical", "ensemble"], "other models, got 'ensemble'"),
        (["analytical", "random"], "differ from sketch to sketch"),
    ],
)
def test_wrong_members_are_refused(members: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fitted(members)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.npz"
    fitted(["analytical", TREES])[0].save(path)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shares": np.ones(3)}, "2 members have as many finite shares"),
        ({"shares": np.array([1.0, np.nan])}, "finite shares"),
        ({"shares": None}, "what ensemble has learned is not in it"),
        ({"1:trees_json": np.zeros(9, np.uint8)}, "what ensemble has learned is not in it"),
        ({"1:counts": None}, "what ensemble has learned is not in it"),
    ],
)
def test_files_that_were_tampered_with_are_refused(
    saved: Path, tmp_path: Path, changes: dict[str, NDArray[Any] | None], message: str
) -> None:
    header, arrays = read_file(saved)
    kept = {name: array for name, array in (arrays | changes).items() if array is not None}
    write_arrays(tmp_path / "model.npz", header, kept)
    with pytest.raises(UsageError, match=message):
        load(tmp_path / "model.npz")


def test_a_file_without_one_of_its_members_is_refused(saved: Path, tmp_path: Path) -> None:
    header, arrays = read_file(saved)
    write_arrays(tmp_path / "model.npz", header, {name: a for name, a in arrays.items() if not name.startswith("1:")})
    with pytest.raises(UsageError, match="the member boosted-trees.* has learned nothing"):
        load(tmp_path / "model.npz")
