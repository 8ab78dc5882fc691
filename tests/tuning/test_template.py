"""Tuning in the space of a template, alone or next to what is derived."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.space.templates.programs import blocked, product, scaled
from tests.tuning.fake_measurer import FakeMeasurer
from tilewright.errors import ScheduleError, UsageError
from tilewright.schedule import Trace
from tilewright.space import Knobs, Sketch, SpaceOptions
from tilewright.space.rules import DEFAULT_RULES, SkipStage
from tilewright.space.templates import registry, x86
from tilewright.target import Target
from tilewright.tuning.recorded import candidate_of, read_dataset
from tilewright.tuning.task_scheduler import Network, TaskScheduler, WeightedTask
from tilewright.tuning.tuner import Tuner, TuneResult

TARGET = Target.parse("llvm -mcpu=haswell")
OPTIONS = SpaceOptions(TARGET, 1)


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    yield
    registry._ENTRIES.clear()


def tuned(**options: object) -> TuneResult:
    given = {"trials": 24, "template": blocked, **options}
    return tw.tune(product(), target=TARGET, threads=1, measurer=FakeMeasurer(TARGET, 1), **given)  # type: ignore[arg-type]


def origins(traces: list[Trace], *spaces: list[Sketch]) -> list[int]:
    """How many of the traces are of each space."""
    return [sum(candidate_of(trace, space) is not None for trace in traces) for space in spaces]


@pytest.mark.parametrize("cost_model", ["default", "boosted-trees", "analytical"])
def test_every_trial_is_of_the_template(cost_model: str) -> None:
    result = tuned(cost_model=cost_model)
    assert origins([record.trace for record in result.records], blocked.sketches(product(), OPTIONS)) == [24]


def test_the_result_computes_the_task() -> None:
    task = product(8, 16, 8)
    result = tw.tune(task, trials=3, threads=1, template="tilewright.space.templates.x86:matmul")
    assert {record.status for record in result.records} == {"OK"}
    a, b = (np.random.default_rng(0).normal(size=t.shape).astype(np.float32) for t in task.inputs)
    np.testing.assert_allclose(result.compile()(a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_a_run_goes_on_from_its_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    first = tuned(trials=10, records=path)
    second = tuned(trials=20, records=path)
    assert [r.trace for r in second.records[:10]] == [r.trace for r in first.records]
    assert len({str(r.trace) for r in second.records}) == 20
    assert read_dataset(path).num_valid == 20, "of no space that is derived, they are known by their traces"
    tw.register_template("matmul", blocked)
    assert read_dataset(path).num_valid == 20


def test_a_template_of_few_programs_ends_when_all_are_measured() -> None:
    @tw.template
    def few(s: tw.Schedule, knobs: Knobs) -> None:
        i, _, _ = s["C"].loops
        s["C"].split(i, knobs.split("tile", i, 2, max_inner=4))

    assert len(tuned(template=few).records) == 4


def test_what_no_draft_finds_is_not_replaced_by_a_program_of_another_space() -> None:
    @tw.template
    def rarely_legal(s: tw.Schedule, knobs: Knobs) -> None:
        i, j, k = s["C"].loops
        i0, i1, i2 = s["C"].split(i, knobs.split("rows", i, 3))
        j0, j1, j2 = s["C"].split(j, knobs.split("columns", j, 3))
        s["C"].reorder(i0, j0, k, i1, j1, i2, j2)
        for loop in (i1, j1, i2):
            s["C"].unroll(loop)
        s["C"].vectorize(j2)

    tuner = Tuner(product(48, 4096), TARGET, 1, template=rarely_legal)
    found = tuner.round(8, None)
    assert found is not None
    assert origins(list(found.batch.traces), tuner.sketches) == [len(found.batch.traces)]
    assert all(sketch.name == "rarely_legal" for sketch in tuner.sketches)


def test_derived_and_written_sketches_are_searched_together() -> None:
    tw.register_template("matmul", x86.matmul)
    tuner = Tuner(product(), TARGET, 1)
    found = tuner.round(16, None)
    assert found is not None
    written = x86.matmul.sketches(product(), OPTIONS)
    of_template = origins(list(found.batch.traces), written)[0]
    assert 0 < of_template < 16


def test_a_template_that_fails_does_not_break_the_tuning_of_a_network() -> None:
    @tw.template
    def broken(s: tw.Schedule, knobs: Knobs) -> None:
        raise RuntimeError("of its own")

    tw.register_template("matmul", broken)
    network = Network("net", (WeightedTask(product(), 1), WeightedTask(product(16), 2)))
    scheduler = TaskScheduler([network], target=TARGET, threads=1, cost_model="analytical")
    measurer = FakeMeasurer(TARGET, 1)
    with pytest.warns(UserWarning, match="template broken is left out of task product"):
        result = scheduler.tune(8, measurer=measurer)
    assert result.num_trials == 8


def test_wrong_templates_are_said_to_be() -> None:
    with pytest.raises(UsageError, match="rules derive a space, and template= is a space already"):
        tuned(rules=[SkipStage(), *DEFAULT_RULES])
    with pytest.raises(UsageError, match="a template is a function of a schedule and its knobs, got 3"):
        tuned(template=3)
    with pytest.raises(UsageError, match="none.py is not there"):
        tuned(template="none.py:blocked")
    with pytest.raises(ScheduleError, match="no program of template matmul is legal for task scaled; .* no reduction"):
        tw.tune(scaled(8, 8), template=x86.matmul, threads=1)
