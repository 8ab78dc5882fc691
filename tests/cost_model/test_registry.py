"""Models by name and from files, and files that are not models."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tilewright.cost_model
from tilewright import TilewrightError, UsageError
from tilewright.cost_model import (
    BoostedTrees,
    Ensemble,
    RandomModel,
    ResidualModel,
    create,
    default,
    find,
    load,
    names,
    shipped,
)
from tilewright.cost_model.array_file import text_array
from tilewright.testing.cost_model_checks import sum_structured_examples


@pytest.mark.parametrize("name", names())
def test_models_are_made_by_name_and_loaded_whichever_they_are(name: str, tmp_path: Path) -> None:
    options = {} if name == "analytical" else {"seed": 5}
    model = create(name, **options)
    assert model.name == name
    assert model.options.items() >= options.items()
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert type(loaded) is type(model)
    assert loaded.options == model.options


def test_unknown_names_and_options_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match="a cost model is one of boosted-trees, analytical, random, .*, got 'xgb'"):
        create("xgb")
    with pytest.raises(UsageError, match="the options of the cost model random are seed; got sede"):
        create("random", sede=1)
    with pytest.raises(UsageError, match="the options of the cost model analytical are none; got seed"):
        create("analytical", seed=1)


@pytest.mark.parametrize("name", names())
def test_a_model_is_found_by_its_name_its_file_and_itself(name: str, tmp_path: Path) -> None:
    model = find(name, seed=5)
    assert model.name == name
    assert model.options.get("seed", 5) == 5
    assert find(model, seed=6) is model
    model.save(tmp_path / "model.npz")
    for path in (tmp_path / "model.npz", str(tmp_path / "model.npz")):
        assert find(path, seed=6).options == model.options


def test_the_default_is_a_residual_over_what_ships() -> None:
    model = find("default", seed=4)
    assert isinstance(model, ResidualModel)
    assert model.options == default(seed=4).options
    assert model.seed == 4
    assert model.is_fitted
    assert model.global_ is shipped()
    assert shipped().tasks_
    assert shipped().options["num_threads"] == 1


def test_what_ships_is_small() -> None:
    package = Path(tilewright.cost_model.__file__).parent
    assert sum(path.stat().st_size for path in (package / "pretrained").iterdir()) <= 5e6


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    RandomModel().save(tmp_path / "model")
    with pytest.raises(UsageError, match="holds the cost model random, not boosted-trees"):
        BoostedTrees.load(tmp_path / "model")


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is not there; check the path"):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 torn"])
def test_a_file_that_is_no_model_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(UsageError, match="is not the file of a cost model: .*; save the model again"):
        load(tmp_path / "model")


def test_arrays_without_a_header_and_a_lone_array_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.npz", a=np.zeros(1))
    np.save(tmp_path / "array.npy", np.zeros(1))
    for name in ("arrays.npz", "array.npy"):
        with pytest.raises(UsageError, match="is not the file of a cost model"):
            load(tmp_path / name)


def test_a_file_that_holds_more_than_any_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RandomModel().save(tmp_path / "model")
    monkeypatch.setattr("tilewright.cost_model.base.MAX_BYTES", 16)
    with pytest.raises(UsageError, match="it holds .* bytes, and at most 16 are read; save the model again"):
        load(tmp_path / "model")


def test_a_model_that_would_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.npz"
    RandomModel(seed=1).save(path)
    monkeypatch.setattr("tilewright.cost_model.base.MAX_BYTES", 2 * path.stat().st_size)
    model = BoostedTrees()
    model.fit_examples(sum_structured_examples(60))
    with pytest.raises(UsageError, match="a model of at most .* bytes is read again .*, got .*: train a smaller one"):
        model.save(path)
    assert load(path).options == {"seed": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_an_array_that_claims_to_be_larger_than_all_memory_is_refused(tmp_path: Path) -> None:
    claim = b"\x93NUMPY\x01\x00\x48\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}    \n"
    with zipfile.ZipFile(tmp_path / "model", "w") as archive:
        archive.writestr("header.npy", claim)
    with pytest.raises(UsageError, match="is not the file of a cost model: .*; save the model again"):
        load(tmp_path / "model")


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    header = {"format": "tilewright-cost-model", "version": 99, "model": "random", "options": {}}
    np.savez(tmp_path / "model.npz", header=text_array(json.dumps(header)))
    with pytest.raises(UsageError, match="version 1, got tilewright-cost-model version 99"):
        load(tmp_path / "model.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = RandomModel(seed=1)
    model.save(tmp_path / "model")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(TilewrightError, match="No space left.*what was there before is unchanged"):
        RandomModel(seed=2).save(tmp_path / "model")
    monkeypatch.undo()
    assert load(tmp_path / "model").options == {"seed": 1}


def test_options_stand_behind_the_name() -> None:
    model = find("boosted-trees:features=curves,objective=rank,num_trees=7", seed=3)
    assert isinstance(model, BoostedTrees)
    assert (model.features, model.objective, model.num_trees, model.seed) == ("curves", "rank", 7, 3)
    assert find("random:seed=5", seed=3).options == {"seed": 5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('ensemble:members=["analytical","boosted-trees"]', {"members": ["analytical", "boosted-trees"], "seed": 7}),
        (
            'ensemble:members=["boosted-trees:objective=rank,num_trees=3", "random"],seed=2',
            {"members": ["boosted-trees:objective=rank,num_trees=3", "random"], "seed": 2},
        ),
        (
            'residual:folds_of=tasks,local_options={"num_trees": 3, "max_depth": 1},num_folds=2',
            {"folds_of": "tasks", "local_options": {"num_trees": 3, "max_depth": 1}, "num_folds": 2},
        ),
    ],
)
def test_a_comma_inside_a_value_separates_no_options(text: str, expected: dict[str, object]) -> None:
    assert find(text, seed=7).options.items() >= expected.items()


@pytest.mark.parametrize(
    "text",
    ["random:seed=1,", "random:", "random:,", 'ensemble:members=["random","analytical"', "random:seed,seed=[1,2]"],
)
def test_a_comma_too_many_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="an option of a cost model is '.*'; give a name and a value"):
        find(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("boosted-trees:trees", "an option of a cost model is 'trees'; give a name and a value"),
        ("boosted-trees:", "an option of a cost model is ''; give a name and a value"),
        ("boosted-trees:seed=1,seed=2", "gives seed twice"),
        ("boosted-trees:leaves=2", "the options of the cost model boosted-trees are features, .*; got leaves"),
        ("boosted-trees:name=trees", "the options of the cost model boosted-trees are features, .*; got name"),
        ("boosted-trees:num_trees=many", "the option num_trees of the cost model boosted-trees is like 40"),
        ("boosted-trees:num_trees=" + "[" * 100_000, "the option num_trees of the cost model boosted-trees is like 40"),
        ("boosted-trees:features=magic", "an encoder is one of"),
        ("boosted-trees:features=curves+hardware+curves", "got curves twice; give it once"),
        ("trees:num_trees=2", "cost_model is 'trees:num_trees=2'; it must be one of"),
    ],
)
def test_options_that_are_none_are_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("boosted-trees:learning_rate=-1", "learning_rate .* a number above 0 and up to 1000.0, got -1"),
        ("boosted-trees:learning_rate=NaN", "got nan"),
        ("boosted-trees:l2=Infinity", "got inf"),
        (f"boosted-trees:l2={10**400}", "a number from 0 to 1e.30, got 1000"),
        ("boosted-trees:learning_rate=1e-320", "got 1e-320"),
        ("boosted-trees:num_trees=0", "num_trees .* a whole number from 1 to 2147483647, got 0"),
        ("boosted-trees:max_depth=0", "max_depth .* from 1 to 64, got 0"),
        ("boosted-trees:max_bins=1", "max_bins .* from 2"),
        ("boosted-trees:num_threads=100000", "num_threads .* from 1 to 512"),
        (f"boosted-trees:seed={2**63}", "seed .* from 0 to"),
        ("factor-trees:row_share=1.5", "row_share .* a number above 0 and up to 1, got 1.5"),
        ("factor-trees:grades=1000", "grades .* up to 64, got 1000"),
        ("tlp:length=99999999999999999999999", "length is a number of 77 bits; it must be below"),
        ("tlp-published:num_parameters=100000", "num_parameters is 100000; it must be at most 65536"),
        ("mlp:epochs=0", "epochs is 0; it must be at least 1"),
        ("random:seed=-1", "seed .* got -1"),
        ("residual:num_folds=0", "num_folds .* a whole number from 2"),
        ("residual:least_label=0", "least_label .* a number above 0"),
        ('ensemble:members=["boosted-trees:seed=-1"]', "seed of the cost model boosted-trees"),
        (f"ensemble:seed={2**60}", "seed of the cost model ensemble"),
    ],
)
def test_numbers_that_no_library_takes_are_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find(text)


def test_numbers_that_are_set_in_python_are_looked_at_before_learning() -> None:
    examples = sum_structured_examples(20)
    with pytest.raises(UsageError, match="the option learning_rate of the cost model boosted-trees"):
        BoostedTrees(learning_rate=-1.0).fit_examples(examples)
    with pytest.raises(UsageError, match="the option seed of the cost model random is a whole number from 0"):
        RandomModel(seed=-1).score(np.zeros((2, 1, 3), np.float32))
    with pytest.raises(UsageError, match="the option seed of the cost model ensemble .* got -1"):
        Ensemble(seed=-1).fit_examples(examples)
    with pytest.raises(UsageError, match="the option num_threads of the cost model ensemble .* got 0"):
        _ = Ensemble(num_threads=0).encoder
    with pytest.raises(UsageError, match="names of 1 to 16 cost models, got 'mlp'"):
        _ = Ensemble(members="mlp").encoder  # type: ignore[arg-type]
    BoostedTrees(seed=np.int64(3), num_trees=2).fit_examples(examples)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_options_as_others(tmp_path: Path) -> None:
    seed, rate = np.int64(3), np.float32(0.5)
    for model in (
        BoostedTrees(seed=seed, learning_rate=rate, num_trees=2),  # type: ignore[arg-type]
        create("boosted-trees", seed=seed, learning_rate=rate, num_trees=2),
    ):
        model.fit_examples(sum_structured_examples(20))
        model.save(tmp_path / "model.npz")
        assert load(tmp_path / "model.npz").options.items() >= {"seed": 3, "learning_rate": 0.5}.items()
    assert create("ensemble", seed=seed).options["seed"] == 3
    with pytest.raises(UsageError, match="is like 0, which is the default, got 3.0"):
        create("boosted-trees", seed=np.float64(3.0))
    with pytest.raises(UsageError, match="numbers, texts, and lists of these, got PosixPath"):
        BoostedTrees(features=tmp_path).save(tmp_path / "other.npz")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_a_residual_over_a_model_that_knows_nothing_is_refused_before_tuning(tmp_path: Path) -> None:
    """It cannot learn: that came out when the first programs were measured."""
    over_nothing = ResidualModel(global_model="boosted-trees")
    over_nothing.save(tmp_path / "model.npz")
    for given in ("residual:global_model=boosted-trees", over_nothing, tmp_path / "model.npz"):
        with pytest.raises(UsageError, match="the global model boosted-trees of a residual has learned nothing yet"):
            find(given)


def test_another_local_model_of_a_residual_has_its_own_options() -> None:
    """Those by default are of trees; a text cannot say that there are none."""
    model = find("residual:local_model=factor-trees,seed=3")
    assert model.options["local_options"] == {}
    assert "program.flop" in model.encoder.columns
    assert find("residual:local_model=boosted-trees").options["local_options"] == ResidualModel().local_options


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("residual:local_model=xgb", "a cost model is one of .*, got 'xgb'"),
        ('residual:local_options={"num_tree":3}', "boosted-trees are features, .*; got num_tree"),
        ("residual:local_model=random", "those of choices differ from sketch to sketch"),
    ],
)
def test_a_local_model_that_cannot_be_made_is_refused_before_tuning(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find(text)
