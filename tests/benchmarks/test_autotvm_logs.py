"""The benchmark of transfer on logs: a small pair of devices, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import autotvm_logs
from tests.records.dataset.test_importing import autotvm_line, imported

NUM = 96


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two devices on which larger tiles are faster, the second with some noise."""
    rng = np.random.default_rng(0)
    for device, noise in (("amd3700x", 0.0), ("i5-1035g1", 0.2)):
        lines = [
            autotvm_line(tile, float((1 + 8 / tile) * (1 + noise * rng.random())) * 1e-3, ann=ann)
            for tile in range(1, NUM // 2 + 1)
            for ann in ("unroll", "none")
        ]
        imported(tmp_path / "logs", device, *lines)
    return tmp_path / "logs"


def test_models_of_a_pair_are_rated(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert autotvm_logs.main(["--logs", str(logs), "--skip", "0", "--seeds", "1", "--format", "json"]) == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    expected = [(model, num) for num in (16, 64) for model in autotvm_logs.MODELS]  # 256 would leave nothing to rate
    assert [(case["model"], case["records"]) for case in cases] == expected
    by_chance, general, local, both = (case["top_1"] for case in cases[: len(autotvm_logs.MODELS)])
    assert {case["num_workloads"] for case in cases} == {1}
    assert max(general, local, both) <= 1
    assert min(general, both) > by_chance


def test_the_table_has_a_column_for_each_number_of_records(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert autotvm_logs.main(["--logs", str(logs), "--skip", "0", "--seeds", "1"]) == 0
    out, err = capsys.readouterr()
    lines = [line for line in out.splitlines() if line.startswith("| ")]
    assert lines[0].split("|")[3:6] == [" 16 records ", " 64 records ", " 256 records "]
    assert lines[2].split()[1:4] == ["amd3700x", "->", "i5-1035g1"]
    assert "amd3700x -> i5-1035g1, 256 records: 0 workloads" in err
    assert autotvm_logs.main(["--logs", str(logs), "--skip", "1"]) == 2, "there is one alone"
    assert "no pair of devices has a workload in common" in capsys.readouterr().err
    assert autotvm_logs.main(["--logs", str(logs.parent / "missing")]) == 2
