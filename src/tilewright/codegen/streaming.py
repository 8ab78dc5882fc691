"""Outputs that are written past the caches, by non-temporal stores.

A plain store reads the line that it writes first, and puts it into the caches, from where it goes out again before
anything reads it if the output is larger than they are. A store past the caches moves the line once, and leaves what is
in them there. An output that fits is none for it: the next kernel would find in memory what the cache had.
"""

from __future__ import annotations

from tilewright.ir import OUTPUT, Buffer, Load, LoopNest, Update, expressions, statements, values_of
from tilewright.target import Target

# Bytes that one such store of x86 writes. They must be aligned to as many.
STORE_BYTES = (16, 32, 64)


def streamed_outputs(nest: LoopNest, target: Target) -> tuple[Buffer, ...]:
    """The outputs of a kernel that the caches do not keep, and that it only writes."""
    outputs = [buffer for buffer in nest.arguments if buffer.scope == OUTPUT]
    num_bytes = sum(buffer.num_bytes for buffer in nest.arguments)
    lost = [buffer for buffer in outputs if is_lost(buffer.num_bytes, num_bytes, target.last_cache_bytes)]
    if not lost or not target.has_streaming_stores:
        return ()
    read = _read_buffers(nest)
    return tuple(buffer for buffer in lost if buffer not in read)


def is_lost(output_bytes: int, all_bytes: int, cache_bytes: int) -> bool:
    """Whether little of an output is still in a cache when the kernel that wrote it is done.

    It fills the cache, or half of it next to much more that went through it.
    """
    return 4 * output_bytes > 3 * cache_bytes or (2 * output_bytes >= cache_bytes and all_bytes >= 2 * cache_bytes)


def _read_buffers(nest: LoopNest) -> set[Buffer]:
    """What the nest reads or adds to."""
    found: set[Buffer] = set()
    for stmt in statements(nest.body):
        if isinstance(stmt, Update):
            found.update(stmt.buffers)
        for value in values_of(stmt):
            found.update(e.buffer for e in expressions(value) if isinstance(e, Load))
    return found
