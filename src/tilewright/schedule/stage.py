"""A stage: one tensor of the task and the loops that compute it. Its methods are the schedule primitives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tilewright.errors import ScheduleError
from tilewright.schedule.loop import Extent, Fuse, Loop, Relation, Split
from tilewright.te import Axis, Const, Expr, Read, Reduce, Tensor, Var, collect_reads, depth_of

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Layout:
    """What a packed copy was laid out by: where `reader` read the source, in its axes and, as then, in loops.

    `loops` are those that the layout follows, each with the axis of the copy that it became.
    """

    reader: Stage
    indices: tuple[Expr, ...]
    loops: tuple[tuple[Loop, Axis], ...]
    values: tuple[Expr, ...]


class Stage:
    """One tensor and its loop nest as it stands. Loops are named; a primitive takes a loop or its name."""

    def __init__(self, schedule: Schedule, tensor: Tensor) -> None:
        self.schedule = schedule
        self.tensor = tensor
        self.is_output = False
        self.is_inlined = False
        self.packs: Tensor | None = None  # the tensor whose elements this stage lays out, or which it is made of
        self.computes_packed = False  # whether it is the cache of a packed copy, whose elements it computes
        self.layout: Layout | None = None  # the loops it follows, if it is a packed copy
        self.packed_by: tuple[str, ...] = ()  # the pack stages whose layout follows this stage's loops
        self.attach_loop: Loop | None = None
        self.annotations: dict[Loop, str] = {}
        self.pragmas: dict[Loop, int] = {}
        self.relations: tuple[Relation, ...] = ()
        self._made_into: tuple[tuple[Relation, ...], dict[Loop, Relation]] = ((), {})
        self.set_body(tensor.body if tensor.body is not None else Const("int64", 0), tensor.axes)
        self.leaves: tuple[Loop, ...] = self.root_loops

    # --- what it computes ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def is_placeholder(self) -> bool:
        return self.tensor.body is None

    @property
    def reduction(self) -> Reduce | None:
        return self.body if isinstance(self.body, Reduce) else None

    @property
    def depth(self) -> int:
        """How many expressions stand in each other in what it computes."""
        return _depth_of(self.body)

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return self.body.axes if isinstance(self.body, Reduce) else ()

    def set_body(self, body: Expr, axes: tuple[Axis, ...]) -> None:
        """Compute `body` over `axes`; the loops of axes that it had before are kept."""
        known = getattr(self, "loop_of_axis", {})
        self.body = body
        self.reads = _reads_in(body)
        self.sources = _sources_in(body)
        self.axes = axes
        self.loop_of_axis: dict[Axis, Loop] = {
            axis: known.get(axis) or Loop(axis.name, Var("int64", axis.name), axis.is_reduce, self)
            for axis in (*axes, *self.reduce_axes)
        }

    @property
    def root_loops(self) -> tuple[Loop, ...]:
        return tuple(self.loop_of_axis.values())

    # --- its loops ----------------------------------------------------------------------------------------------

    @property
    def loops(self) -> list[Loop]:
        """The loops as they stand, outermost first."""
        return list(self.leaves)

    @property
    def made_into(self) -> dict[Loop, Relation]:
        """For each loop that was split or fused: how."""
        relations, table = self._made_into
        if relations is not self.relations:
            table = {}
            for relation in self.relations:
                if isinstance(relation, Split):
                    table[relation.parent] = relation
                else:
                    table[relation.first] = table[relation.second] = relation
            self._made_into = (self.relations, table)
        return table

    def leaves_of(self, loop: Loop) -> tuple[Loop, ...]:
        """The leaf loops that determine the value of `loop`."""
        relation = self.made_into.get(loop)
        if relation is None:
            return (loop,)
        if isinstance(relation, Fuse):
            return self.leaves_of(relation.fused)
        return self.leaves_of(relation.outer) + self.leaves_of(relation.inner)

    def parts_of(self, loop: Loop) -> tuple[Loop, ...]:
        """The loops that were fused into `loop`, outermost first; itself where it was not fused."""
        for relation in self.relations:
            if isinstance(relation, Fuse) and relation.fused is loop:
                return self.parts_of(relation.first) + self.parts_of(relation.second)
        return (loop,)

    def _own(self, loop: Loop | str) -> str:
        """The name of one of this stage's loops."""
        if isinstance(loop, str):
            return loop
        if not isinstance(loop, Loop):
            raise ScheduleError(
                f"a loop of stage {self.name} is given by its name or as its loops have it, got {loop!r}\n"
                f"The loop nest as it stands:\n{self.schedule}"
            )
        if loop.stage is not self:
            raise ScheduleError(
                f"loop {loop.name} belongs to stage {loop.stage.name}, not to {self.name}; "
                f"take it from the loops of {self.name}\nThe loop nest as it stands:\n{self.schedule}"
            )
        return loop.name

    def find_loop(self, name: str) -> Loop:
        """The leaf loop with that name."""
        for leaf in self.leaves:
            if leaf.name == name:
                return leaf
        names = ", ".join(leaf.name for leaf in self.leaves) or "none"
        raise ScheduleError(f"stage {self.name} has no loop {name!r} (any more); its loops are: {names}")

    # --- the primitives: each builds a step, and the schedule applies it ------------------------------------------

    def split(self, loop: Loop | str, *factors: Extent | Sequence[Extent]) -> tuple[Loop, ...]:
        """Split a loop into nested loops; `factors` are the extents of the inner ones, outermost first.

        They are given one by one or as a list.
        Rewrite: `for i in 20` with factors [2, 4] -> `for i.0 in 3: for i.1 in 2: for i.2 in 4`. A last spatial tile
        that does not fit is shifted inwards; a reduction skips what is beyond its end.
        Checks: the loop is a leaf without attached stages, factors are at least 1.
        """
        from tilewright.schedule.steps import SplitStep

        many = [part for given in factors for part in (given if isinstance(given, list | tuple) else (given,))]
        return self.schedule.apply(SplitStep(self.name, self._own(loop), tuple(many)))  # type: ignore[return-value]

    def fuse(self, *loops: Loop | str) -> Loop:
        """Run neighbouring loops as one.

        Rewrite: `for i in 3: for j in 4` -> `for i@j in 12`.
        Checks: the loops are neighbours in the nest, in this order, all spatial or all of the reduction.
        """
        from tilewright.schedule.steps import FuseStep

        return self.schedule.apply(FuseStep(self.name, tuple(map(self._own, loops))))  # type: ignore[return-value]

    def reorder(self, *loops: Loop | str) -> None:
        """Put the given loops into the given order, in the places they hold together.

        Rewrite: `for i: for j: for k` with (k, i) -> `for k: for j: for i`.
        Checks: each loop is a leaf and named once.
        """
        from tilewright.schedule.steps import ReorderStep

        self.schedule.apply(ReorderStep(self.name, tuple(map(self._own, loops))))

    def parallel(self, loop: Loop | str) -> None:
        """Share the iterations of a loop among threads.

        Rewrite: `for i` -> `parallel i`.
        Checks: a spatial loop, not inside another parallel, vectorized or unrolled loop.
        """
        from tilewright.schedule.steps import ParallelStep

        self.schedule.apply(ParallelStep(self.name, self._own(loop)))

    def vectorize(self, loop: Loop | str) -> None:
        """Run all iterations of a loop at once in vector lanes.

        Rewrite: `for j in 16` -> `vectorize j in 16`. On a reduction the lanes are summed at the end, which reorders
        the sum. Checks: one vectorized loop in a nest, nothing attached inside it.
        """
        from tilewright.schedule.steps import VectorizeStep

        self.schedule.apply(VectorizeStep(self.name, self._own(loop)))

    def unroll(self, loop: Loop | str) -> None:
        """Write the body of a loop once for each iteration.

        Rewrite: `for i in 4` -> `unroll i in 4`. Checks: the loop is a leaf; at most 1024 iterations.
        A kernel that unrolls to more than 8192 statements is not compiled: LLVM would take minutes.
        """
        from tilewright.schedule.steps import UnrollStep

        self.schedule.apply(UnrollStep(self.name, self._own(loop)))

    def pragma(self, loop: Loop | str, *, auto_unroll_max_step: int) -> None:
        """Unroll the loops inside `loop`, innermost first, as long as a body has at most that many statements."""
        from tilewright.schedule.steps import PragmaStep

        self.schedule.apply(PragmaStep(self.name, self._own(loop), auto_unroll_max_step))

    def compute_at(self, consumer: Stage | str, loop: Loop | str) -> None:
        """Compute the part of this stage that one iteration of the consumer's loop needs, inside that loop.

        Rewrite: `for i: B[i]; for i: C[i]` -> `for i: (B[i]; C[i])`.
        Checks: not an output; every consumer of this stage is inside that loop.
        """
        from tilewright.schedule.steps import ComputeAtStep

        host = self.schedule[consumer]
        self.schedule.apply(ComputeAtStep(self.name, host.name, host._own(loop)))

    def compute_root(self) -> None:
        """Compute the whole stage before its consumers begin (undoes compute_at)."""
        from tilewright.schedule.steps import ComputeRootStep

        self.schedule.apply(ComputeRootStep(self.name))

    def compute_inline(self) -> None:
        """Write this stage's expression into its consumers, so that no memory holds it.

        Rewrite: `B[i] = A[i] * 2; C[i] = B[i] + 1` -> `C[i] = A[i] * 2 + 1`. Checks: no reduction, not an output.
        """
        from tilewright.schedule.steps import ComputeInlineStep

        self.schedule.apply(ComputeInlineStep(self.name))

    def algorithm(self, name: str) -> None:
        """Compute this stage by another algorithm, such as "winograd4": see `tilewright.te.algorithms`.

        Rewrite: `C[..] = sum(f(..))` -> stages that C is made of, and `C[..]` from the last of them. Most round more.
        Checks: the algorithm applies to the stage; no step was made before.
        """
        from tilewright.schedule.steps import AlgorithmStep

        self.schedule.apply(AlgorithmStep(self.name, name))

    def cache_read(self, *readers: Stage | str) -> Stage:
        """Copy this tensor into memory of its own for the given readers (all of them by default).

        Rewrite: `C[i] = A[i]` -> `A.cache[i] = A[i]; C[i] = A.cache[i]`. Attach the copy with compute_at.
        """
        from tilewright.schedule.steps import CacheReadStep

        return self.schedule.apply(CacheReadStep(self.name, tuple(map(_stage, readers))))  # type: ignore[return-value]

    def cache_write(self) -> Stage:
        """Compute this stage in memory of its own, and copy it out; returns the stage that computes.

        Rewrite: `C[i] = f(i)` -> `C.cache[i] = f(i); C[i] = C.cache[i]`. Attached to a tile of C, it is the tile's
        accumulator. Checks: nothing is attached to this stage's reduction loops.
        """
        from tilewright.schedule.steps import CacheWriteStep

        return self.schedule.apply(CacheWriteStep(self.name))  # type: ignore[return-value]

    def pack(self, reader: Stage | str, place: int | None = None) -> Stage:
        """Lay this tensor out in the order in which the reader's loops, as they stand, read it.

        Rewrite: `for j.0: for k: for j.1: C[..] += A[..] * B[k, j]` -> `B.pack[j.0, k, j.1]` in place of `B[k, j]`.
        A constant input is packed once, by `kernel.bind`; any other tensor at run time, where compute_at puts it.
        `place` says which of several reads is meant: of X[i, k] * X[j, k] the second is 1; the first stays as it is.
        Checks: the place is given where there are several; the reader's loops cannot change afterwards.
        """
        from tilewright.schedule.steps import PackStep

        return self.schedule.apply(PackStep(self.name, _stage(reader), place))  # type: ignore[return-value]

    def rfactor(self, loop: Loop | str) -> Stage:
        """Make one reduction loop an axis of a new stage of partial results; this stage then reduces over it.

        Rewrite: `C[i] = sum(f(i, k.0, k.1))` with k.1 -> `C.rf[i, k.1] = sum over k.0; C[i] = sum(C.rf[i, k.1])`.
        Checks: a reduction loop of a sum, prod, max or min.
        """
        from tilewright.schedule.steps import RFactorStep

        return self.schedule.apply(RFactorStep(self.name, self._own(loop)))  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Stage({self.name})"


@lru_cache(maxsize=256)
def _reads_in(body: Expr) -> tuple[Read, ...]:
    """The reads of a body, which is the same one in many schedules of a task."""
    return tuple(collect_reads(body))


@lru_cache(maxsize=256)
def _sources_in(body: Expr) -> tuple[Tensor, ...]:
    """The tensors that a body reads, each once."""
    return tuple(dict.fromkeys(read.tensor for read in _reads_in(body)))


@lru_cache(maxsize=256)
def _depth_of(body: Expr) -> int:
    return max(map(depth_of, body.values)) if isinstance(body, Reduce) else depth_of(body)


def _stage(stage: Stage | str) -> str:
    return stage.name if isinstance(stage, Stage) else stage
