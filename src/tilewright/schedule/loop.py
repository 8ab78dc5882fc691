"""Loops of a stage and how they came about: by splitting one loop or fusing several.

An extent is an int, or an array with one entry for each candidate of a population: everything in this package
is arithmetic that holds for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tilewright.te import Var
from tilewright.te.index import Number

if TYPE_CHECKING:
    from tilewright.schedule.stage import Stage

Extent: TypeAlias = Number

SERIAL, PARALLEL, VECTORIZE, UNROLL = "serial", "parallel", "vectorize", "unroll"
DONE = {SERIAL: "serial", PARALLEL: "parallel", VECTORIZE: "vectorized", UNROLL: "unrolled"}

# Lowering cuts a vectorized loop of more than MAX_LANES iterations into vectors of STRIP_LANES.
MAX_LANES, STRIP_LANES = 64, 32
# How often a loop may run that is written out, and to how many statements all of a kernel may be.
# LLVM's time grows faster than straight code does: what stays within these takes seconds, twice as much takes minutes.
MAX_UNROLL, MAX_STATEMENTS = 1024, 8192


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """One loop of a stage, known by name within it. `var` stands for its value in expressions."""

    name: str
    var: Var
    is_reduce: bool
    stage: Stage

    @property
    def extent(self) -> Extent:
        """How often the loop runs (for an attached stage: as its consumers need it)."""
        return self.stage.schedule.extents[self]

    @property
    def annotation(self) -> str:
        return self.stage.annotations.get(self, SERIAL)

    def __repr__(self) -> str:
        return f"Loop({self.stage.name}.{self.name})"


@dataclass(frozen=True, eq=False, slots=True)
class Split:
    """`parent` runs as `outer` times `inner` iterations; a factor above the extent means the whole loop.

    Where the factor does not divide: a spatial parent shifts its last tile inwards, a reduction skips what is beyond.
    """

    parent: Loop
    factor: Extent
    outer: Loop
    inner: Loop


@dataclass(frozen=True, eq=False, slots=True)
class Fuse:
    """`first` and `second`, neighbours in the nest, run as the one loop `fused`."""

    first: Loop
    second: Loop
    fused: Loop


Relation: TypeAlias = Split | Fuse
