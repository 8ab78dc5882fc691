"""Programs that are known by their traces alone become candidates of sketches of their own."""

import numpy as np

from tilewright.features import create_encoder
from tilewright.schedule import Schedule, Trace
from tilewright.space import Population, SpaceOptions, derive, observed_candidates
from tilewright.target import Target
from tilewright.workloads import parse

OPTIONS = SpaceOptions(Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2)
TASK = parse("gmm:48x64x32")


def tiled(rows: int, columns: int) -> Trace:
    schedule = Schedule(TASK)
    stage = schedule[TASK.outputs[0].name]
    i, j, *_, k = stage.loops[-3:]
    i0, i1 = stage.split(i, rows)
    j0, j1 = stage.split(j, columns)
    stage.reorder(i0, j0, k, i1, j1)
    stage.vectorize(j1)
    return schedule.trace


def test_traces_that_differ_in_numbers_are_candidates_of_one_sketch_and_keep_their_traces() -> None:
    traces = [tiled(4, 16), tiled(6, 8), tiled(2, 32), tiled(4, 16)]
    found = observed_candidates(TASK, traces, OPTIONS)
    assert list(found) == list(dict.fromkeys(traces))
    assert len({candidate.sketch for candidate in found.values()}) == 1
    assert all(candidate.trace == trace for trace, candidate in found.items())


def test_candidates_of_a_derived_sketch_look_the_same_to_cost_models_when_only_their_traces_are_known() -> None:
    sketch = max(derive(TASK, OPTIONS), key=lambda each: each.cardinality)
    derived = sketch.sample(np.random.default_rng(0), 64)
    derived = derived[derived.legal(OPTIONS.target)].unique()
    assert len(derived) > 8
    traces = [derived.trace(number) for number in range(len(derived))]
    found = observed_candidates(TASK, traces, OPTIONS)
    observed = Population.of([found[trace] for trace in traces])
    encoder = create_encoder("statements")
    np.testing.assert_array_equal(encoder.encode(derived), encoder.encode(observed))


def test_a_trace_of_another_task_is_left_out() -> None:
    other = parse("c2d:1x8x8x16,16,3x3,s1,p1")
    foreign = derive(other, OPTIONS)[0].sample(np.random.default_rng(0), 1).trace(0)
    assert list(observed_candidates(TASK, [foreign, tiled(4, 16)], OPTIONS)) == [tiled(4, 16)]


def test_a_trace_without_numbers_is_a_candidate() -> None:
    plain = Trace(())
    (candidate,) = observed_candidates(TASK, [plain], OPTIONS).values()
    assert candidate.trace == plain
    assert len(Population.of([candidate])) == 1
