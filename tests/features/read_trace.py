"""The primitives of one program the slow way: one trace, its names taken apart."""

from __future__ import annotations

import math
from typing import Any

from tilewright.schedule import Schedule, Stage, Step, Trace
from tilewright.te import Task


def read_trace(task: Task, trace: Trace) -> list[tuple[str, list[str], list[int]]]:
    """Kind, names and numbers of each step, from one schedule that is changed step by step."""
    schedule = Schedule(task)
    stages = {tensor.name: f"S{len(task.stages) - 1 - k}" for k, tensor in enumerate(task.stages)}
    stages |= {tensor.name: f"I{k}" for k, tensor in enumerate(task.inputs)}
    extents: dict[tuple[str, str], int] = {}
    read = []
    kinds = {"cache_read": "read", "cache_write": "write", "rfactor": "rf", "pack": "pack"}
    for step in trace.steps:
        for stage in schedule:
            for axis, loop in stage.loop_of_axis.items():
                extents.setdefault((stage.name, loop.name), int(axis.extent))
        read.append((step.name, read_names(schedule, stages, step), read_numbers(extents, step)))
        before = set(schedule.stages)
        schedule.apply(step)
        if step.name == "algorithm":
            made = set(schedule.stages) - before
            stages |= {new: stages[step.stage] + new.removeprefix(step.stage) for new in made}
            extents = {key: extent for key, extent in extents.items() if key[0] != step.stage}  # it sums up others now
            continue
        for new in set(schedule.stages) - before:
            name = f"{stages[step.stage]}.{kinds[step.name]}"
            same = sum(known == name or known.rstrip("0123456789") == name for known in stages.values())
            stages[new] = f"{name}{same or ''}"
    return read


def read_names(schedule: Schedule, stages: dict[str, str], step: Step) -> list[str]:
    names = [stages[step.stage]]
    given: list[Any] = step.arguments()
    if step.name == "compute_at":
        return [*names, stages[given[0]], canonical_loop(schedule[given[0]], given[1])]
    if step.name == "algorithm":
        return [*names, *given]
    if step.name in ("cache_read", "pack"):
        return [*names, *(stages[name] for name in given if isinstance(name, str))]
    return [*names, *(canonical_loop(schedule[step.stage], name) for name in given if isinstance(name, str))]


def canonical_loop(stage: Stage, name: str) -> str:
    """What the loop is called if the last axis is s0, the one before it s1, and those of a reduction r0, r1."""
    axes = {axis.name: f"s{k}" for k, axis in enumerate(reversed(stage.axes))}
    axes |= {axis.name: f"r{k}" for k, axis in enumerate(reversed(stage.reduce_axes))}
    parts = []
    for part in name.split("@"):
        axis = max((axis for axis in axes if part == axis or part.startswith(f"{axis}.")), key=len)
        parts.append(axes[axis] + part.removeprefix(axis))
    return "@".join(parts)


def read_numbers(extents: dict[tuple[str, str], int], step: Step) -> list[int]:
    """The numbers of the step; `extents` learns those of the loops that it makes."""
    given: list[Any] = step.arguments()
    if step.name == "split":
        loop, factors = given
        whole = rest = extents[step.stage, loop]
        for level in range(len(factors)):
            tile = min(math.prod(factors[level:]), rest)
            extents[step.stage, f"{loop}.{level}"] = -(-rest // tile)
            rest = tile
        extents[step.stage, f"{loop}.{len(factors)}"] = rest
        return [whole, *factors]
    if step.name == "fuse":
        if len(given) == 1:
            return []
        product = math.prod(extents[step.stage, name] for name in given)
        extents[step.stage, "@".join(given)] = product
        return [product]
    if step.name in ("parallel", "vectorize", "unroll"):
        return [extents[step.stage, given[0]]]
    return [value for value in given if isinstance(value, int)]
