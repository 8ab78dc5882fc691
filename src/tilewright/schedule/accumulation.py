"""Where a reduction keeps its partial results: in registers, in a tile of their own, or in the memory of its stage.

Lowering builds what is decided here, and features count it. Both ask one schedule or a population: an answer is one
value where the extents that it depends on are ints, and one for each candidate where they are arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from tilewright.schedule.loop import UNROLL, VECTORIZE, Extent, Loop, Split
from tilewright.schedule.rewrite import accumulator_dtype
from tilewright.schedule.stage import Stage
from tilewright.te.index import Flag, choose, is_anywhere

# A tile of at most this many elements is kept apart from memory while a reduction runs.
MAX_ACCUMULATOR_ELEMENTS = 1024


def buffer_dtype(stage: Stage) -> str:
    """The type of the memory that holds a stage: sums that no caller sees are kept as they are accumulated."""
    dtype = stage.tensor.dtype
    return accumulator_dtype(dtype) if stage.reduction is not None and not stage.is_output else dtype


class Accumulation:
    """How the reduction of a stage runs.

    `position` is the place of its outermost loop among the leaves of the stage, `inside` are the leaves from there on,
    and `spatial` those of them that move the results. It carries `num_results` for each, such as the value and the
    index of an argmax.
    """

    def __init__(self, stage: Stage) -> None:
        assert stage.reduction is not None, f"{stage.name} reduces nothing"
        self.stage = stage
        self.extents = stage.schedule.extents
        self.num_results = len(stage.reduction.values)
        self.position = next((p for p, loop in enumerate(stage.leaves) if loop.is_reduce), len(stage.leaves))
        self.inside = stage.leaves[self.position :]
        self.spatial = tuple(loop for loop in self.inside if not loop.is_reduce)
        self._vectorized = [loop for loop in self.inside if loop.is_reduce and loop.annotation == VECTORIZE]

    @property
    def lanes(self) -> list[Loop]:
        """The loops of the reduction whose iterations have partial results of their own each."""
        return [loop for loop in self._vectorized if is_anywhere(self.extents[loop] > 1)]

    @property
    def has_lanes(self) -> Flag:
        return self.extents[self._vectorized[0]] > 1 if self._vectorized else False

    @cached_property
    def level(self) -> Extent:
        """From which leaf of the stage on the reduction runs on registers alone; -1 where it never does.

        Where that is not its outermost loop, a part of the results is loaded before and stored after.
        """
        can_begin_inside = self.num_results == 1 and not self._vectorized
        level: Extent = -1
        size: Extent = 1
        is_straight: Flag = True  # every place of what is kept is a constant
        for position in range(len(self.stage.leaves) - 1, self.position - 1, -1):
            loop = self.stage.leaves[position]
            if not loop.is_reduce:
                size, is_straight = size * self.extents[loop], is_straight & self._is_straight(loop)
            elif can_begin_inside or position == self.position:
                level = choose(is_straight & (size <= MAX_ACCUMULATOR_ELEMENTS), position, level)
        return level

    @property
    def is_in_registers(self) -> Flag:
        """Whether all partial results together stay in registers."""
        return self.level == self.position

    @cached_property
    def is_apart(self) -> Flag:
        """Whether partial results are kept in a tile of their own, which is written back at the end.

        In registers, in float32, one for each lane, a value with its index, or apart from another tile that overlaps
        this one.
        """
        dtype = buffer_dtype(self.stage)
        if self.num_results > 1 or accumulator_dtype(dtype) != dtype:
            return True
        needs_tile: Flag = choose(self._is_own_tile(), False, self.is_in_registers)
        return self.has_lanes | self._overlaps() | needs_tile

    def _is_straight(self, loop: Loop) -> Flag:
        """Whether the schedule says that no loop is left of it: written out, in lanes, or run once."""
        return loop.annotation in (VECTORIZE, UNROLL) or self.extents[loop] == 1

    def _overlaps(self) -> Flag:
        """Whether a last tile is moved inwards, over results of the one before."""
        overlaps: Flag = False
        for relation in self.stage.relations:
            if isinstance(relation, Split) and not relation.parent.is_reduce:
                overlaps = overlaps | (self.extents[relation.parent] % self.extents[relation.inner] != 0)
        return overlaps

    def _is_own_tile(self) -> Flag:
        """Whether the memory of the stage holds just these results, and is read in registers: it needs no tile."""
        if self.stage.is_output:
            return False
        axes = (self.stage.loop_of_axis[axis] for axis in self.stage.axes)
        is_tile: Flag = self._num_iterations(axes) == self._num_iterations(self.spatial)
        for consumer in self.stage.schedule.consumers(self.stage):
            for loop in self._read_inside(consumer):
                is_tile = is_tile & self._is_straight(loop)
        return is_tile

    def _num_iterations(self, loops: Iterable[Loop]) -> Extent:
        total: Extent = 1
        for loop in loops:
            total = total * self.extents[loop]
        return total

    def _read_inside(self, consumer: Stage) -> tuple[Loop, ...]:
        """The loops of a consumer that run while the results are there."""
        leaves, level = consumer.leaves, self.stage.attach_loop
        return leaves[leaves.index(level) + 1 :] if level in leaves else leaves
