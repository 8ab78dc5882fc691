"""`tilewright model`: what its actions print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.records.dataset.samples import ARM, GEMM, HASWELL, SMALL, write_sample
from tests.records.dataset.test_importing import ansor_line, imported
from tilewright.cli import main, model_data
from tilewright.cli.model_list import models
from tilewright.cost_model import BoostedTrees, create, load, names
from tilewright.cost_model.array_file import text_array
from tilewright.cost_model.neural.training import Epoch
from tilewright.errors import UsageError
from tilewright.records.dataset import Corpus, DatasetFolder, Split
from tilewright.testing.cost_model_checks import sum_structured_examples

SMALL_MLP = ["--option", "width=8", "--option", "epochs=5", "--option", "num_blocks=1"]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DatasetFolder:
    monkeypatch.chdir(tmp_path)
    return write_sample(tmp_path / "data")


def train(*arguments: str, name: str = "boosted-trees", output: str = "model.npz") -> int:
    return main(["model", "train", name, "--data", "data", "-o", output, *arguments])


def evaluate(*arguments: str) -> int:
    return main(["model", "evaluate", *arguments, "--data", "data"])


def ratings(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert evaluate(*arguments, "--format", "json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


# --- list -------------------------------------------------------------------------------------------------------------


def test_the_list_has_all_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines.keys() == {"name", *names()}
    assert "statements" in lines["boosted-trees"]
    assert "torch" in lines["mlp"]
    assert "torch" not in lines["boosted-trees"]
    assert sum("ships" in line for line in lines.values()) == 1
    assert main(["model", "list", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed] == names()
    assert {row["name"] for row in listed if not row["is_trained"]} == {"analytical", "random", "residual"}


def test_what_is_read_is_the_name_of_an_encoder() -> None:
    from tilewright.features import create_encoder

    for row in models():
        assert create_encoder(row.reads) == create(row.name).encoder or create(row.name).encoder.options


# --- train ------------------------------------------------------------------------------------------------------------


def test_a_model_is_trained_and_says_what_it_learned_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--hold-out", "one", "--option", "num_trees=5", "--seed", "3") == 0
    out, err = capsys.readouterr()
    assert "learned: 24 programs of 1 tasks, 1 tasks held out" in out
    assert "training boosted-trees on 24 programs of 1 tasks on a72, haswell-2t" in err
    assert "reading programs: 24 of 24" in err
    model = load("model.npz")
    assert model.options.items() >= {"num_trees": 5, "seed": 3}.items()
    assert model.tasks_ == (SMALL.hash,)
    assert [path.name for path in Path().glob("model*")] == ["model.npz"]


def test_a_share_of_the_labels_of_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--device", "a72", "--labels", "0.5") == 0
    assert "learned: 36 programs" in capsys.readouterr().out
    assert train("--device", "a72", "--labels", "0.5", "--others", "none") == 0
    assert "learned: 12 programs" in capsys.readouterr().out
    assert train("--programs", "5") == 0
    assert "learned: 20 programs" in capsys.readouterr().out
    assert train("--device", "a72", "--labels", "0.5", "--labels-of", "tasks", "--others", "haswell-2t") == 0
    assert "learned: 36 programs of 2 tasks" in capsys.readouterr().out


def test_a_network_is_trained_with_a_line_of_each_epoch(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.cli.status_line._PLAIN_EVERY_S", 0.0)
    assert train(*SMALL_MLP, name="mlp") == 0
    err = capsys.readouterr().err
    assert [f"epoch {n}/5" in err for n in range(1, 6)] == [True] * 5
    assert load("model.npz").is_fitted
    assert [path.name for path in Path().glob("model*")] == ["model.npz"]


def test_the_device_is_the_target_of_a_model_that_has_one() -> None:
    tiny = [word for option in ("width=8", "num_heads=2", "epochs=1") for word in ("--option", option)]
    assert train(*tiny, "--device", "a72", "--labels", "0.5", name="mtl-tlp") == 0
    assert load("model.npz").options["target"] == "a72"
    assert train(*tiny, "--device", "a72", "--labels", "0", name="mtl-tlp") == 0
    assert load("model.npz").options["target"] == ""


def test_an_interrupted_training_goes_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert train(*SMALL_MLP, name="mlp", output="whole.npz") == 0

    def interrupted(epoch: Epoch) -> str:
        if epoch.number == 3:
            raise KeyboardInterrupt
        return ""

    with monkeypatch.context() as patched:
        patched.setattr(model_data, "epoch_status", interrupted)
        assert train(*SMALL_MLP, name="mlp") == 130
    assert "all epochs so far are in model.npz.checkpoint: the same command goes on" in capsys.readouterr().err
    assert sorted(path.name for path in Path().glob("model*")) == ["model.npz.checkpoint"]
    assert train(*SMALL_MLP, "--option", "learning_rate=0.1", name="mlp") == 2
    assert "a checkpoint of the same data, options and model" in capsys.readouterr().err
    assert train(*SMALL_MLP, name="mlp") == 0
    assert "going on from model.npz.checkpoint" in capsys.readouterr().err
    group = Split().training(Corpus.open(["data"])).groups[0]
    whole, resumed = load("whole.npz"), load("model.npz")
    values = group.encoded(whole.encoder)
    np.testing.assert_array_equal(whole.score(values), resumed.score(values))
    assert not Path("model.npz.checkpoint").exists()


def test_an_interrupt_leaves_the_model_that_was_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train() == 0
    before = Path("model.npz").read_bytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BoostedTrees, "fit_examples", interrupted)
    assert train("--seed", "1") == 130
    assert "nothing is written yet" in capsys.readouterr().err
    assert Path("model.npz").read_bytes() == before


def test_the_interrupted_training_of_a_network_is_left_alone_by_trees(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    checkpoint = Path("model.npz.checkpoint")
    checkpoint.write_bytes(b"hours of a network")
    with monkeypatch.context() as patched:
        patched.setattr(BoostedTrees, "fit_examples", interrupted)
        assert train() == 130
    assert "nothing is written yet" in capsys.readouterr().err
    assert train() == 0
    assert checkpoint.read_bytes() == b"hours of a network"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hold-out", "resnet50"], "the network 'resnet50' is in none of the datasets; they have both, one"),
        (["--hold-out", "one,"], "give names of networks with commas between them"),
        (["--hold-out", "both"], "nothing of the datasets is left to learn from"),
        (["--device", "m1"], "the device 'm1' is in none"),
        (["--labels", "0.5"], "go with a device"),
        (["--device", "a72", "--labels", "5"], "labels is 5.0; it must be a share"),
        (["--option", "trees=5"], "got trees"),
        (["--option", "name=trees"], "got name"),
        (["--option", "num_trees=many"], "got 'many'"),
        (["--option", "num_trees"], "--option is 'num_trees'; give a name and a value"),
        (["--option", "seed=1", "--option", "seed=2"], "--option gives seed twice"),
        (["--seed", "-1"], "--seed is -1; it must be at least 0"),
        (["--data", "nowhere"], "a dataset is a folder, and nowhere is none"),
        (["-o", "none/model.npz"], "there is no folder"),
        (["-o", "out/"], "-o is out/, which is the name of a folder; name a file"),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[-1]
    assert not list(Path().glob("model*"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("xgb", "a cost model is one of"),
        ("analytical", "has nothing to learn"),
        ("default", "default is what ships, and trained"),
    ],
)
def test_models_that_cannot_be_trained_are_refused(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(name=name) == 2
    assert message in capsys.readouterr().err


def test_without_torch_a_network_cannot_be_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_data, "find_spec", lambda _: None)
    assert train(name="mlp") == 2
    assert "is trained with torch, which is not installed" in capsys.readouterr().err


def test_a_model_is_fine_tuned_from_a_trained_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--others", "none", "--device", "a72", "--option", "num_trees=6") == 0
    few = ["--others", "none", "--device", "haswell-2t", "--labels", "0.5"]
    assert train(*few, "--prior", "model.npz", output="tuned.npz") == 0
    before, after = load("model.npz"), load("tuned.npz")
    assert isinstance(before, BoostedTrees)
    assert isinstance(after, BoostedTrees)
    assert before.forest_ is not None
    assert after.forest_ is not None
    assert after.forest_.num_nodes > before.forest_.num_nodes
    assert set(after.tasks_) >= set(before.tasks_)
    assert [row["model"] for row in ratings(capsys, "model.npz", "tuned.npz")] == ["model.npz", "tuned.npz"]


def test_a_network_that_is_fine_tuned_goes_on_after_an_interrupt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train(*SMALL_MLP, "--device", "a72", "--others", "none", name="mlp") == 0
    tune = ["--prior", "model.npz", "--device", "haswell-2t", "--others", "none"]
    assert train(*tune, name="mlp", output="whole.npz") == 0

    def stop(epoch: Epoch) -> str:
        if epoch.number == 2:
            raise KeyboardInterrupt
        return ""

    with monkeypatch.context() as patch:
        patch.setattr(model_data, "epoch_status", stop)
        assert train(*tune, name="mlp", output="tuned.npz") == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert train(*tune, name="mlp", output="tuned.npz") == 0
    assert "going on from tuned.npz.checkpoint" in capsys.readouterr().err
    rows = ratings(capsys, "whole.npz", "tuned.npz", "model.npz")
    assert {**rows[0], "model": ""} == {**rows[1], "model": ""}


def test_a_residual_learns_what_a_trained_model_gets_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--prior", "default", "--option", "num_folds=2", name="residual") == 0
    model = load("model.npz")
    assert model.options["global_model"] == "factor-trees"
    assert model.options["num_folds"] == 2
    assert model.options["folds_of"] == "tasks"
    assert len(ratings(capsys, "default", "model.npz")) == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mlp", ["--prior", "default"], "train factor-trees, which is then fine-tuned"),
        ("residual", ["--prior", "default", "--option", "global_model=random"], "leave out global_model"),
        ("boosted-trees", ["--prior", "missing.npz"], "missing.npz is not there"),
        ("boosted-trees", ["--prior", "model.npz", "--option", "features=curves"], "by --option it would read"),
        ("boosted-trees", ["--prior", "model.npz", "--option", "num_trees=0"], "num_trees"),
        ("boosted-trees", ["--prior", "model.npz", "--seed", "-1"], "--seed is -1"),
        ("residual", ["--prior", "over.npz"], "that others cannot begin with"),
        ("ensemble", ["--prior", "both.npz"], "learns all at once"),
        ("nothing", ["--prior", "model.npz"], "a cost model is one of"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused(
    name: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--option", "num_trees=2") == 0
    assert train("--prior", "model.npz", name="residual", output="over.npz") == 0
    both = json.dumps(["analytical", "boosted-trees:num_trees=2"])
    assert train("--option", f"members={both}", name="ensemble", output="both.npz") == 0
    assert train(*options, name=name, output="new.npz") == 2
    assert message in capsys.readouterr().err
    assert not Path("new.npz").exists()


# --- evaluate ---------------------------------------------------------------------------------------------------------


def test_models_are_rated_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--hold-out", "one") == 0
    found = ratings(capsys, "random", "model.npz", "boosted-trees", "default", "analytical", "--hold-out", "one")
    assert [each["model"] for each in found] == ["random", "model.npz", "boosted-trees", "default", "analytical"]
    for each in found:
        assert 0 < each["top_1"] <= each["top_5"] <= 1
        assert 0 <= each["pairwise"] <= 1
        assert each["networks"].keys() == {"one[batch=4]"}
    assert found[0]["pairwise"] == 0.5
    assert {k: v for k, v in found[1].items() if k != "model"} == {k: v for k, v in found[2].items() if k != "model"}


def test_a_table_has_models_networks_and_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate("random", "analytical") == 0
    out = capsys.readouterr().out
    first, networks, devices = out.split("\n\n")
    assert first.splitlines()[0].split() == ["model", "top-1", "top-5", "pairwise", "tasks", "missing"]
    assert first.splitlines()[1].split()[3:] == ["0.500", "4", "0"]
    assert [line.split()[0] for line in networks.splitlines()] == ["network,", "both", "one[batch=4]"]
    assert [line.split()[0] for line in devices.splitlines()] == ["device,", "a72", "haswell-2t"]
    assert evaluate("random", "--device", "a72", "--hold-out", "one") == 0
    assert "device," not in capsys.readouterr().out


def test_one_device_is_rated_on_alone(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = ratings(capsys, "analytical", "--device", "a72")
    assert found["devices"].keys() == {"a72"}
    assert found["num_tasks"] == 2


def test_a_model_that_saw_what_it_is_rated_on_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--hold-out", "one") == 0
    assert evaluate("model.npz", "--hold-out", "one") == 0
    assert "warning" not in capsys.readouterr().err
    assert evaluate("model.npz") == 0
    assert "model.npz has learned from 1 of the 2 tasks that it is rated on" in capsys.readouterr().err


def test_a_network_that_is_named_is_trained_on_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    """With the options that it has by default, as far as a test has the time."""
    (found,) = ratings(capsys, "mlp", "--hold-out", "one", "--device", "a72")
    assert found["model"] == "mlp"
    assert found["num_tasks"] == 1


def test_models_are_rated_with_the_options_behind_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    name = "boosted-trees:num_trees=2,objective=rank"
    assert train("--hold-out", "one", "--option", "num_trees=2", "--option", "objective=rank") == 0
    found = ratings(capsys, name, "model.npz", "random:seed=3", "--hold-out", "one")
    assert [each.pop("model") for each in found] == [name, "model.npz", "random:seed=3"]
    assert found[0] == found[1]
    assert evaluate("boosted-trees:leaves=2", "--hold-out", "one") == 2
    assert "the options of the cost model boosted-trees are" in capsys.readouterr().err
    assert evaluate("boosted-trees:num_trees=2") == 2
    assert "boosted-trees:num_trees=2 has learned nothing" in capsys.readouterr().err


def test_logs_are_rated_with_a_share_of_their_tasks_held_out(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [ansor_line([n + 1], (n + 1) * 1e-3, key=f'["h", {task}]') for task in range(20) for n in range(4)]
    imported(Path("data"), "v100", *lines)
    (found,) = ratings(capsys, "random", "--hold-out", "40%", "--device", "v100")
    assert found["networks"].keys() == {"v100"}
    assert 0 < found["num_tasks"] < 20
    assert evaluate("analytical", "--device", "v100") == 2
    assert "programs of another tool's log have primitives alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["boosted-trees"], "the cost model boosted-trees has learned nothing"),
        (["tlp-9"], "'tlp-9' is neither a file nor a cost model; the models are default, boosted-trees"),
        (["analytical", "--hold-out", "vgg"], "the network 'vgg' is in none of the datasets"),
        (["analytical", "--device", "m1"], "the device 'm1' is in none of the datasets"),
        (["boosted-trees", "--hold-out", "both"], "nothing of the datasets is left to learn from"),
        (["data"], "cannot be read: Is a directory"),
        (["random", "--seed", "-1"], "--seed is -1"),
    ],
)
def test_what_cannot_be_rated_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def write_model(name: str, **header: Any) -> None:
    """A model of other features; entries of its header may be others."""
    model = BoostedTrees(num_trees=2)
    model.fit_examples(sum_structured_examples(40))
    model.save(name)
    with np.load(name) as file:
        arrays = {key: file[key] for key in file.files}
    arrays["header"] = text_array(json.dumps(json.loads(arrays["header"].tobytes()) | header))
    np.savez(name, allow_pickle=False, **arrays)


def test_files_that_cannot_be_used_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_model("other.npz")
    write_model("newer.npz", version=2)
    Path("torn.npz").write_bytes(Path("other.npz").read_bytes()[:-200])
    write_model("hostile.npz", options={"num_trees": [1] * 1000})
    BoostedTrees().save("empty.npz")
    messages = {
        "other.npz": "has learned from 12 features, got",
        "newer.npz": "got tilewright-cost-model version 2",
        "torn.npz": "torn.npz is not the file of a cost model",
        "hostile.npz": "is like 40, which is the default, got [1, 1, 1",
        "empty.npz": "empty.npz holds a cost model that has learned nothing",
    }
    for name, message in messages.items():
        content = Path(name).read_bytes()
        assert evaluate(name, "--hold-out", "one") == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert message in err.splitlines()[-1]
        assert "Traceback" not in err
        assert Path(name).read_bytes() == content


def test_a_broken_part_of_a_dataset_is_left_out_with_a_warning(
    data: DatasetFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    data.part(HASWELL, GEMM, "warm").path.write_bytes(b"what")
    (found,) = ratings(capsys, "analytical")
    assert (found["num_tasks"], found["num_missing_tasks"]) == (3, 1)
    assert evaluate("analytical") == 0
    assert "warning: a part of the dataset is left out" in capsys.readouterr().err
    assert train() == 0
    assert "learned: 36 programs" in capsys.readouterr().out


def test_a_dataset_with_nothing_left_of_it_is_refused(data: DatasetFolder, capsys: pytest.CaptureFixture[str]) -> None:
    for device in (HASWELL, ARM):
        for task in (GEMM, SMALL):
            data.part(device, task, "warm").path.write_bytes(b"what")
    assert evaluate("analytical") == 2
    assert "no task of both, one[batch=4] has programs that ran on any device" in capsys.readouterr().err
    assert train() == 2
    assert "nothing of the datasets is left to learn from" in capsys.readouterr().err
    Path("data/dataset.json").write_text("[]")
    assert train() == 2
    assert "a file of a dataset says that its format is" in capsys.readouterr().err


def test_names_with_commas_in_them_are_taken_whole() -> None:
    known = {"c2d:1x8x8x4,4,3x3,s1,p1", "resnet50"}
    given = ["resnet50,c2d:1x8x8x4,4,3x3,s1,p1,unknown"]
    assert model_data.parse_hold_out(given, known) == ("resnet50", "c2d:1x8x8x4,4,3x3,s1,p1", "unknown")
    assert model_data.parse_hold_out(["a", "b,a"], known) == ("a", "b")
    with pytest.raises(UsageError, match="with commas between them"):
        model_data.parse_hold_out(["a,,b"], known)
