"""Random schedules: any primitive, with any arguments, wherever they happen to be legal."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright.errors import ScheduleError
from tilewright.schedule import UNROLL, VECTORIZE, Loop, Schedule, Stage, Trace, enclosing_loops, places
from tilewright.te import Task, collect_reads

_FACTORS = (1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 13, 16, 16, 17, 32, 64, 200)
_MAX_UNROLL = 32
_PRAGMA_STEPS = (0, 4, 16, 64)


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a random schedule may become: points it runs over, and statements it unrolls to."""

    max_points: int = 1_000_000
    max_statements: int = 200


def random_schedule(task: Task, rng: np.random.Generator, num_steps: int, limits: Limits | None = None) -> Schedule:
    """A legal schedule of up to `num_steps` random steps. An illegal draw is simply another draw."""
    bounds = limits or Limits()
    schedule = Schedule(task)
    for _ in range(4 * num_steps):
        if len(schedule.steps) >= num_steps:
            break
        draw = _PRIMITIVES[int(rng.integers(len(_PRIMITIVES)))]
        before = schedule.trace
        with contextlib.suppress(ScheduleError):
            draw(schedule, rng)
        if not _is_within(schedule, bounds):
            schedule = before.apply(task)
    return schedule


def check_trace(schedule: Schedule) -> None:
    """Raise AssertionError unless the schedule's trace survives JSON and replays to the same schedule."""
    trace = schedule.trace
    text = json.dumps(trace.to_json())
    read = Trace.from_json(text)
    assert str(read) == str(trace), f"the trace changes in JSON:\n{trace}\n{read}"
    replayed = read.apply(schedule.task)
    assert str(replayed) == str(schedule), f"the trace replays to another schedule:\n{schedule}\n{replayed}"


def _is_within(schedule: Schedule, limits: Limits) -> bool:
    points = statements = 0
    for stage in schedule.active_stages:
        path = [*enclosing_loops(stage), *stage.leaves]
        extents = {loop: int(schedule.extents[loop]) for loop in path}
        points += math.prod(extents.values())
        unrolled = math.prod(extents[loop] for loop in path if loop.annotation == UNROLL)
        pragma = max((loop.stage.pragmas.get(loop, 0) for loop in path), default=0)
        vectors = math.prod(max(1, extents[loop] // 16) for loop in path if loop.annotation == VECTORIZE)
        statements += max(unrolled, pragma) * vectors
    return points <= limits.max_points and statements <= limits.max_statements


# --- one random step a primitive -------------------------------------------------------------------------------------


def _pick_stage(s: Schedule, rng: np.random.Generator) -> Stage:
    stages = s.active_stages
    return stages[int(rng.integers(len(stages)))]


def _pick_loop(stage: Stage, rng: np.random.Generator) -> Loop:
    if not stage.leaves:
        raise ScheduleError(f"{stage.name} has no loops")
    return stage.leaves[int(rng.integers(len(stage.leaves)))]


def _split(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    count = int(rng.choice([1, 1, 1, 2, 3]))
    stage.split(_pick_loop(stage, rng), [int(f) for f in rng.choice(_FACTORS[: -1 if count > 1 else None], count)])


def _fuse(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    at = stage.leaves.index(_pick_loop(stage, rng))
    stage.fuse(*stage.leaves[at : at + int(rng.integers(2, 4))])


def _reorder(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    loops = list(stage.leaves)
    order = rng.permutation(len(loops))[: int(rng.integers(1, len(loops) + 1))] if loops else ()
    stage.reorder(*(loops[n] for n in order))


def _tile(s: Schedule, rng: np.random.Generator) -> None:
    """Split two loops and move the inner parts inside: the shape of most good schedules, and rare by chance."""
    stage = _pick_stage(s, rng)
    inner = []
    for loop in [leaf for leaf in stage.leaves if rng.random() < 0.6]:
        inner.append(stage.split(loop, int(rng.choice(_FACTORS)))[1])
    stage.reorder(*[leaf for leaf in stage.leaves if leaf not in inner], *inner)


def _parallel(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    outer = rng.random() < 0.7 and stage.leaves
    stage.parallel(stage.leaves[0] if outer else _pick_loop(stage, rng))


def _vectorize(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    inner = rng.random() < 0.6 and stage.leaves
    stage.vectorize(stage.leaves[-1] if inner else _pick_loop(stage, rng))


def _unroll(s: Schedule, rng: np.random.Generator) -> None:
    loop = _pick_loop(_pick_stage(s, rng), rng)
    if int(s.extents[loop]) <= _MAX_UNROLL:
        loop.stage.unroll(loop)


def _pragma(s: Schedule, rng: np.random.Generator) -> None:
    loop = _pick_loop(_pick_stage(s, rng), rng)
    loop.stage.pragma(loop, auto_unroll_max_step=int(rng.choice(_PRAGMA_STEPS)))


def _compute_at(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    hosts = [host for host in s.active_stages if host is not stage]
    consumers = s.consumers(stage)
    if consumers and rng.random() < 0.8:
        hosts = consumers
    if hosts:
        host = hosts[int(rng.integers(len(hosts)))]
        stage.compute_at(host, _pick_loop(host, rng))


def _compute_root(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    if stage.attach_loop is not None or rng.random() < 0.1:
        stage.compute_root()


def _compute_inline(s: Schedule, rng: np.random.Generator) -> None:
    _pick_stage(s, rng).compute_inline()


def _source_of(stage: Stage, rng: np.random.Generator) -> Stage:
    reads = collect_reads(stage.body)
    if not reads:
        raise ScheduleError(f"{stage.name} reads nothing")
    return stage.schedule[reads[int(rng.integers(len(reads)))].tensor]


def _attach(s: Schedule, stage: Stage, host: Stage, rng: np.random.Generator) -> None:
    if rng.random() < 0.7:
        stage.compute_at(host, _pick_loop(host, rng))


def _cache_read(s: Schedule, rng: np.random.Generator) -> None:
    reader = _pick_stage(s, rng)
    source = _source_of(reader, rng)
    copy = source.cache_read(reader) if rng.random() < 0.7 else source.cache_read()
    _attach(s, copy, reader, rng)


def _cache_write(s: Schedule, rng: np.random.Generator) -> None:
    stage = _pick_stage(s, rng)
    _attach(s, stage.cache_write(), stage, rng)


def _pack(s: Schedule, rng: np.random.Generator) -> None:
    reader = _pick_stage(s, rng)
    source = _source_of(reader, rng)
    num_places = len(places(reader, source.tensor))
    packed = source.pack(reader, int(rng.integers(num_places)) if num_places > 1 else None)
    if not source.tensor.is_constant or rng.random() < 0.2:
        _attach(s, packed, reader, rng)


def _rfactor(s: Schedule, rng: np.random.Generator) -> None:
    reduced = [stage for stage in s.active_stages if stage.reduction is not None]
    if not reduced:
        return
    stage = reduced[int(rng.integers(len(reduced)))]
    loops = [loop for loop in stage.leaves if loop.is_reduce]
    loop = loops[int(rng.integers(len(loops)))]
    if rng.random() < 0.5:
        loop = stage.split(loop, int(rng.choice(_FACTORS)))[int(rng.integers(2))]
    partial = stage.rfactor(loop)
    _attach(s, partial, stage, rng)


Primitive = Callable[[Schedule, np.random.Generator], None]

_WEIGHTS: tuple[tuple[Primitive, int], ...] = (
    (_split, 5), (_tile, 3), (_fuse, 3), (_reorder, 4), (_parallel, 3), (_vectorize, 5), (_unroll, 3), (_pragma, 1),
    (_compute_at, 6), (_compute_root, 1), (_compute_inline, 1), (_cache_read, 2), (_cache_write, 2), (_pack, 2),
    (_rfactor, 2),
)  # fmt: skip
_PRIMITIVES = [primitive for primitive, weight in _WEIGHTS for _ in range(weight)]
