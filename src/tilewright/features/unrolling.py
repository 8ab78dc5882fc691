"""Which loops end up unrolled: those annotated, and those that the pragma auto_unroll_max_step unrolls.

The pragma counts the statements of the lowered nest, so this follows `ir.lower` (what a reduction sets up and writes
back) and `ir.unroll` (innermost first, while the body has few enough statements), for all candidates at once.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.features.regions import Floats
from tilewright.schedule import PARALLEL, UNROLL, VECTORIZE, Loop, Schedule, Split, Stage, enclosing_loops

Booleans: TypeAlias = npt.NDArray[np.bool_]

# As in ir.lower: a larger accumulator tile stays in memory.
MAX_ACCUMULATOR_ELEMENTS = 1024


class Unrolling:
    """`unrolled[loop]`: for each candidate, whether the loop's body is written once for every iteration."""

    def __init__(self, schedule: Schedule, n: int) -> None:
        self.schedule = schedule
        self.n = n
        self.extents: dict[Loop, Floats] = {}
        self.unrolled: dict[Loop, Booleans] = {}
        pragmas: list[tuple[int, Stage, Loop]] = []
        for stage in schedule.active_stages:
            num_around = len(enclosing_loops(stage))
            for position, loop in enumerate(stage.leaves):
                self.extents[loop] = np.broadcast_to(np.asarray(schedule.extents[loop], np.float64), (n,))
                self.unrolled[loop] = np.full(n, loop.annotation == UNROLL)
                if np.any(np.asarray(stage.pragmas.get(loop, 0)) > 0):
                    pragmas.append((num_around + position, stage, loop))
        for _, stage, loop in sorted(pragmas, key=lambda item: -item[0]):
            max_step = np.broadcast_to(np.asarray(stage.pragmas[loop], np.float64), (n,))
            Pragma(self, max_step).apply(stage, loop)

    def register_level(self, stage: Stage) -> npt.NDArray[np.int64]:
        """The position in the stage's leaves from which on a reduction runs on registers alone; -1 where none does."""
        level = np.full(self.n, -1)
        is_tile = np.ones(self.n, np.bool_)
        size = np.ones(self.n)
        for position in range(len(stage.leaves) - 1, -1, -1):
            loop = stage.leaves[position]
            if loop.is_reduce:
                level = np.where(is_tile & (size <= MAX_ACCUMULATOR_ELEMENTS), position, level)
            else:
                size = size * self.extents[loop]
                is_tile = is_tile & ((loop.annotation in (VECTORIZE, UNROLL)) | (self.extents[loop] == 1))
        return level


class Pragma:
    """One pragma: counts statements from the inside and unrolls what is small enough."""

    def __init__(self, unrolling: Unrolling, max_step: Floats) -> None:
        self.unrolling = unrolling
        self.schedule = unrolling.schedule
        self.extents = unrolling.extents
        self.max_step = max_step

    def apply(self, stage: Stage, loop: Loop) -> None:
        position = stage.leaves.index(loop)
        first_reduce = next((p for p, leaf in enumerate(stage.leaves) if leaf.is_reduce), len(stage.leaves))
        self._attached(loop)
        if position < first_reduce:
            self._from(stage, position + 1)
        else:
            self._update(stage, position + 1)

    def _from(self, stage: Stage, position: int) -> Floats:
        """How many statements the leaves from `position` on expand to; more than the limit where a loop remains."""
        if position == len(stage.leaves):
            return np.ones_like(self.max_step)
        leaf = stage.leaves[position]
        if leaf.is_reduce:
            return self._reduction(stage, position)
        return self._loop(leaf, self._attached(leaf) + self._from(stage, position + 1))

    def _attached(self, loop: Loop) -> Floats:
        total = np.zeros_like(self.max_step)
        for stage in self.schedule.attached_at(loop):
            total += self._from(stage, 0)
        return total

    def _loop(self, loop: Loop, steps: Floats) -> Floats:
        total, is_small = self._expanded(loop, steps, self.unrolling.unrolled[loop])
        self.unrolling.unrolled[loop] = self.unrolling.unrolled[loop] | is_small
        return total

    def _expanded(self, loop: Loop, steps: Floats, is_unrolled: Booleans) -> tuple[Floats, Booleans]:
        extent = self.extents[loop]
        never = np.zeros_like(is_unrolled)
        if loop.annotation == VECTORIZE:
            return steps, never
        expanded = steps * extent
        is_small = never if loop.annotation == PARALLEL else (expanded <= self.max_step) & (extent > 1)
        remains = ~(is_unrolled | is_small) & (extent > 1)
        return np.where(remains, self.max_step + 1, expanded), is_small

    def _over(self, loops: list[Loop]) -> Floats:
        """A statement inside plain copies of these loops, which leave the loops themselves as they are."""
        steps = np.ones_like(self.max_step)
        for loop in reversed(loops):
            steps, _ = self._expanded(
                loop, steps, np.full_like(self.unrolling.unrolled[loop], loop.annotation == UNROLL)
            )
        return steps

    def _reduction(self, stage: Stage, position: int) -> Floats:
        spatial = [loop for loop in stage.leaves[position:] if not loop.is_reduce]
        start = self._over(spatial)
        return start + self._update(stage, position) + np.where(self._accumulates_apart(stage, position), start, 0)

    def _update(self, stage: Stage, position: int) -> Floats:
        level = self.unrolling.register_level(stage)
        first_reduce = next(p for p, leaf in enumerate(stage.leaves) if leaf.is_reduce)
        steps = np.ones_like(self.max_step)
        for p in range(len(stage.leaves) - 1, position - 1, -1):
            leaf = stage.leaves[p]
            steps = self._loop(leaf, self._attached(leaf) + steps)
            if leaf.is_reduce and p > first_reduce:
                spatial = [loop for loop in stage.leaves[p:] if not loop.is_reduce]
                steps = steps + np.where(level == p, 2 * self._over(spatial), 0)
        return steps

    def _accumulates_apart(self, stage: Stage, position: int) -> Booleans:
        """As ir.lower: in a tile of its own, which is written back at the end."""
        apart = np.zeros_like(self.max_step, np.bool_)
        for relation in stage.relations:
            if isinstance(relation, Split) and not relation.parent.is_reduce:
                whole, tile = self.schedule.extents[relation.parent], self.schedule.extents[relation.inner]
                apart = apart | (np.asarray(whole % tile) != 0)
        size, numel = np.ones_like(self.max_step), np.ones_like(self.max_step)
        for loop in stage.leaves[position:]:
            if not loop.is_reduce:
                size = size * self.extents[loop]
            elif loop.annotation == VECTORIZE:
                apart = apart | (self.extents[loop] > 1)
        for axis in stage.axes:
            numel = numel * self.schedule.extents[stage.loop_of_axis[axis]]
        is_kept: Booleans = self.unrolling.register_level(stage) == position
        if not stage.is_output:  # the stage's own buffer may be that tile
            is_kept = is_kept & (numel != size)
        return apart | is_kept
