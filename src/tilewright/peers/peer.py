"""`peers_of`: the calls of each library that can compute a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from numpy.typing import NDArray

from tilewright.errors import UsageError
from tilewright.peers.shape import Shape

Array = NDArray[Any]

LIBRARIES = ("numpy", "torch")


@dataclass(frozen=True, slots=True)
class Peer:
    """One way of a library: `call` is what is timed, `result` what it computes, in the layout of the workload."""

    call: Callable[[], object]
    result: Callable[[], Array]


def peers_of(workload: str, arrays: Mapping[str, Array], libraries: Sequence[str] = LIBRARIES) -> dict[str, Peer]:
    """The ways of the given libraries to compute a workload of the given inputs, by name.

    Constants are brought into the form that the library likes best before the call, as `Kernel.bind` does. A library
    that has no such operator gives none.
    """
    shape = Shape.parse(workload)
    found: dict[str, Peer] = {}
    for library in libraries:
        if library == "numpy":
            from tilewright.peers.numpy_ways import numpy_ways

            found |= numpy_ways(shape, arrays)
        elif library == "torch":
            _check_installed("torch")
            from tilewright.peers.torch_ways import torch_ways

            found |= torch_ways(shape, arrays)
        else:
            raise UsageError(f"a library to compare with is one of {', '.join(LIBRARIES)}, got {library!r}")
    return found


@contextmanager
def library_threads(threads: int, libraries: Sequence[str]) -> Iterator[None]:
    """Within it the libraries use `threads` threads, and torch tracks no gradients."""
    with ExitStack() as stack:
        if "numpy" in libraries:
            _check_installed("threadpoolctl")
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(limits=threads, user_api="blas"))
        if "torch" in libraries:
            _check_installed("torch")
            import torch

            before = torch.get_num_threads()
            torch.set_num_threads(threads)
            stack.callback(torch.set_num_threads, before)
            stack.enter_context(torch.inference_mode())
        yield


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise UsageError(
            f"the comparison needs {package}, which is not installed; pip install {package}, or leave it out"
        )
