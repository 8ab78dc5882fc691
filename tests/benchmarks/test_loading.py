"""The benchmark of loading a compiled model: what its processes tell, and how that is judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import loading
from benchmarks.loading import OURS, PEER, Case, Sample
from tests.cli.tiny_model import write_tiny_model
from tilewright.errors import TilewrightError

FAST = Sample(import_s=0.2, load_s=0.1, first_s=0.1, imported_mb=50, peak_mb=150)
SLOW = Sample(import_s=0.1, load_s=0.4, first_s=0.2, imported_mb=50, peak_mb=300)


def case(ours: list[Sample], theirs: list[Sample] | None = None) -> Case:
    samples = {OURS: tuple(ours)} | ({} if theirs is None else {PEER: tuple(theirs)})
    return Case("zoo:a", 2, 100.0, 100.0, samples)


def test_both_libraries_load_the_model_and_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_tiny_model(tmp_path)
    loading.main(["--model", model, "--runs", "2", "--threads", "1", "--format", "json"])
    (found,) = json.loads(capsys.readouterr().out)["cases"]
    assert {name: len(samples) for name, samples in found["samples"].items()} == {OURS: 2, PEER: 2}
    for sample in (sample for samples in found["samples"].values() for sample in samples):
        assert min(sample["import_s"], sample["load_s"], sample["first_s"]) > 0
        assert 10 < sample["imported_mb"] <= sample["peak_mb"]


def test_without_onnxruntime_only_the_time_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    monkeypatch.setattr(loading, "LIMIT_S", 1e9)
    assert loading.main(["--model", write_tiny_model(tmp_path), "--runs", "1", "--threads", "1"]) == 0
    assert capsys.readouterr().out.strip().endswith("peak memory by that of onnxruntime: not run: needs onnxruntime")


def test_the_import_is_stated_apart_and_medians_count() -> None:
    found = case([FAST, SLOW, FAST])
    assert found.ready_s == pytest.approx(0.2)
    assert found.is_fast
    assert not case([SLOW]).is_fast
    row = next(line for line in loading.as_table([found]).splitlines() if line.startswith("| zoo:a"))
    assert [cell.strip() for cell in row.split("|")[4:11]] == [
        "200 ms", "100 ms", "100 ms", "200 ms", "200 ms", "400 ms", "400 ms",
    ]  # fmt: skip


@pytest.mark.parametrize(("ours_mb", "is_small"), [(150, True), (151, False)])
def test_memory_is_compared_with_that_of_onnxruntime(ours_mb: float, is_small: bool) -> None:
    ours, theirs = (Sample(0.1, 0.1, 0.1, 20, peak_mb) for peak_mb in (ours_mb, 100))
    found = case([ours], [theirs])
    assert found.memory_ratio == pytest.approx(ours_mb / 100)
    assert found.is_small is is_small
    assert loading.as_table([found]).endswith("pass" if is_small else "FAIL")


def test_libraries_that_disagree_are_not_compared(tmp_path: Path) -> None:
    np.savez(tmp_path / f"{OURS}.npz", np.ones(3))
    np.savez(tmp_path / f"{PEER}.npz", np.array([1.0, 1.0, 1.1]))
    with pytest.raises(TilewrightError, match="must compute the same"):
        loading.compare_outputs([OURS, PEER], tmp_path)


def test_a_model_that_matches_nothing_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert loading.main(["--case", "no-such-case"]) == 2
    assert "no model matches; they are zoo:resnet50" in capsys.readouterr().err
