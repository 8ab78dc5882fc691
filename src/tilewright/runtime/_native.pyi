from typing import Any

from typing_extensions import Buffer

class NativeKernel:
    """A compiled kernel; called with its inputs and then its outputs, which it writes."""

    name: str
    def __new__(
        cls,
        name: str,
        entry_address: int,
        arguments: tuple[tuple[str, str, tuple[int, ...], bool], ...],
        workspace_bytes: int,
        scratch_bytes: int,
        num_threads: int,
        keepalive: object,
    ) -> NativeKernel: ...
    def __call__(self, *arrays: Any) -> None: ...
    def time(
        self, arrays: tuple[Any, ...], number: int, turns: tuple[int, tuple[tuple[int, int, int], ...]] | None = None
    ) -> float: ...
    def check(self, position: int, array: Any, /) -> None: ...

class NativeProgram:
    """The kernel calls of a network; called with its inputs and then its outputs, which it writes.

    A step is (entry_address, workspace_offset, slots), a slot (place, position): place 0 is the array that is passed
    at that position, 1 the offset in the arena, 2 the constant.
    """

    name: str
    def __new__(
        cls,
        name: str,
        arguments: tuple[tuple[str, str, tuple[int, ...], bool], ...],
        constants: tuple[Any, ...],
        steps: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...],
        arena_bytes: int,
        scratch_bytes: int,
        num_threads: int,
        keepalive: object,
    ) -> NativeProgram: ...
    def __call__(self, *arrays: Any) -> None: ...
    def time(self, arrays: tuple[Any, ...], number: int) -> float: ...
    def profile(self, arrays: tuple[Any, ...], /) -> tuple[float, ...]: ...

class AlignedMemory(Buffer):
    """A writable block of memory that starts on a cache line."""

    def __new__(cls, nbytes: int) -> AlignedMemory: ...

def num_workers() -> int: ...
def time_empty_regions(num_threads: int, number: int, /) -> float: ...
def probe_cores(num_threads: int, /) -> tuple[float, float] | None: ...
