"""The benchmark of AutoTVM's ideas: what it runs, keeps and prints; but for one run a fake measures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import autotvm, autotvm_cases, autotvm_report, autotvm_runs
from benchmarks.autotvm_cases import BOTH, CASES, DERIVED, GEMM, TABLES, Case, Method, Table
from benchmarks.autotvm_outcomes import MEASURED, Outcome, OutcomeFile
from benchmarks.autotvm_report import demands_of, rows_of
from benchmarks.autotvm_runs import Laboratory
from benchmarks.sample_efficiency import Seed
from tests.tuning.fake_measurer import FakeMeasurer
from tilewright import workloads
from tilewright.errors import UsageError
from tilewright.measure import Measurer
from tilewright.measure.local import LocalMeasurer
from tilewright.search import RandomSearch
from tilewright.space import SpaceOptions, derive
from tilewright.space.templates import x86
from tilewright.target import Target
from tilewright.tuning import tuner
from tilewright.tuning.prior import Prior
from tilewright.tuning.tuner import TuneResult

SMALL = (
    Case("C1", "c2d:1x6x6x4,16,1x1,s1,p0", x86.conv2d),
    Case("C2", "c2d:1x5x5x4,16,1x1,s1,p0", x86.conv2d),
    Case("C7", "c2d:1x7x7x4,16,1x1,s1,p0", x86.conv2d),
)


class Searches:
    """In place of `tune`: the same with a fake measurer, remembering what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, task: object, **options: Any) -> TuneResult:
        self.asked.append(options)
        measurer = FakeMeasurer(Target.native(), options["threads"])
        return tuner.tune(task, **options | {"measurer": measurer})  # type: ignore[arg-type]


def compared_by_records(seed: int, reference: TuneResult, found: TuneResult, rounds: int) -> Seed:
    """In place of timing in turns: what the fake measured."""
    best_s = reference.best.rank_s
    reached = [n for n, record in enumerate(found.records, start=1) if record.rank_s <= best_s]
    return Seed(seed, 1e3 * best_s, 1e3 * found.best.rank_s, min(reached, default=None))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    made = Searches()
    monkeypatch.setattr(autotvm_runs, "tune", made)
    monkeypatch.setattr(autotvm_runs, "compare", compared_by_records)
    return made


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the benchmark with few trials, and gives its status and what it printed."""

    def call(*options: str) -> tuple[int, str]:
        counts = ["--trials", "3", "--random-trials", "6", "--random-seeds", "2", "--threads", "1"]
        places = ["--records", str(tmp_path / "new" / "records"), "--outcomes", str(tmp_path / "outcomes.jsonl")]
        status = autotvm.main([*counts, *places, *options])
        return status, capsys.readouterr().out

    return call


def laboratory_in(folder: Path, measurer: Measurer) -> Laboratory:
    return Laboratory(folder, OutcomeFile(folder / "outcomes.jsonl", "here"), 2, 3, 1, 1, 1, measurer)


def small_table(name: str, monkeypatch: pytest.MonkeyPatch, *methods: Method) -> None:
    table = TABLES[name]
    own = methods or table.methods
    monkeypatch.setitem(TABLES, name, Table(name, table.title, own, SMALL[2:]))
    monkeypatch.setattr(autotvm_runs, "HISTORY", SMALL[:2])


def test_cases_are_those_of_resnet_18_and_have_templates_that_are_legal() -> None:
    assert [case.name for case in CASES] == [*(f"C{number}" for number in range(1, 13)), "GEMM"]
    giga_flop = {case.name: workloads.parse(case.workload).flop / 1e9 for case in CASES}
    assert giga_flop["C2"] == pytest.approx(2 * 56 * 56 * 64 * 64 * 9 / 1e9, rel=0.01)
    assert giga_flop["C11"] == pytest.approx(2 * 7 * 7 * 256 * 512 / 1e9, rel=0.01)
    options = SpaceOptions(Target.parse("llvm -mcpu=haswell"), threads=2)
    for case in (CASES[0], CASES[-2], GEMM):
        assert case.template.sketches(workloads.parse(case.workload), options)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_the_methods_of_a_table_have_names_and_records_of_their_own(table: Table) -> None:
    assert len({method.name for method in table.methods}) == len(table.methods)
    assert len({method.key for method in table.methods}) == len(table.methods)


def test_one_search_has_one_record_file_whichever_table_asks(tmp_path: Path) -> None:
    laboratory = laboratory_in(tmp_path, FakeMeasurer(Target.native(), 1))
    trees = [TABLES["search"].methods[1], TABLES["learning"].methods[1], TABLES["transfer"].reference]
    assert len({laboratory.records_of(GEMM, method, 0) for method in trees}) == 1
    assert laboratory.records_of(GEMM, trees[0], 0) != laboratory.records_of(GEMM, trees[0], 1)


@pytest.mark.parametrize(
    ("text", "names"), [("C1", ["C1"]), ("C11", ["C11"]), ("gmm", ["GEMM"]), ("7x7x512", ["C12"]), ("none", [])]
)
def test_a_case_is_chosen_by_name_before_parts_of_names(text: str, names: list[str]) -> None:
    assert [case.name for case in autotvm.chosen(CASES, text)] == names


def test_all_searches_run_on_the_template_and_nothing_is_measured_twice(
    searches: Searches, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small_table("search", monkeypatch, *(m for m in TABLES["search"].methods if m.cost_model != "tree-gru"))
    status, out = run("--table", "search", "--seeds", "2", "--format", "json", "--plots", str(tmp_path / "plots"))
    found = json.loads(out)
    methods = [method.name for method in TABLES["search"].methods]
    assert [(case["method"], case["seed"]) for case in found["cases"]] == [(m, s) for m in methods for s in (0, 1)]
    assert {asked["template"] for asked in searches.asked} == {x86.conv2d}
    assert [len(case["gflops"]) for case in found["cases"]] == [6, 6] + [3] * (len(found["cases"]) - 2)
    assert all(case["gflops"] == sorted(case["gflops"]) for case in found["cases"]), "the best until then"
    assert status == (0 if found["demands"][0]["passed"] else 1)
    assert (tmp_path / "plots" / "autotvm_search.png").read_bytes().startswith(b"\x89PNG")
    assert len(searches.asked) == 2 * len(methods)
    assert json.loads(run("--table", "search", "--seeds", "2", "--format", "json")[1]) == found
    assert len(searches.asked) == 2 * len(methods), "all was kept"


def test_an_interrupted_run_goes_on(
    searches: Searches, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small_table("search", monkeypatch, *TABLES["search"].methods[:2])
    run("--table", "search", "--seeds", "1")
    (tmp_path / "outcomes.jsonl").unlink()
    run("--table", "search", "--seeds", "1")
    assert len(searches.asked) == 2, "records are enough to compare again"
    run("--table", "search", "--seeds", "1", "--trials", "5")
    assert [asked["trials"] for asked in searches.asked] == [6, 3, 5]
    _, out = run("--table", "search", "--seeds", "1", "--trials", "4", "--format", "json")
    assert [len(case["gflops"]) for case in json.loads(out)["cases"]] == [6, 4]
    assert len(searches.asked) == 3, "more trials than asked for are there"


def test_searches_share_one_random_search(
    searches: Searches, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_table("search", monkeypatch, *TABLES["search"].methods[:2])
    _, out = run("--table", "search", "--seeds", "3", "--random-seeds", "1", "--format", "json")
    assert sum(isinstance(asked["search"], RandomSearch) for asked in searches.asked) == 1
    found = [(case["method"], case["seed"]) for case in json.loads(out)["cases"]]
    assert found == [("random", 0), *(("annealing + trees", seed) for seed in range(3))]


def test_an_outcome_comes_back_from_its_file_and_is_of_its_processor(tmp_path: Path) -> None:
    file = OutcomeFile(tmp_path / "new" / "outcomes.jsonl", "znver4")
    made = Outcome("C6", "random", 1, (2.0, 2.0, 3.5, 3.5, 3.5, 4.25), 1.25, None)
    assert file.find("key") is None
    assert file.add("key", made) == made
    assert file.find("key") == made
    assert OutcomeFile(file.path, "haswell").find("key") is None
    file.add("key", replace(made, ratio=1.5))
    assert file.find("key") == replace(made, ratio=1.5), "the last one counts"


def test_what_was_measured_can_be_read() -> None:
    for line in MEASURED.read_text().splitlines():
        form = json.loads(line)
        assert OutcomeFile(MEASURED, form["processor"]).find(form["key"]) is not None


def test_only_what_was_kept_is_reported(
    searches: Searches, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_table("search", monkeypatch, *TABLES["search"].methods[:2])
    assert run("--table", "search", "--seeds", "2", "--report") == (1, "")
    run("--table", "search", "--seeds", "1")
    status, out = run("--table", "search", "--seeds", "2", "--report", "--format", "json")
    assert status == 1, "the second seed is missing"
    assert {case["seed"] for case in json.loads(out)["cases"]} == {0}
    assert len(searches.asked) == 2


def test_transfer_gives_the_history_to_the_methods_that_know_it(
    searches: Searches, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_table("transfer", monkeypatch)
    monkeypatch.setitem(TABLES, "transfer", replace(TABLES["transfer"], reference_trials=17))
    _, out = run("--table", "transfer", "--seeds", "1", "--trials", "9", "--format", "json")
    by_workload = [(asked["workload"], asked["prior"]) for asked in searches.asked]
    assert [workload for workload, _ in by_workload] == [SMALL[n].workload for n in (2, 0, 1, 2, 2)]
    priors = [prior for _, prior in by_workload]
    assert priors[:3] == [None, None, None]
    assert isinstance(priors[3], Prior)
    assert len(priors[3].dataset) == 2 * 17, "programs of templates are known as such"
    reached = {case["method"]: case["reached_after"] for case in json.loads(out)["cases"]}
    assert reached["no history"] <= 17, "it reaches its own best"
    assert [asked["trials"] for asked in searches.asked] == [17, 17, 17, 9, 9], "the reference has more"


def test_both_spaces_are_searched_as_one(
    searches: Searches, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_table("templates", monkeypatch)
    spaces: list[int] = []
    begin = tuner.Tuner._space

    def seen(self: tuner.Tuner, rules: Any) -> Any:
        found = begin(self, rules)
        spaces.append(len(found))
        return found

    monkeypatch.setattr(tuner.Tuner, "_space", seen)
    run("--table", "templates", "--seeds", "1")
    derived, template, both = spaces
    assert both == derived + template
    task = workloads.parse(SMALL[2].workload)
    assert len(derive(task, SpaceOptions(Target.native(), 1))) == derived
    assert [method.space for method in TABLES["templates"].methods] == [DERIVED, autotvm_cases.TEMPLATE, BOTH]


def test_a_search_that_cannot_run_is_told_and_left_out(
    searches: Searches,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small_table("search", monkeypatch, *TABLES["search"].methods[:2])

    def without_library(task: object, **options: Any) -> TuneResult:
        if type(options["search"]).__name__ == "SimulatedAnnealing":
            raise UsageError("annealing needs a library; install it")
        return searches(task, **options)

    monkeypatch.setattr(autotvm_runs, "tune", without_library)
    options = ["--random-trials", "6", "--threads", "1", "--seeds", "1", "--records", str(tmp_path)]
    options += ["--outcomes", str(tmp_path / "outcomes.jsonl")]
    assert autotvm.main(["--table", "search", *options]) == 1
    out, err = capsys.readouterr()
    assert "C7, seed 0, annealing + trees: not run: annealing needs a library" in err
    assert "annealing" not in out.partition("| reached after")[2]


def outcome(case: str, method: str, seed: int, reached_after: int | None, ratio: float = 1.0) -> Outcome:
    return Outcome(case, method, seed, (1.0 + seed, 4.0), ratio, reached_after)


def test_rows_are_medians_over_the_seeds() -> None:
    (row,) = rows_of([outcome("C1", "grid", seed, reached, 1.0 + seed) for seed, reached in enumerate((8, None, 20))])
    assert (row.num_seeds, row.gflops, row.ratio, row.reached_after) == (3, (2.0, 4.0), 2.0, 20)
    (row,) = rows_of([outcome("C1", "grid", seed, reached) for seed, reached in enumerate((8, None, None))])
    assert math.isinf(row.reached_after)


def test_the_search_table_is_judged_by_its_median_case() -> None:
    cases = [("C1", 20), ("C2", 100), ("C3", None)]
    rows = rows_of([outcome(case, "annealing + trees", 0, reached) for case, reached in cases])
    (demand,) = demands_of(TABLES["search"], rows)
    assert (demand.value, demand.passed) == (100, True)
    (demand,) = demands_of(TABLES["search"], rows[1:])
    assert not demand.passed
    assert demands_of(TABLES["search"], rows_of([outcome("C1", "random", 0, 4)])) == []


def test_transfer_is_judged_by_how_many_times_fewer_trials_convolutions_take() -> None:
    without, with_history, _ = (method.name for method in TABLES["transfer"].methods)
    cases = [("C7", 60, 20), ("C8", 40, 20), ("C9", 50, None), ("GEMM", 1, 100)]
    rows = rows_of(
        [outcome(case, method, 0, n) for case, a, b in cases for method, n in ((without, a), (with_history, b))]
    )
    (demand,) = demands_of(TABLES["transfer"], rows)
    assert (demand.value, demand.passed) == (2.0, True), "the median of 3, 2 and 0"
    assert demands_of(TABLES["learning"], rows) == []


def test_the_text_has_a_column_for_each_case() -> None:
    table = TABLES["search"]
    rows = rows_of([outcome("C1", "random", 0, 2), outcome("C2", "random", 0, 1), outcome("C1", "grid", 0, None, 0.5)])
    text = autotvm_report.as_text(table, rows)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert lines[0] == ["reached after", "C1", "C2", "median"]
    assert lines[2:4] == [["random", "2", "1", "1.5"], ["grid", "-", "", "-"]]
    assert ["grid", "0.50", "", "0.50"] in lines
    assert lines[-1] == ["C1", "grid", "4.0"], "after the last of two trials"


def test_programs_are_really_timed_in_turns(tmp_path: Path) -> None:
    case = Case("tiny", "gmm:16x16x16", x86.matmul)
    table = Table("search", "", (Method("random", "random"), Method("grid", "grid")), (case,))
    with LocalMeasurer(Target.native(), 1) as measurer:
        found, num_missing = autotvm.collect(table, [case], laboratory_in(tmp_path, measurer), num_seeds=1)
    assert num_missing == 0
    assert [each.method for each in found] == ["random", "grid"]
    assert all(each.ratio > 0 and each.gflops[-1] > 0 for each in found)


def test_logs_are_those_of_the_other_benchmark(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert autotvm.main(["--table", "logs"]) == 2
    assert "--logs" in capsys.readouterr().err
    assert autotvm.main(["--table", "logs", "--logs", str(tmp_path / "missing")]) == 2


def test_a_case_that_matches_nothing_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert autotvm.main(["--table", "transfer", "--case", "C3"]) == 2, "it is history there"
    assert "no case matches; they are C7" in capsys.readouterr().err
