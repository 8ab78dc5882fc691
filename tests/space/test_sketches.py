"""Sketches: the two worked examples, user rules, and that every candidate is a legal program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, workloads
from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeInlineStep
from tilewright.space import DEFAULT_RULES, Rule, Sketch, SketchState, SpaceOptions, derive
from tilewright.te import Task, assert_matches, evaluate, random_inputs, reduction_size

TARGET = tw.Target.parse("haswell")
OPTIONS = SpaceOptions(TARGET, threads=2)


def matmul_relu(n: int = 512) -> Task:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis(n, name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, n), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    return Task([a, b], [d], name="matmul_relu")


def relu_pad_matmul() -> Task:
    a, d = te.placeholder((8, 400), name="A"), te.placeholder((512, 4), name="D")
    b = te.compute((8, 400), lambda i, x: te.maximum(a[i, x], 0.0), name="B")
    c = te.compute((8, 512), lambda i, k: te.select(k < 400, b[i, k], 0.0), name="C")
    r = te.reduce_axis(512, name="k")
    e = te.compute((8, 4), lambda i, j: te.sum(c[i, r] * d[r, j], axis=r), name="E")
    return Task([a, d], [e], name="relu_pad_matmul")


def squared(n: int, is_turned: bool) -> Task:
    """A matrix times itself, as it is or turned."""
    x, k = te.placeholder((n, n), name="X"), te.reduce_axis(n, name="k")
    c = te.compute((n, n), lambda i, j: te.sum(x[i, k] * (x[j, k] if is_turned else x[k, j]), axis=k), name="C")
    return Task([x], [c], name="squared")


def swiglu(rows: int, width: int, length: int) -> Task:
    x = te.placeholder((rows, length), name="X")
    v, w = (te.placeholder((length, width), name=name, constant=True) for name in "VW")
    k, q = te.reduce_axis(length, name="k"), te.reduce_axis(length, name="q")
    a = te.compute((rows, width), lambda i, j: te.sum(x[i, k] * v[k, j], axis=k), name="A")
    b = te.compute((rows, width), lambda i, j: te.sum(x[i, q] * w[q, j], axis=q), name="B")
    y = te.compute((rows, width), lambda i, j: a[i, j] * te.sigmoid(a[i, j]) * b[i, j], name="Y")
    return Task([x, v, w], [y], name="swiglu")


def one_head(*extents: int) -> Task:
    """A product of batches of which there is one in a dimension between others."""
    *batch, n, m, length = extents
    a, b = te.placeholder((*batch, n, length), name="A"), te.placeholder((*batch, length, m), name="B")
    k = te.reduce_axis(length, name="k")
    c = te.compute((*batch, n, m), lambda *i: te.sum(a[(*i[:-1], k)] * b[(*i[:-2], k, i[-1])], axis=k), name="C")
    return Task([a, b], [c], name="one_head")


def total(*shape: int) -> Task:
    x = te.placeholder(shape, name="X")
    axes = [te.reduce_axis(extent, name=f"r{d}") for d, extent in enumerate(shape)]
    return Task([x], [te.compute((), lambda: te.sum(x[tuple(axes)], axis=axes), name="S")])


def structure(sketch: Sketch) -> list[str]:
    """The loop nest of some candidate, without extents and annotations."""
    schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(sketch.task)
    lines = []
    for line in str(schedule).splitlines():
        words = line.split(" in range(")[0].split()
        is_loop = words[0] in ("for", "parallel", "vectorize", "unroll")
        lines.append(words[1] if is_loop else line.strip())
    return lines


def test_matmul_relu_derives_the_six_level_tiling_fused_into_the_consumer() -> None:
    nests = [structure(sketch) for sketch in derive(matmul_relu(), OPTIONS)]
    seed_example = [
        "i.0@j.0", "i.1", "j.1",
        "k.0", "i.0", "j.0", "k.1", "i.1", "j.1", "C[i, j] += A[i, k] * B[k, j]",
        "i.2", "j.2", "D[i, j] = max(C[i, j], 0.0)",
    ]  # fmt: skip
    assert seed_example in nests


def test_relu_pad_matmul_derives_a_cache_stage_and_a_factored_reduction() -> None:
    nests = [structure(sketch) for sketch in derive(relu_pad_matmul(), OPTIONS)]
    pad = ["i", "k", "C[i, k] = select(k < 400, max(A[i, k], 0.0), 0.0)"]
    cached = [
        "i.0@j.0", "i.1", "j.1",
        "k.0", "i.0", "j.0", "k.1", "i.1", "j.1", "E.cache[i, j] += C[i, k] * D[k, j]",
        "i.2", "j.2", "E[i, j] = E.cache[i, j]",
    ]  # fmt: skip
    assert pad + cached in nests
    factored = [nest for nest in nests if nest[:3] == pad and any(line.startswith("E.rf[") for line in nest)]
    assert factored, "C for all of the tensor, then partial results E.rf, then E"
    assert factored[0][-1].startswith("E[i, j] += E.rf[")


def test_a_user_rule_comes_first_and_may_end_the_search() -> None:
    class InlineRelu(Rule):
        name = "inline_relu"
        is_exclusive = True

        def matches(self, state: SketchState, stage: Stage) -> bool:
            return stage.name == "C"

        def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
            return [state.add(ComputeInlineStep("C"))]

    sketches = derive(relu_pad_matmul(), OPTIONS, rules=[InlineRelu(), *DEFAULT_RULES])
    assert sketches
    assert all('s["C"].compute_inline()' in "\n".join(map(str, sketch.steps)) for sketch in sketches)


@pytest.mark.parametrize("make", [matmul_relu, relu_pad_matmul])
def test_a_population_is_the_schedules_of_its_rows(make: Callable[[], Task]) -> None:
    rng = np.random.default_rng(3)
    for sketch in derive(make(), OPTIONS):
        population = sketch.sample(rng, 12)
        for number in range(12):
            one = population.trace(number).apply(sketch.task)
            expected = {(loop.stage.name, loop.name): extent for loop, extent in one.extents.items()}
            found = {
                (loop.stage.name, loop.name): int(np.broadcast_to(extent, (12,))[number])
                for loop, extent in population.schedule.extents.items()
            }
            assert found == expected


def test_a_trace_leads_back_to_its_row() -> None:
    rng = np.random.default_rng(5)
    for sketch in derive(matmul_relu(), OPTIONS):
        for candidate in sketch.sample(rng, 20):
            found = sketch.candidate_of(candidate.trace)
            assert found is not None
            assert found.trace == candidate.trace


def test_legal_candidates_compute_what_numpy_computes() -> None:
    rng = np.random.default_rng(11)
    for task in (matmul_relu(60), relu_pad_matmul()):
        arrays = random_inputs(task, rng)
        expected = evaluate(task, *arrays)[0]
        for sketch in derive(task, SpaceOptions(tw.Target.native(), threads=2)):
            population = sketch.sample(rng, 40)
            legal = population[population.legal(tw.Target.native())]
            assert len(legal)
            for candidate in legal[:4]:
                kernel = tw.build(candidate.trace.apply(task), threads=2)
                assert_matches(kernel(*arrays), expected, "float32", reduction_size(task))


def knobs_of(workload: str) -> dict[str, list[int]]:
    """The innermost sizes that each knob of the first sketch allows."""
    sketch = derive(workloads.parse(workload), OPTIONS)[0]
    return {knob.name.split(".")[-1]: sorted({int(row[-1]) for row in knob.table}) for knob in sketch.knobs}


def test_rows_of_the_register_tile_run_along_the_axis_that_reuses_the_weights() -> None:
    grouped = knobs_of("grp:1x14x14x256,256,3x3,s1,p1,g4")
    assert grouped["x"][-1] == 14
    assert grouped["g"][-1] == 4  # its four groups, of which none shares a weight with another


@pytest.mark.parametrize("workload", ["tbg:1x12x3x16", "t2d:1x4x4x8,16,4x4,s2,p1"])
def test_operands_behind_a_transpose_or_a_fold_are_packed(workload: str) -> None:
    task = workloads.parse(workload)
    rng = np.random.default_rng(2)
    arrays = random_inputs(task, rng)
    expected = evaluate(task, *arrays)[0]
    target = tw.Target.native()
    packed = [s for s in derive(task, SpaceOptions(target, threads=2)) if any(step.name == "pack" for step in s.steps)]
    assert packed
    for sketch in packed:
        population = sketch.sample(rng, 40)
        for candidate in population[population.legal(target)][:3]:
            kernel = tw.build(candidate.trace.apply(task), threads=2)
            assert_matches(kernel(*arrays), expected, "float32", reduction_size(task))


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_matrix_times_itself_is_packed_where_the_lanes_run_along_it(is_turned: bool) -> None:
    packs = {str(step) for s in derive(squared(64, is_turned), OPTIONS) for step in s.steps if step.name == "pack"}
    assert packs == {f's["X"].pack("{reader}", 1)' for reader in ("C", "C.cache")}


def test_a_second_product_is_computed_in_the_tiles_of_the_first() -> None:
    task = swiglu(64, 256, 128)
    sketches = derive(task, OPTIONS)
    assert len(sketches) == 2
    for sketch in sketches:
        schedule = sketch.sample(np.random.default_rng(1), 1).trace(0).apply(task)
        first, second = schedule["A"], schedule["B"]
        assert first.attach_loop in schedule["Y"].leaves
        assert first.attach_loop is second.attach_loop
        spatial = [[loop.extent for loop in s.leaves if not loop.is_reduce] for s in (first, second)]
        assert spatial[0] == spatial[1]


@pytest.mark.parametrize("batch", [(4, 1), (1, 4), (4, 1, 3, 1), (1,)])
def test_a_dimension_of_one_takes_no_sketch_away(batch: tuple[int, ...]) -> None:
    longer = tuple(extent for extent in batch if extent > 1)
    found = derive(one_head(*batch, 24, 32, 16), OPTIONS)
    assert len(found) == len(derive(one_head(*longer, 24, 32, 16), OPTIONS))
    assert [len(s.knobs) for s in found] == [len(s.knobs) for s in derive(one_head(*longer, 24, 32, 16), OPTIONS)]


@pytest.mark.parametrize("shape", [(4096, 1), (1, 4096), (1, 4096, 1)])
def test_a_dimension_of_one_takes_no_partial_results_away(shape: tuple[int, ...]) -> None:
    found = derive(total(*shape), OPTIONS)
    assert [len(s.knobs) for s in found] == [len(s.knobs) for s in derive(total(4096), OPTIONS)]
    assert any(step.name == "rfactor" for step in found[0].steps)
