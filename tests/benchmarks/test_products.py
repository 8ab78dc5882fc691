"""The benchmarks of products and of tuning beside MetaSchedule: what they run, keep and say."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import metaschedule, products

FAKE_WORKER = """
import json, sys
print(json.dumps({"tuning_s": 100.0, "error": ERROR}), flush=True)
for line in sys.stdin:
    assert int(line) > 0
    print(json.dumps(SECONDS), flush=True)
"""


def test_products_are_tuned_and_timed_on_one_thread_and_two_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(products, "PRODUCTS", ("gmm:24x16x8",))
    options = ["--records", str(tmp_path), "--format", "json"]
    products.main([*options, "--trials", "2", "--rounds", "1"])
    measured = json.loads(capsys.readouterr().out)["cases"]
    assert [(row["case"], row["threads"]) for row in measured] == [("gmm:24x16x8 on 1", 1), ("gmm:24x16x8 on 2", 2)]
    assert all(row["trials"] == 2 and row["ratio"] > 0 and row["peer"] for row in measured)
    products.main([*options, "--report"])
    assert json.loads(capsys.readouterr().out)["cases"] == measured


def test_a_product_that_falls_short_fails_and_says_why() -> None:
    row = products.Row("gmm:8x8x8", 1, 2, 0, 1.0, 2.0, "numpy", 1.0, 0.5, case="gmm:8x8x8 on 1", bottleneck="memory")
    assert products.as_table([row]).endswith("by the analytical model memory\n\nFAIL")


@pytest.mark.parametrize(("seconds", "exit_code"), [(10.0, 0), (1e-9, 1)])
def test_tuning_passes_beside_metaschedule_where_it_is_sooner_and_faster(
    seconds: float, exit_code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside(FAKE_WORKER.replace("SECONDS", str(seconds)).replace("ERROR", "0.0"), tmp_path, monkeypatch)
    assert metaschedule.main(["--trials", "2", "--rounds", "2", "--python", sys.executable]) == exit_code
    table = capsys.readouterr().out
    assert ("never" in table) == bool(exit_code)
    assert "100.0 s" in table


@pytest.mark.parametrize(
    ("worker", "error"), [(FAKE_WORKER.replace("ERROR", "0.5"), "is off by 5.0e-01"), ("", "ended with 0")]
)
def test_a_wrong_program_or_one_that_is_gone_ends_the_comparison(
    worker: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(worker, tmp_path, monkeypatch)
    options = Namespace(trials=1, threads=1, seed=0, python=sys.executable)
    with pytest.raises(SystemExit, match=error), metaschedule.its_program("gmm:24x16x8", options, tmp_path):
        pass


def beside(worker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small product, and a process that plays MetaSchedule."""
    (tmp_path / "worker.py").write_text(worker)
    monkeypatch.setattr(metaschedule, "_WORKER", tmp_path / "worker.py")
    monkeypatch.setattr(metaschedule, "CASES", ("gmm:24x16x8",))
