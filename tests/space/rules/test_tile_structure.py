"""Tiles nested as a string says: any structure makes a space of right programs."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, workloads
from tilewright.errors import UsageError
from tilewright.schedule import Schedule
from tilewright.space import DEFAULT_RULES, Rule, Sketch, SpaceOptions, derive
from tilewright.space.rules import JoinTiles, MultiLevelTiling
from tilewright.space.rules.tile_structure import TileStructure, TilingRule
from tilewright.te import Task
from tilewright.testing.check import check_program

NATIVE = tw.Target.native()
STRUCTURES = ["SRS", "SRRS", "SSSRS", "SRSRS", "SSRSRSRS"]


def rules_with(structure: str) -> list[Rule]:
    """The rules, with those that tile given another structure."""
    return [type(rule)(structure) if isinstance(rule, TilingRule) else rule for rule in DEFAULT_RULES]


def product(rows: int, columns: int, length: int, *, fused: int = 0) -> Task:
    """One product, or the elementwise result of `fused` of them."""
    x = te.placeholder((rows, length), name="X")
    weights = [te.placeholder((length, columns), name=f"W{n}", constant=True) for n in range(max(1, fused))]
    parts = [times(x, w, f"P{n}") for n, w in enumerate(weights)]
    if not fused:
        return Task([x, *weights], parts[0])
    total = te.compute((rows, columns), lambda i, j: reduce(add, [te.tanh(part[i, j]) for part in parts]), "Y")
    return Task([x, *weights], total)


def times(x: te.Tensor, w: te.Tensor, name: str) -> te.Tensor:
    k = te.reduce_axis(w.shape[0], name="k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name)


TASKS = {
    "alone": product(13, 40, 24),
    "fused": product(30, 17, 12, fused=1),
    "two in a consumer": product(14, 33, 20, fused=2),
    "an axis of one": product(1, 64, 48, fused=1),
    "convolution": workloads.parse("c2d:1x9x7x6,20,3x3,s2,p1+relu"),
}


def schedules(structure: str, task: Task) -> list[tuple[Sketch, Schedule]]:
    """A legal candidate of each sketch."""
    found = []
    for sketch in derive(task, SpaceOptions(NATIVE, threads=2), rules_with(structure)):
        population = sketch.sample(np.random.default_rng(0), 200)
        found += [(sketch, candidate.trace.apply(task)) for candidate in population[population.legal(NATIVE)][:1]]
    return found


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_computes_what_numpy_computes(structure: str, task: Task) -> None:
    found = schedules(structure, task)
    assert any(knob.kind == "unroll" for sketch, _ in found for knob in sketch.knobs), "some of them are tiled"
    for _, schedule in found:
        check_program(task, schedule, np.random.default_rng(1), threads=2)


@pytest.mark.parametrize("structure", ["SSRSRS", *STRUCTURES])
def test_loops_are_nested_as_the_string_says(structure: str) -> None:
    task = product(64, 64, 64)
    sketches = derive(task, SpaceOptions(NATIVE, threads=2), [MultiLevelTiling(structure)])
    schedule = sketches[0].sample(np.random.default_rng(0), 1).trace(0).apply(task)
    first, *inner = schedule["P0"].leaves
    assert len(first.name.split("@")) == 2, "the spatial loops of the first level are one"
    assert "".join("R" if loop.is_reduce else "S" for loop in inner) == structure[1:].replace("S", "SS")


def test_as_many_levels_are_fused_as_there_are_around_the_reduction() -> None:
    assert list(TileStructure("SRS").fusion_levels) == [1]
    assert list(TileStructure("SSRSRS").fusion_levels) == [1, 2]
    assert list(TileStructure("SSSRS").fusion_levels) == [1, 2, 3]
    depths = set()
    for _, schedule in schedules("SSSRS", TASKS["fused"]):
        loop = schedule["P0"].attach_loop
        assert loop is not None
        depths.add(schedule["Y"].leaves.index(loop))
    assert len(depths) == 3


def test_tiles_of_another_structure_are_not_joined() -> None:
    rules = [JoinTiles("SRS") if rule.name == JoinTiles.name else rule for rule in DEFAULT_RULES]
    for sketch in derive(TASKS["two in a consumer"], SpaceOptions(NATIVE, threads=2), rules):
        schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(sketch.task)
        assert schedule["P0"].attach_loop is None or schedule["P1"].attach_loop is None


@pytest.mark.parametrize("structure", ["", "S", "R", "SS", "RS", "SR", "SSR", "RSRS", "ssrsrs", "S R S", "SSXRS"])
def test_what_is_no_structure_is_refused(structure: str) -> None:
    with pytest.raises(UsageError, match=f"begins and ends with S and has an R between.*got '{structure}'"):
        MultiLevelTiling(structure)
