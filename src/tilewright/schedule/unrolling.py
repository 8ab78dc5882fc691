"""Which loops are written out: those annotated, and those that the pragma auto_unroll_max_step unrolls.

The pragma unrolls the loops inside its own, innermost first, as long as a body has few enough statements. A loop that
is left makes all around it too large, so that is to say: it unrolls each loop that has few enough statements when
everything inside is written out. Statements are counted as lowering makes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tilewright.schedule.accumulation import Accumulation
from tilewright.schedule.loop import PARALLEL, SERIAL, UNROLL, VECTORIZE, Extent, Loop
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.stage import Stage
from tilewright.te.index import Flag, choose, is_anywhere, maximum, minimum

# Where a loop stands: in the nest of its stage, or copied around what sets up the partial results of a reduction,
# moves a part of them into registers and back, and writes them to their place.
NEST, START, MOVE, FINISH = "nest", "start", "move", "finish"

# As good as infinitely many statements, and safe from overflow when multiplied by an extent.
_MANY = 1 << 31
MOST_STEPS = _MANY - 1
"""A pragma whose step is larger unrolls as if it was this."""

_Pragmas = Mapping[Loop, Extent]
_NO_PRAGMAS: _Pragmas = {}


class Unrolling:
    """What is written out in a schedule, or in each candidate of a population.

    Of the copies that stand elsewhere than in the nest, a population only counts the statements.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.extents = schedule.extents
        self.accumulations = {s: Accumulation(s) for s in schedule.active_stages if s.reduction is not None}
        self._unrolled: dict[tuple[Loop, str], Flag] = {}
        self._counted: list[tuple[Extent, _Pragmas]] = []  # with the pragmas around
        for stage in schedule.active_stages:
            if stage.attach_loop is None:
                self._from(stage, 0, _NO_PRAGMAS)

    def is_unrolled(self, loop: Loop) -> Flag:
        """Whether the loop's body is written once for every iteration."""
        return self._unrolled.get((loop, NEST), False)

    def kind(self, loop: Loop, place: str = NEST) -> str:
        """How one schedule runs the loop: as annotated, unless a pragma unrolls it or nothing is gained by that."""
        if loop.annotation in (PARALLEL, VECTORIZE):
            return loop.annotation
        return UNROLL if self._unrolled[loop, place] else SERIAL

    def most_needed(self, own: Collection[Loop], step: Extent) -> Extent:
        """The most statements of a loop that the pragmas of `own`, with this step, write out and no other does.

        As pragmas with so many statements as their step they write out the same loops.
        """
        most: Extent = 0
        for statements, pragmas in self._counted:
            if any(loop in own for loop in pragmas):
                others = _largest({loop: other for loop, other in pragmas.items() if loop not in own})
                most = maximum(most, choose((statements <= step) & (statements > others), statements, 0))
        return most

    def most_allowed(self, own: Collection[Loop]) -> Extent:
        """The largest step with which the pragmas of `own` write out no more loops than are written out."""
        most: Extent = MOST_STEPS
        for statements, pragmas in self._counted:
            if any(loop in own for loop in pragmas):
                most = minimum(most, choose(statements <= _largest(pragmas), MOST_STEPS, statements - 1))
        return most

    # --- counting statements, inside the pragmas of some loops, with their steps -------------------------------------

    def _from(self, stage: Stage, position: int, pragmas: _Pragmas) -> Extent:
        """The statements of the leaves from `position` on."""
        if position == len(stage.leaves):
            return 1
        leaf = stage.leaves[position]
        if leaf.is_reduce:
            return self._reduction(stage, pragmas)
        inner = _pragmas_inside(leaf, pragmas)
        return self._loop(leaf, NEST, self._attached(leaf, inner) + self._from(stage, position + 1, inner), pragmas)

    def _attached(self, loop: Loop, pragmas: _Pragmas) -> Extent:
        total: Extent = 0
        for stage in self.schedule.attached_at(loop):
            total = total + self._from(stage, 0, pragmas)
        return total

    def _reduction(self, stage: Stage, pragmas: _Pragmas) -> Extent:
        how = self.accumulations[stage]
        start = self._copies(how.spatial, START, how.num_results, pragmas, how.is_in_registers)
        # The sum over lanes is set up, made and stored.
        written = choose(how.has_lanes, how.num_results + 2, 1) * how.is_apart
        finish = self._copies(how.spatial, FINISH, written, pragmas, how.has_lanes | how.is_in_registers)
        return start + self._update(how, pragmas) + finish

    def _update(self, how: Accumulation, pragmas: _Pragmas) -> Extent:
        around = [pragmas]
        for leaf in how.inside:
            around.append(_pragmas_inside(leaf, around[-1]))
        statements: Extent = 1
        for k in range(len(how.inside) - 1, -1, -1):
            leaf = how.inside[k]
            statements = self._loop(leaf, NEST, self._attached(leaf, around[k + 1]) + statements, around[k])
            is_moved = how.level == how.position + k if leaf.is_reduce and k > 0 else False
            if is_anywhere(is_moved):
                spatial = [loop for loop in how.inside[k:] if not loop.is_reduce]
                statements = statements + 2 * self._copies(spatial, MOVE, is_moved * 1, around[k])
        return statements

    def _copies(
        self, loops: Sequence[Loop], place: str, statements: Extent, pragmas: _Pragmas, as_annotated: Flag = True
    ) -> Extent:
        """Statements inside copies of these loops, which are annotated as the loops or not at all."""
        for loop in reversed(loops):
            statements = self._loop(loop, place, statements, pragmas, as_annotated)
        return statements

    def _loop(self, loop: Loop, place: str, statements: Extent, pragmas: _Pragmas, as_annotated: Flag = True) -> Extent:
        """The statements of a loop around so many, which are of no interest where no pragma is around it."""
        if loop.annotation == VECTORIZE:
            return statements
        extent = self.extents[loop]
        if loop.annotation == PARALLEL:
            return maximum(statements, minimum(extent - 1, 1) * _MANY)
        unrolled: Flag = as_annotated if loop.annotation == UNROLL else False
        limit = _largest(pragmas)
        if not isinstance(limit, int) or limit > 0:
            statements = minimum(statements * extent, _MANY)
            self._counted.append((choose(unrolled | (extent <= 1), 0, statements), pragmas))
            unrolled = unrolled | (statements <= limit) & (extent > 1)
        self._unrolled[loop, place] = unrolled
        return statements


def _pragmas_inside(loop: Loop, pragmas: _Pragmas) -> _Pragmas:
    """The pragmas around a loop and its own."""
    step = loop.stage.pragmas.get(loop)
    return pragmas if step is None else {**pragmas, loop: minimum(step, MOST_STEPS)}


def _largest(pragmas: _Pragmas) -> Extent:
    """The largest number of statements that they allow."""
    largest: Extent = 0
    for step in pragmas.values():
        largest = maximum(largest, step)
    return largest
