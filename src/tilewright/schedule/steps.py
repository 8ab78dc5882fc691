"""The schedule primitives as small frozen steps: each applies itself, writes and reads JSON, and prints as Python."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from tilewright.errors import ScheduleError
from tilewright.schedule import rewrite
from tilewright.schedule.loop import DONE, PARALLEL, UNROLL, VECTORIZE, Extent, Fuse, Loop, Split
from tilewright.schedule.stage import Stage
from tilewright.te import Var

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule

Made: TypeAlias = "tuple[Loop, ...] | Loop | Stage | None"
# The value of a loop is a nested expression of the splits and fusions of its stage.
MAX_RELATIONS = 100
MAX_NAME_LENGTH = 1000


class _Hashed:
    """Keeps the hash of a step: steps are looked up far more often than they are made."""

    __slots__ = ("_hash",)
    _hash: int


@dataclass(frozen=True, slots=True, eq=False)
class Step(_Hashed, ABC):
    """One primitive applied to one stage."""

    name: ClassVar[str] = ""
    stage: str

    @abstractmethod
    def apply(self, schedule: Schedule) -> Made:
        """Change the schedule; an illegal step raises ScheduleError."""

    def arguments(self) -> list[Any]:
        """The step's decisions after the stage, as plain values; a population's are arrays."""
        return [_plain(getattr(self, f.name)) for f in fields(self) if f.name != "stage"]

    def candidate(self, row: int) -> Step:
        """The step of one candidate of a population."""
        chosen = {f.name: _at_row(getattr(self, f.name), row) for f in fields(self)}
        return replace(self, **chosen)

    def to_json(self) -> dict[str, Any]:
        arguments = self.arguments()
        if any(isinstance(a, np.ndarray) for argument in arguments for a in _flat(argument)):
            raise ScheduleError(f"{self} belongs to a population; write one candidate of it, trace.candidate(row)")
        return {"step": self.name, "stage": self.stage, "arguments": arguments}

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and str(self) == str(other))

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(str(self)))
            return self._hash

    def __str__(self) -> str:
        return f"s[{_as_text(self.stage)}].{self.name}({', '.join(map(_quoted, self.arguments()))})"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return int(value) if isinstance(value, np.integer) else value


def _flat(value: Any) -> list[Any]:
    return [v for item in value for v in _flat(item)] if isinstance(value, list) else [value]


def _at_row(value: Any, row: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_at_row(v, row) for v in value)
    return int(value[row]) if isinstance(value, np.ndarray) else value


def _quoted(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()})"
    if isinstance(value, list):
        return f"[{', '.join(map(_quoted, value))}]"
    return _as_text(value) if isinstance(value, str) else repr(value)


def _as_text(name: str) -> str:
    """The name as it is written in Python, whatever is in it."""
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _leaf(schedule: Schedule, stage: str, loop: str) -> tuple[Stage, Loop]:
    found = _computed(schedule, stage)
    return found, found.find_loop(loop)


def _computed(schedule: Schedule, name: str) -> Stage:
    stage = schedule[name]
    if stage.is_placeholder:
        raise ScheduleError(f"{name} is an input: it has no loops; make a copy of it with cache_read")
    if stage.is_inlined:
        raise ScheduleError(f"{name} is inlined: it has no loops of its own")
    return stage


def _restructure(schedule: Schedule, stage: Stage, *loops: Loop) -> None:
    """Check that these loops may be split, fused or moved."""
    if stage.packed_by:
        raise ScheduleError(
            f"the layout of {', '.join(stage.packed_by)} follows the loops of {stage.name}; pack after tiling"
        )
    for loop in loops:
        attached = schedule.attached_at(loop)
        if attached:
            name = attached[0].name
            raise ScheduleError(f"stage {name} is attached at loop {loop.name}; change the loop before that")
        if loop in stage.annotations:
            raise ScheduleError(
                f"loop {loop.name} is {DONE[loop.annotation]} already; change the loop before annotating it"
            )


def _new_loop(stage: Stage, name: str, is_reduce: bool) -> Loop:
    if len(name) > MAX_NAME_LENGTH:
        raise ScheduleError(
            f"the name of a loop would have {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed"
        )
    return Loop(name, Var("int64", name), is_reduce, stage)


@dataclass(frozen=True, slots=True, eq=False)
class SplitStep(Step):
    name: ClassVar[str] = "split"
    loop: str
    factors: tuple[Extent, ...]

    def apply(self, schedule: Schedule) -> tuple[Loop, ...]:
        stage, loop = _leaf(schedule, self.stage, self.loop)
        _restructure(schedule, stage, loop)
        factors = [_factor(f, self.loop) for f in self.factors]
        _check_population(schedule, factors)
        _check_relations(stage, len(factors))
        if not factors:
            raise ScheduleError(f"split of {self.loop} needs at least one factor, the extent of an inner loop")
        made: list[Loop] = []
        relations: list[Split] = []
        rest = loop
        for level in range(len(factors)):
            tile: Extent = 1
            for f in factors[level:]:
                tile = tile * f
            outer = _new_loop(stage, f"{loop.name}.{level}", loop.is_reduce)
            inner = _new_loop(stage, f"{loop.name}.{level + 1}", loop.is_reduce)
            relations.append(Split(rest, tile, outer, inner))
            made.append(outer)
            rest = inner
        made.append(rest)
        at = stage.leaves.index(loop)
        stage.leaves = (*stage.leaves[:at], *made, *stage.leaves[at + 1 :])
        stage.relations = (*stage.relations, *relations)
        return tuple(made)

    def __str__(self) -> str:
        factors = self.arguments()[1]
        one_or_all = factors[0] if len(factors) == 1 else factors
        return f"s[{_as_text(self.stage)}].split({_quoted(self.loop)}, {_quoted(one_or_all)})"


def _check_relations(stage: Stage, num_new: int) -> None:
    if len(stage.relations) + num_new > MAX_RELATIONS:
        raise ScheduleError(
            f"the loops of {stage.name} would be split and fused {len(stage.relations) + num_new} times; at most "
            f"{MAX_RELATIONS} times are allowed"
        )


def _check_population(schedule: Schedule, factors: list[Extent]) -> None:
    """All arrays of a schedule have one entry for each candidate of the same population."""
    sizes = {len(f) for f in factors if isinstance(f, np.ndarray)}
    if not sizes:
        return
    for stage in schedule:
        known = [relation.factor for relation in stage.relations if isinstance(relation, Split)]
        known += [axis.extent for axis in (*stage.axes, *stage.reduce_axes)]
        sizes |= {len(extent) for extent in known if isinstance(extent, np.ndarray)}
    if len(sizes) > 1:
        raise ScheduleError(f"arrays of {' and '.join(map(str, sorted(sizes)))} candidates in one schedule")


def _factor(value: Any, loop: str) -> Extent:
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or not np.issubdtype(value.dtype, np.integer) or (value < 1).any():
            raise ScheduleError(
                f"split factors of {loop} must be whole numbers of at least 1, one for each candidate of a population"
            )
        return value.astype(np.int64)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ScheduleError(f"a split factor of {loop} is {value!r}; it must be a whole number of at least 1")
    return int(value)


@dataclass(frozen=True, slots=True, eq=False)
class FuseStep(Step):
    name: ClassVar[str] = "fuse"
    loops: tuple[str, ...]

    def apply(self, schedule: Schedule) -> Loop:
        stage = _computed(schedule, self.stage)
        loops = [stage.find_loop(name) for name in self.loops]
        if not loops:
            raise ScheduleError("fuse needs at least one loop")
        _check_relations(stage, len(loops) - 1)
        _restructure(schedule, stage, *loops)
        at = stage.leaves.index(loops[0])
        if tuple(loops) != stage.leaves[at : at + len(loops)]:
            raise ScheduleError(f"fuse of {', '.join(self.loops)}: the loops must be neighbours in this order")
        if len({loop.is_reduce for loop in loops}) > 1:
            raise ScheduleError(f"fuse of {', '.join(self.loops)}: a spatial loop and a reduction loop do not fuse")
        fused = loops[0]
        for loop in loops[1:]:
            both = _new_loop(stage, f"{fused.name}@{loop.name}", loop.is_reduce)
            stage.relations = (*stage.relations, Fuse(fused, loop, both))
            fused = both
        stage.leaves = (*stage.leaves[:at], fused, *stage.leaves[at + len(loops) :])
        return fused

    def arguments(self) -> list[Any]:
        return list(self.loops)


@dataclass(frozen=True, slots=True, eq=False)
class ReorderStep(Step):
    name: ClassVar[str] = "reorder"
    loops: tuple[str, ...]

    def apply(self, schedule: Schedule) -> None:
        stage = _computed(schedule, self.stage)
        loops = [stage.find_loop(name) for name in self.loops]
        if len(set(loops)) != len(loops):
            raise ScheduleError(f"reorder names a loop twice: {', '.join(self.loops)}")
        if stage.packed_by:
            _restructure(schedule, stage)
        order = iter(loops)
        stage.leaves = tuple(next(order) if leaf in loops else leaf for leaf in stage.leaves)

    def arguments(self) -> list[Any]:
        return list(self.loops)


def _annotate(schedule: Schedule, stage_name: str, loop_name: str, annotation: str) -> Loop:
    stage, loop = _leaf(schedule, stage_name, loop_name)
    if loop in stage.annotations:
        raise ScheduleError(f"loop {loop.name} is {DONE[loop.annotation]} already")
    stage.annotations[loop] = annotation
    return loop


@dataclass(frozen=True, slots=True, eq=False)
class ParallelStep(Step):
    name: ClassVar[str] = "parallel"
    loop: str

    def apply(self, schedule: Schedule) -> None:
        loop = _annotate(schedule, self.stage, self.loop, PARALLEL)
        if loop.is_reduce:
            raise ScheduleError(f"loop {loop.name} is a reduction: threads would race for the sum; use rfactor first")


@dataclass(frozen=True, slots=True, eq=False)
class VectorizeStep(Step):
    name: ClassVar[str] = "vectorize"
    loop: str

    def apply(self, schedule: Schedule) -> None:
        _annotate(schedule, self.stage, self.loop, VECTORIZE)


@dataclass(frozen=True, slots=True, eq=False)
class UnrollStep(Step):
    name: ClassVar[str] = "unroll"
    loop: str

    def apply(self, schedule: Schedule) -> None:
        _annotate(schedule, self.stage, self.loop, UNROLL)


@dataclass(frozen=True, slots=True, eq=False)
class PragmaStep(Step):
    name: ClassVar[str] = "pragma"
    loop: str
    auto_unroll_max_step: int

    def apply(self, schedule: Schedule) -> None:
        stage, loop = _leaf(schedule, self.stage, self.loop)
        if not _are_limits(self.auto_unroll_max_step):
            raise ScheduleError(
                f"auto_unroll_max_step is {self.auto_unroll_max_step!r}; it must be a whole number of at least 0"
            )
        stage.pragmas[loop] = self.auto_unroll_max_step

    def __str__(self) -> str:
        limit = _quoted(self.auto_unroll_max_step)
        return f"s[{_as_text(self.stage)}].pragma({_quoted(self.loop)}, auto_unroll_max_step={limit})"


def _are_limits(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return np.issubdtype(value.dtype, np.integer) and bool((value >= 0).all())
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 0


@dataclass(frozen=True, slots=True, eq=False)
class ComputeAtStep(Step):
    name: ClassVar[str] = "compute_at"
    consumer: str
    loop: str

    def apply(self, schedule: Schedule) -> None:
        stage = _computed(schedule, self.stage)
        if stage.is_output:
            raise ScheduleError(f"{stage.name} is an output: all of it is needed; use cache_write and attach the cache")
        if stage.packed_by:
            _restructure(schedule, stage)
        host, loop = _leaf(schedule, self.consumer, self.loop)
        _check_no_cycle(stage, host)
        stage.attach_loop = loop


def _check_no_cycle(stage: Stage, host: Stage) -> None:
    around: Stage | None = host
    while around is not None:
        if around is stage:
            raise ScheduleError(f"{stage.name} cannot be computed inside {host.name}, which is computed inside it")
        around = around.attach_loop.stage if around.attach_loop is not None else None


@dataclass(frozen=True, slots=True, eq=False)
class ComputeRootStep(Step):
    name: ClassVar[str] = "compute_root"

    def apply(self, schedule: Schedule) -> None:
        stage = _computed(schedule, self.stage)
        if stage.packed_by:
            _restructure(schedule, stage)
        stage.attach_loop = None


@dataclass(frozen=True, slots=True, eq=False)
class ComputeInlineStep(Step):
    name: ClassVar[str] = "compute_inline"

    def apply(self, schedule: Schedule) -> None:
        rewrite.inline(schedule, _computed(schedule, self.stage))


@dataclass(frozen=True, slots=True, eq=False)
class AlgorithmStep(Step):
    name: ClassVar[str] = "algorithm"
    algorithm: str

    def apply(self, schedule: Schedule) -> None:
        rewrite.use_algorithm(schedule, _computed(schedule, self.stage), self.algorithm)


@dataclass(frozen=True, slots=True, eq=False)
class CacheReadStep(Step):
    name: ClassVar[str] = "cache_read"
    readers: tuple[str, ...]

    def apply(self, schedule: Schedule) -> Stage:
        readers = [_computed(schedule, name) for name in self.readers]
        return rewrite.cache_read(schedule, schedule[self.stage], readers)

    def arguments(self) -> list[Any]:
        return list(self.readers)


@dataclass(frozen=True, slots=True, eq=False)
class CacheWriteStep(Step):
    name: ClassVar[str] = "cache_write"

    def apply(self, schedule: Schedule) -> Stage:
        return rewrite.cache_write(schedule, _computed(schedule, self.stage))


@dataclass(frozen=True, slots=True, eq=False)
class PackStep(Step):
    name: ClassVar[str] = "pack"
    reader: str
    place: int | None = None

    def apply(self, schedule: Schedule) -> Stage:
        return rewrite.pack(schedule, schedule[self.stage], _computed(schedule, self.reader), self.place)

    def arguments(self) -> list[Any]:
        return [self.reader] if self.place is None else [self.reader, self.place]


@dataclass(frozen=True, slots=True, eq=False)
class RFactorStep(Step):
    name: ClassVar[str] = "rfactor"
    loop: str

    def apply(self, schedule: Schedule) -> Stage:
        stage, loop = _leaf(schedule, self.stage, self.loop)
        if stage.packed_by:
            _restructure(schedule, stage)
        return rewrite.rfactor(schedule, stage, loop)


STEPS: dict[str, type[Step]] = {
    step.name: step
    for step in (
        SplitStep, FuseStep, ReorderStep, ParallelStep, VectorizeStep, UnrollStep, PragmaStep, ComputeAtStep,
        ComputeRootStep, ComputeInlineStep, AlgorithmStep, CacheReadStep, CacheWriteStep, PackStep, RFactorStep,
    )
}  # fmt: skip

_VARIADIC = ("fuse", "reorder", "cache_read")


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _are(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda values: isinstance(values, list) and all(map(check, values))


_NAME = ("a name", _is_name)
_NAMES = ("names", _are(_is_name))
# What the fields of steps are in JSON.
_RULES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "algorithm": _NAME,
    "loop": _NAME,
    "consumer": _NAME,
    "reader": _NAME,
    "loops": _NAMES,
    "readers": _NAMES,
    "factors": ("a list of whole numbers of at least 1", _are(lambda value: _is_whole(value, 1))),
    "place": ("a whole number of at least 0", lambda value: _is_whole(value, 0)),
    "auto_unroll_max_step": ("a whole number of at least 0", lambda value: _is_whole(value, 0)),
}


def step_from_json(data: object) -> Step:
    """Read one step; anything that is not one is a ScheduleError that says what is wrong."""
    if not isinstance(data, dict) or not {"step", "stage", "arguments"} <= set(data):
        raise ScheduleError(f"a step is an object with step, stage and arguments, got {shown(data)}")
    kind, stage, arguments = data["step"], data["stage"], data["arguments"]
    if not isinstance(kind, str) or kind not in STEPS:
        raise ScheduleError(f"unknown step {shown(kind)}; the steps are: {', '.join(STEPS)}")
    if not isinstance(stage, str) or not isinstance(arguments, list):
        raise ScheduleError(f"step {kind}: stage must be a string and arguments a list, got {shown(data)}")
    given = [arguments] if kind in _VARIADIC else arguments
    taken = [f for f in fields(STEPS[kind]) if f.name != "stage"]
    num_required = sum(f.default is MISSING for f in taken)
    if not num_required <= len(given) <= len(taken):
        raise ScheduleError(f"step {kind} takes {len(taken)} arguments, got {shown(arguments)}")
    for name, value in zip((f.name for f in taken), given, strict=False):
        expected, is_right = _RULES[name]
        if not is_right(value):
            raise ScheduleError(f"step {kind}: {name} must be {expected}, got {shown(value)}")
    make: Callable[..., Step] = STEPS[kind]
    return make(stage, *(tuple(value) if isinstance(value, list) else value for value in given))
