"""What each thread touches of a parallel loop, and what its caches must fetch for that.

The parallel loop is often several loops in one, as `i@j`. A thread runs a contiguous slice of its iterations, so that
along the inner parts the same rows come again soon, and along the outer ones only after everything inside. What a
thread touches as a whole stays in its cache from one call of the kernel to the next, if it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tilewright.features.accesses import READ_WRITE, Access
from tilewright.features.analysis import Statement
from tilewright.features.hardware import Hardware
from tilewright.features.regions import Floats
from tilewright.schedule import PARALLEL, Loop


@dataclass(frozen=True, slots=True)
class Slice:
    """The statements inside one parallel loop, as one thread runs them.

    `extents` are those of the parts of the loop, outermost first, for one thread. Row k of `lines` and of
    `touched_lines`, which are lines of a cache that all statements take, is for the parts from k on running and those
    outside standing still; the last row is for one iteration.
    """

    parts: tuple[Loop, ...]
    extents: Floats
    touched_lines: Floats

    def lines(self, access: Access) -> Floats:
        """Lines that the access touches."""
        lines = np.empty((len(self.parts) + 1, self.extents.shape[1]))
        lines[-1] = access.lines[1]
        for k in range(len(self.parts) - 1, -1, -1):
            moves = self.parts[k] in access.parts
            lines[k] = lines[k + 1] * (self.extents[k] if moves else 1.0)
        np.minimum(lines, access.lines[0], out=lines)
        return lines

    def moved(self, statement: Statement, cache_lines: float) -> tuple[Floats, Floats]:
        """Lines that a cache of that size fetches and writes back while the thread runs its slice; in how many runs.

        Data that one iteration of a part touches is still there in the next one if everything that an iteration
        touches fits: from the outermost such part on, everything is moved once.
        """
        level = np.count_nonzero(self.touched_lines[1:] > cache_lines, axis=0)
        columns = np.arange(self.extents.shape[1])
        times = np.concatenate([np.ones((1, len(columns))), np.cumprod(self.extents, axis=0)])[level, columns]
        total, runs = np.zeros(len(columns)), np.zeros(len(columns))
        for access in statement.accesses:
            lines = self.lines(access)[level, columns] * times
            total += lines * (2 if access.kind == READ_WRITE else 1)
            runs += lines * statement.runs_per_line(access)
        return total, runs


def find_slices(statements: list[Statement], hardware: Hardware) -> dict[Loop, Slice]:
    """The slice of each parallel loop that is outermost around some statements."""
    inside: dict[Loop, list[Statement]] = {}
    for statement in statements:
        if (loop := outermost_parallel(statement)) is not None:
            inside.setdefault(loop, []).append(statement)
    return {loop: _slice(loop, found, hardware) for loop, found in inside.items()}


def outermost_parallel(statement: Statement) -> Loop | None:
    """The first loop around the statement, if its iterations are shared among the threads."""
    loop = statement.path.loops[0] if statement.path.loops else None
    return loop if loop is not None and loop.annotation == PARALLEL else None


def _slice(loop: Loop, statements: list[Statement], hardware: Hardware) -> Slice:
    cache_lines = hardware.l1_bytes / hardware.line_bytes
    n = statements[0].n
    parts = loop.stage.parts_of(loop)
    extents = _of_one_thread(np.stack([_extent(part, n) for part in parts]), hardware.threads)
    found = Slice(parts, extents, np.zeros((len(parts) + 1, n)))
    touched: dict[str, Floats] = {}
    for access in (access for statement in statements for access in statement.accesses):
        lines = _taken(access, found.lines(access), cache_lines)
        touched[access.buffer] = np.maximum(touched.get(access.buffer, lines), lines)
    for lines in touched.values():
        np.add(found.touched_lines, lines, out=found.touched_lines)
    return found


def _taken(access: Access, lines: Floats, cache_lines: float) -> Floats:
    """Of a cache, what the lines take: they crowd it as those of one iteration do, but no more than all together."""
    taken = access.taken_lines(cache_lines)
    taken_now: Floats = np.minimum(lines * (taken[1] / access.lines[1]), np.maximum(taken[0], lines))
    return taken_now


def _extent(loop: Loop, n: int) -> Floats:
    return cast(Floats, np.broadcast_to(np.asarray(loop.extent, np.float64), (n,)))


def _of_one_thread(extents: Floats, threads: int) -> Floats:
    """The extents with the outermost ones divided among the threads."""
    left = np.full(extents.shape[1], float(threads))
    result = np.empty_like(extents)
    for k, extent in enumerate(extents):
        ways = np.minimum(extent, left)
        result[k] = np.ceil(extent / ways)
        left = np.ceil(left / ways)
    return result
