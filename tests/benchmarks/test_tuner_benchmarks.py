"""The benchmarks of the tuner run from end to end on small workloads, and print what they found."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import ablation, networks, operators, sample_efficiency, scoring, tuned, tuning
from benchmarks.limited_space import limited_space
from benchmarks.operators import Row
from benchmarks.tuning import Case, Quoted
from tilewright import workloads
from tilewright.target import Target
from tilewright.te import Task


def test_tuning_times_the_program_and_what_it_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tuning, "CASES", (Case("gmm:16x16x16+relu", 1e9, (16, 16, 16), 0.0, Quoted(414.0, 3.63)),))
    assert tuning.main(["--trials", "2", "--threads", "1", "--rounds", "1", "--format", "json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["status"] == "pass"
    assert case["trials"] == 2
    assert case["tuning_s"] > 0
    assert case["metaschedule_quoted"] == {"tuning_s": 414.0, "latency_ms": 3.63}


def test_tuning_counts_the_product_alone() -> None:
    assert tuning.nominal_flop("gmm:16x16x16+relu") == 2 * 16**3


def test_scoring_counts_candidates(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(scoring, "WORKLOADS", ("gmm:32x32x32",))
    scoring.main(["--population", "8", "--learned", "16", "--rounds", "1", "--format", "json"])
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["per_second"] > 0
    assert case["num_learned"] == 16


def test_operators_keep_what_they_have_and_report_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def suite(batch: int) -> Sequence[tuple[str, Task]]:
        return [(w, workloads.parse(w)) for w in (f"sfm:{batch}x8x16", f"c2d:{batch}x5x5x4,8,3x3,s1,p1")]

    monkeypatch.setattr(workloads, "suite", suite)
    options = ["--batch", "1", "--records", str(tmp_path), "--threads", "1", "--format", "json"]
    operators.main([*options, "--trials", "2", "--rounds", "1"])
    first = json.loads(capsys.readouterr().out)["cases"]
    assert [case["workload"] for case in first] == ["sfm:1x8x16", "c2d:1x5x5x4,8,3x3,s1,p1"]
    assert all(case["ratio"] > 0 and not case["failure"] for case in first)
    operators.main([*options, "--report", "--case", "sfm"])
    assert json.loads(capsys.readouterr().out)["cases"] == first[:1]


def test_the_suite_is_judged_by_its_share_and_its_mean() -> None:
    rows = [Row("a", 2, 1, 0, 1.0, 1.0, "torch", 4.0, 4.0), Row("b", 2, 1, 0, 1.0, 1.0, "torch", 1.0, 1.0)]
    assert operators.geometric_mean(rows) == pytest.approx(2.0)
    assert operators.share_at_least_one(rows) == 1.0
    assert operators.as_table(rows).endswith("pass")
    failed = Row("c", 2, 1, 1, 0.0, failure="none of 1 candidates is valid")
    assert operators.geometric_mean([*rows, failed]) == pytest.approx(2.0)
    assert operators.share_at_least_one([*rows, failed]) == pytest.approx(2 / 3)
    assert operators.as_table([*rows, failed]).endswith("FAIL")


def test_sample_efficiency_compares_both_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["gmm:16x16x16", "--seeds", "1", "--random-trials", "3", "--trials", "2", "--threads", "1"]
    sample_efficiency.main([*arguments, "--rounds", "1", "--records", str(tmp_path), "--format", "json"])
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["ratio"] == pytest.approx(case["seeds"][0]["random_ms"] / case["seeds"][0]["evolutionary_ms"])
    assert len(list(tmp_path.iterdir())) == 2


def test_those_that_led_a_search_are_each_the_fastest_until_then(tmp_path: Path) -> None:
    result = tuned.tune_workload("gmm:16x16x16", tmp_path / "records.jsonl", trials=6, threads=1)
    leaders = sample_efficiency.leaders_of(result)
    latencies_s = [record.rank_s for record in result.records]
    expected = [n for n in range(1, 7) if latencies_s[n - 1] < min(latencies_s[: n - 1], default=math.inf)]
    assert list(leaders) == sorted({*expected, 6})
    assert leaders[6] == result.best.trace


def test_a_program_that_both_searches_found_is_as_fast_as_itself(tmp_path: Path) -> None:
    result = tuned.tune_workload("gmm:16x16x16", tmp_path / "records.jsonl", trials=6, threads=1)
    seed = sample_efficiency.compare(0, result, result, rounds=1)
    assert seed.ratio == 1.0
    assert seed.reached_after is not None


def test_a_case_may_be_a_task_of_a_network() -> None:
    first, second = tuned.task_of("bert_tiny/1"), tuned.task_of("bert_tiny/2")
    assert first.hash != second.hash
    assert tuned.task_of("gmm:16x16x16").hash == workloads.parse("gmm:16x16x16").hash


def test_ablation_has_a_curve_for_every_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--workload", "c2d:1x6x6x4,16,3x3,s1,p1", "--trials", "2", "--seeds", "1", "--threads", "1"]
    assert ablation.main([*arguments, "--records", str(tmp_path)]) == 0
    lines = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert lines[2:] == ["full", "no fine-tuning", "limited space", "no model"]


def test_ablation_draws_a_plot(tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    ablation.plot([ablation.Curve("full", (1.0, 2.0))], "gmm:16x16x16", path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_limited_space_packs_nothing_and_divides() -> None:
    task = workloads.parse("c2d:1x14x14x16,32,3x3,s1,p1+relu")
    sketches = limited_space(task, Target.parse("haswell"), threads=2)
    assert len(sketches) == 1
    assert not any("pack" in str(step) for step in sketches[0].steps)
    for knob in sketches[0].knobs:
        if knob.name.endswith((".y", ".x")):
            assert all(14 % row[-1] == 0 for row in knob.table)


@pytest.mark.parametrize(
    "main", [tuning.main, scoring.main, operators.main, networks.main, sample_efficiency.main, ablation.main]
)
def test_a_case_that_matches_nothing_is_wrong_usage(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(main)
    assert main(["--case", "no-such-case"]) == 2
    assert "matches" in capsys.readouterr().err
