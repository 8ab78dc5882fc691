"""The benchmark of cost models in the tuner: what is trained, tuned, timed and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import cost_models_tuning
from benchmarks.cost_models_tuning import Row, Tuned
from tests.cli.tiny_model import write_tiny_model
from tests.records.dataset.samples import SMALL, write_sample
from tilewright.cost_model import load
from tilewright.records import read_records
from tilewright.records.dataset import NetworkTasks

TREES = "factor-trees:num_rounds=2"


def test_networks_are_tuned_by_trained_and_untrained_models_and_run_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_tiny_model(tmp_path)
    write_sample(tmp_path / "data").add_network(NetworkTasks("tiny", {SMALL.hash: 1}, "warm"))
    monkeypatch.setattr(cost_models_tuning, "NETWORKS", (path,))
    options = ["--data", str(tmp_path / "data"), "--records", str(tmp_path / "records"), "--threads", "1"]
    options += ["--trials", "4", "--rounds", "2", "--models", "boosted-trees", TREES]
    assert cost_models_tuning.main([*options, "--plot", str(tmp_path / "curve.png"), "--format", "json"]) == 0
    (first,) = json.loads(capsys.readouterr().out)["cases"]
    assert first["failure"] == ""
    assert set(first["models"]) == {"boosted-trees", TREES}
    for tuned in first["models"].values():
        assert tuned["latency_ms"] > 0
        assert tuned["tuning_s"] > 0
        assert [number for number, _ in tuned["curve"]] == [1, 2, 3, 4]
    assert (tmp_path / "curve.png").exists()
    (model,) = (tmp_path / "records" / "models").glob("*.npz")
    assert SMALL.hash not in load(model).tasks_, "what is tuned is not learned from"
    files = sorted((tmp_path / "records").glob("tiny-4-*.jsonl"))
    before = [len(list(read_records(file))) for file in files]
    assert len(before) == 2

    assert cost_models_tuning.main([*options]) == 0
    assert "boosted-trees" in capsys.readouterr().out
    assert [len(list(read_records(file))) for file in files] == before, "nothing is tuned again"


def test_ratios_are_those_of_boosted_trees_by_the_models() -> None:
    models = {"boosted-trees": Tuned(10.0, ((1, 1e-3),), 2.0), "other": Tuned(5.0, ((1, 1e-3),), 1.0)}
    table = cost_models_tuning.as_table([Row("zoo:bert_tiny 32", models), Row("zoo:resnet18 32", failure="it died")])
    *_, reference, other, failure = table.splitlines()
    assert "2 ms 1.000; 10 s 1.00" in reference
    assert "1 ms 2.000; 5 s 2.00" in other
    assert other.split("|")[-3:-1] == [f" {2:.3f}               ", f" {2:.3f}              "]
    assert failure == "zoo:resnet18 32: failed: it died"
