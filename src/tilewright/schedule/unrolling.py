"""Which loops are written out: those annotated, and those that the pragma auto_unroll_max_step unrolls.

The pragma unrolls the loops inside its own, innermost first, as long as a body has few enough statements. A loop that
is left makes all around it too large, so that is to say: it unrolls each loop that has few enough statements when
everything inside is written out. Statements are counted as lowering makes them.
"""

from __future__ import annotations

from collections.abc import Sequence

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


class Unrolling:
    """What is written out in a schedule, or in each candidate of a population.

    Of the copies that stand elsewhere than in the nest, a population only counts the statements.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.extents = schedule.extents
        self.accumulations = {s: Accumulation(s) for s in schedule.active_stages if s.reduction is not None}
        self._unrolled: dict[tuple[Loop, str], Flag] = {}
        self._counted: list[Extent] = []
        for stage in schedule.active_stages:
            if stage.attach_loop is None:
                self._from(stage, 0, 0)

    def is_unrolled(self, loop: Loop) -> Flag:
        """Whether the loop's body is written once for every iteration."""
        return self._unrolled.get((loop, NEST), False)

    def kind(self, loop: Loop, place: str = NEST) -> str:
        """How one schedule runs the loop: as annotated, unless a pragma unrolls it or nothing is gained by that."""
        if loop.annotation in (PARALLEL, VECTORIZE):
            return loop.annotation
        return UNROLL if self._unrolled[loop, place] else SERIAL

    def largest_within(self, step: Extent) -> Extent:
        """The most statements, up to `step`, of a loop that pragmas alone may write out.

        A pragma with this step writes out the same loops as one with so many statements as its step.
        """
        largest: Extent = 0
        for statements in self._counted:
            largest = maximum(largest, choose(statements <= step, statements, 0))
        return largest

    # --- counting statements, for pragmas whose largest number is `limit` ------------------------------------------

    def _from(self, stage: Stage, position: int, limit: Extent) -> Extent:
        """The statements of the leaves from `position` on."""
        if position == len(stage.leaves):
            return 1
        leaf = stage.leaves[position]
        if leaf.is_reduce:
            return self._reduction(stage, limit)
        inner = _limit_inside(leaf, limit)
        return self._loop(leaf, NEST, self._attached(leaf, inner) + self._from(stage, position + 1, inner), limit)

    def _attached(self, loop: Loop, limit: Extent) -> Extent:
        total: Extent = 0
        for stage in self.schedule.attached_at(loop):
            total = total + self._from(stage, 0, limit)
        return total

    def _reduction(self, stage: Stage, limit: Extent) -> Extent:
        how = self.accumulations[stage]
        start = self._copies(how.spatial, START, how.num_results, limit, how.is_in_registers)
        # The sum over lanes is set up, made and stored.
        written = choose(how.has_lanes, how.num_results + 2, 1) * how.is_apart
        finish = self._copies(how.spatial, FINISH, written, limit, how.has_lanes | how.is_in_registers)
        return start + self._update(how, limit) + finish

    def _update(self, how: Accumulation, limit: Extent) -> Extent:
        limits = [limit]
        for leaf in how.inside:
            limits.append(_limit_inside(leaf, limits[-1]))
        statements: Extent = 1
        for k in range(len(how.inside) - 1, -1, -1):
            leaf = how.inside[k]
            statements = self._loop(leaf, NEST, self._attached(leaf, limits[k + 1]) + statements, limits[k])
            is_moved = how.level == how.position + k if leaf.is_reduce and k > 0 else False
            if is_anywhere(is_moved):
                spatial = [loop for loop in how.inside[k:] if not loop.is_reduce]
                statements = statements + 2 * self._copies(spatial, MOVE, is_moved * 1, limits[k])
        return statements

    def _copies(
        self, loops: Sequence[Loop], place: str, statements: Extent, limit: Extent, as_annotated: Flag = True
    ) -> Extent:
        """Statements inside copies of these loops, which are annotated as the loops or not at all."""
        for loop in reversed(loops):
            statements = self._loop(loop, place, statements, limit, as_annotated)
        return statements

    def _loop(self, loop: Loop, place: str, statements: Extent, limit: Extent, as_annotated: Flag = True) -> Extent:
        """The statements of a loop around so many, which are of no interest where no pragma is around it."""
        if loop.annotation == VECTORIZE:
            return statements
        extent = self.extents[loop]
        if loop.annotation == PARALLEL:
            return maximum(statements, minimum(extent - 1, 1) * _MANY)
        unrolled: Flag = as_annotated if loop.annotation == UNROLL else False
        if not isinstance(limit, int) or limit > 0:
            statements = minimum(statements * extent, _MANY)
            self._counted.append(choose(unrolled | (extent <= 1), 0, statements))
            unrolled = unrolled | (statements <= limit) & (extent > 1)
        self._unrolled[loop, place] = unrolled
        return statements


def _limit_inside(loop: Loop, limit: Extent) -> Extent:
    """The largest number of statements that the pragmas around a loop and its own allow."""
    step = loop.stage.pragmas.get(loop, 0)
    return maximum(limit, minimum(step, _MANY - 1))
