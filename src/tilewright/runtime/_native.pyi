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
    def time(self, arrays: tuple[Any, ...], number: int) -> float: ...
    def check(self, position: int, array: Any, /) -> None: ...

class AlignedMemory(Buffer):
    """A writable block of memory that starts on a cache line."""

    def __new__(cls, nbytes: int) -> AlignedMemory: ...

def num_workers() -> int: ...
def time_empty_regions(num_threads: int, number: int, /) -> float: ...
