"""A short run of the fuzzer of ONNX files; `TILEWRIGHT_FUZZ_SEED` varies the seed."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from tilewright.graph.onnx import load_model
from tilewright.testing.fuzz import harness
from tilewright.testing.fuzz.harness import Limits
from tilewright.testing.fuzz.onnx_corpus import WEIGHTS, WEIGHTS_FILE, all_models, own_models
from tilewright.testing.fuzz.onnx_files import OnnxFiles

SEED = int(os.environ.get("TILEWRIGHT_FUZZ_SEED", "20250"))
NUM_CASES = 300


def test_changed_files_are_imported_and_run_or_refused() -> None:
    tally = harness.run(OnnxFiles(), SEED, Limits(seconds=500, num_cases=NUM_CASES))
    assert not tally.failures, harness.describe(tally, "onnx", lambda seed: f"seed {seed}")
    assert tally.num_cases == NUM_CASES
    assert tally.labels["ran"] > NUM_CASES // 20
    assert sum(count for label, count in tally.labels.items() if label.startswith("refused")) > NUM_CASES // 4


@pytest.mark.parametrize("position", range(len(own_models())))
def test_models_that_are_written_here_are_imported(position: int, tmp_path: Path) -> None:
    (tmp_path / WEIGHTS_FILE).write_bytes(WEIGHTS)
    path = tmp_path / "model.onnx"
    path.write_bytes(own_models()[position])
    assert load_model(path).outputs


def test_same_seed_gives_the_same_file() -> None:
    files = OnnxFiles(own_models())
    assert [files.content(seed) for seed in range(20)] == [OnnxFiles(own_models()).content(seed) for seed in range(20)]


def test_corpus_has_every_operator_that_onnx_has_a_case_for() -> None:
    models = [onnx.load_model_from_string(data) for data in all_models()]
    operators = {node.op_type for model in models for node in model.graph.node}
    assert len(operators) > 180
