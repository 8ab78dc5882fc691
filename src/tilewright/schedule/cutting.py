"""When lowering cuts a loop where the conditions inside it change, such as those of padding.

Each piece has a copy of the body in which fewer conditions are left; these rules bound the copies. They hold for one
schedule or for every candidate of a population.
"""

from __future__ import annotations

from tilewright.schedule.loop import Extent
from tilewright.te.index import Flag, choose, minimum

MAX_PIECES = 4
# Of one body, over all loops around it.
MAX_COPIES = 9
# Beyond so many iterations a loop is left as it is: every one of them is looked at.
MAX_ITERATIONS = 1 << 24


def may_be_cut(is_unrolled: Flag, extent: Extent) -> Flag:
    """Whether the loop may be cut at all: one that is written out is in pieces already."""
    return (extent <= MAX_ITERATIONS) & (is_unrolled ^ True)


def is_cut(num_pieces: Extent, copies: Extent) -> Flag:
    """Whether a loop is cut into so many pieces where `copies` of its body are left to make."""
    return num_pieces <= minimum(MAX_PIECES, copies)


def copies_left(num_pieces: Extent, copies: Extent) -> Extent:
    """How many copies may still be made of what is in one piece."""
    left: Extent = choose(is_cut(num_pieces, copies), copies // num_pieces, copies)
    return left
