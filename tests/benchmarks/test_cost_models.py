"""The benchmark of cost models: its tables on a small dataset, what it keeps, and how it goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost_model_runs, cost_models
from benchmarks.cost_model_cases import MODELS, Plan, held_out_networks, new_devices, new_devices_of_logs
from benchmarks.cost_model_report import spread
from benchmarks.cost_model_runs import Laboratory, Outcome, Settings, fingerprint, make, num_parameters
from tests.records.dataset.samples import GEMM, HASWELL, some_programs, write_sample
from tests.records.dataset.test_importing import ansor_line, imported
from tilewright.cost_model import BoostedTrees, RandomModel
from tilewright.errors import UsageError
from tilewright.records.dataset import Corpus

TREES = "boosted-trees:num_trees=3"
MLP = "mlp:width=8,num_blocks=1"
PLAN = Plan(
    models=None,
    seeds=2,
    hold_out=("one",),
    device=None,
    new_devices=None,
    is_pooled=False,
    shares=(0.05, 1.0),
    programs=None,
)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path / "data")
    return tmp_path / "data"


def run(*arguments: str) -> int:
    given = ["--results", "results", "--data", "data", "--hold-out", "one", "--epochs", "1", *arguments]
    return cost_models.main(given)


def rows_of(out: str) -> list[list[str]]:
    lines = [line for line in out.splitlines() if line.startswith("|") and not line.startswith("| -")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_held_out_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--table", "1", "--models", "random", "analytical", TREES, MLP, "--plots", "plots") == 0
    out, err = capsys.readouterr()
    header, random, analytical, trees, mlp = rows_of(out)
    assert header[:5] == ["model", "top-1", "top-5", "pairwise", "one[batch=4]"]
    assert [row[0] for row in (random, analytical, trees, mlp)] == ["random", "analytical", TREES, MLP]
    assert random[3] == "0.500"
    assert trees[header.index("learned from")] == mlp[header.index("learned from")] == "12"
    assert int(mlp[header.index("parameters")]) > 1000
    assert float(mlp[header.index("scored/s")]) > 0
    assert "processor: " in out
    assert "device a72: Another" in out
    assert sorted(path.name for path in Path("plots").iterdir()) == ["cost_model_scatter.png", "cost_models.png"]
    assert f"table 1: {MLP} , seed 0" in err


def test_all_devices_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--table", "1", "--models", "analytical", TREES, "--pooled") == 0
    out = capsys.readouterr().out
    header, analytical, trees = rows_of(out)
    assert header[4:7] == ["a72", "haswell-2t", "one[batch=4]"]
    assert all(" / " in cell for cell in (*analytical[4:7], *trees[4:7]))
    assert trees[header.index("learned from")] == "24"
    assert "device haswell-2t: Some Processor" in out


def test_what_was_run_is_not_run_again(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("--table", "1", "--models", TREES) == 0
    first = capsys.readouterr().out

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patched:
        patched.setattr(cost_model_runs, "train_shown", never)
        assert run("--table", "1", "--models", TREES) == 0
        assert capsys.readouterr().out == first
        with pytest.raises(AssertionError):
            run("--table", "1", "--models", TREES, "--seeds", "2")
    assert run("--table", "1", "--models", TREES, "--seeds", "2") == 0
    assert "±" in capsys.readouterr().out


def test_other_data_is_another_case(data: Path) -> None:
    before = fingerprint(Corpus.open([data]))
    assert fingerprint(Corpus.open([data])) == before
    folder = write_sample(data.parent / "other")
    some_programs(GEMM, 30).write(folder.part(HASWELL, GEMM, "warm").path, GEMM, "warm")
    assert fingerprint(Corpus.open([folder.path])) != before


def test_an_interrupted_training_leaves_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    assert run("--table", "1", "--models", "random", TREES) == 0
    done = json.loads(Path("results/cost_models.json").read_text())
    monkeypatch.setattr(cost_model_runs, "train_shown", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("--table", "1", "--models", "random", TREES, "boosted-trees")
    assert json.loads(Path("results/cost_models.json").read_text()) == done


def test_a_new_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--table", "3", "--quick", "--models", "boosted-trees", "--plots", "plots", "--device", "a72") == 0
    header, *rows = rows_of(capsys.readouterr().out)
    assert header == ["device", "model", "learned from", "5%", "100%"]
    assert [row[:3] for row in rows] == [
        ["haswell-2t", "boosted-trees", "alone"],
        ["haswell-2t", "boosted-trees", "with one more"],
    ]
    assert [row[3] for row in rows] == ["too few"] * 2  # one program, and it failed
    assert all(" / " in row[4] for row in rows)
    assert Path("plots/new_device.png").exists()


def test_json_has_all_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--table", "2", "--models", "random", "--seeds", "2", "--format", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(case["table"], case["model"], case["seed"]) for case in printed["cases"]] == [
        ("2", "random", 0),
        ("2", "random", 1),
    ]
    assert printed["cases"][0]["rating"]["networks"].keys() == {"one[batch=4]"}
    assert "processor" in printed["machine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "xgb"], "a cost model is one of"),
        (["--models", "mlp:depth=3"], "got depth"),
        (["--hold-out", "vgg"], "the network 'vgg' is in none"),
        (["--device", "m1"], "the device 'm1' is in none"),
        (["--case", "nothing is called so"], "no case is chosen"),
        (["--data", "nowhere"], "a dataset is a folder"),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--table", "1", "--models", "random", *arguments) == 2
    assert message in capsys.readouterr().err


def test_outcomes_that_are_none_are_refused() -> None:
    Path("results").mkdir()
    Path("results/cost_models.json").write_text('{"a": {"b": 1}}')
    assert run("--table", "1", "--models", "random") == 2


def test_the_cases_of_the_tables(data: Path) -> None:
    corpus = Corpus.open([data])
    first = list(held_out_networks(corpus, PLAN, 1))
    assert [(case.model, case.seed) for case in first] == [(model, seed) for model in MODELS[1] for seed in (0, 1)]
    assert {(case.device, case.split.device, case.split.others) for case in first} == {("a72", "a72", ())}
    third = list(new_devices(corpus, PLAN))
    assert {case.device for case in third} == {"haswell-2t"}
    assert {(case.row[2], case.split.others) for case in third} == {("alone", ()), ("with one more", ("a72",))}
    assert {case.column for case in third} == {"5%", "100%"}


def test_pairs_of_logs_that_are_there(tmp_path: Path) -> None:
    lines = [ansor_line([n + 1], (n + 1) * 1e-3) for n in range(4)]
    for device in ("v100", "k80", "cortex-a7"):
        imported(tmp_path / "logs", device, *lines)
    cases = list(new_devices_of_logs(Corpus.open([tmp_path / "logs"]), PLAN))
    assert {case.device for case in cases} == {"k80"}
    assert {(case.row[2], case.split.others) for case in cases} == {("alone", ()), ("with v100", ("v100",))}
    with pytest.raises(UsageError, match="the data has logs alone"):
        list(held_out_networks(Corpus.open([tmp_path / "logs"]), PLAN, 1))


def test_logs_are_learned_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [ansor_line([n + 1], (n + 1) * 1e-3, key=f'["h", {task}]') for task in range(20) for n in range(4)]
    for device in ("v100", "k80"):
        imported(tmp_path / "logs", device, *lines)
    given = ["--results", "results", "--logs", "logs", "--quick", "--epochs", "1", "--table", "3"]
    assert cost_models.main([*given, "--models", "tlp:width=8,num_heads=2", "--plots", "plots"]) == 0
    _, *rows = rows_of(capsys.readouterr().out)
    assert [row[0] for row in rows] == ["k80", "k80"]
    assert " / " in rows[1][3]
    assert Path("plots/new_device_logs.png").exists()


def test_options_are_parts_of_a_models_name() -> None:
    model = make("boosted-trees:objective=rank,num_trees=7", 5, Settings(9, 2))
    wanted: dict[str, Any] = {"objective": "rank", "num_trees": 7, "seed": 5, "num_threads": 2}
    assert model.options.items() >= wanted.items()
    assert make("mlp", 0, Settings(9, 1)).options["epochs"] == 9
    assert make("mlp:epochs=4", 0, Settings(9, 1)).options["epochs"] == 4


def test_parameters_are_weights_or_nodes(data: Path) -> None:
    laboratory = Laboratory(Corpus.open([data]), Settings(1, 1), Path("results"))
    (case,) = held_out_networks(laboratory.corpus, Plan(**{**plan_options(), "models": (TREES,), "seeds": 1}), 1)
    outcome = laboratory.outcome(case)
    assert isinstance(outcome, Outcome)
    model = laboratory.model(case)
    assert isinstance(model, BoostedTrees)
    assert outcome.num_parameters == num_parameters(model) > 3
    assert num_parameters(RandomModel()) == 0


def plan_options() -> dict[str, Any]:
    return {name: getattr(PLAN, name) for name in PLAN.__slots__}


def test_several_seeds_have_a_spread() -> None:
    assert spread([0.5]) == "0.500"
    assert spread([0.5, 0.6, 0.55]) == "0.550 ±0.050"
