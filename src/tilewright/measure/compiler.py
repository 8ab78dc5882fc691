"""The function that builders call to compile a candidate, and how another is put in its place."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Protocol, cast

from tilewright.codegen import KernelBinary
from tilewright.codegen.reuse import CodeShelf
from tilewright.errors import UsageError
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task


class Compiler(Protocol):
    """What `MeasureOptions.compiler` names: a function of a module that builders can import.

    The entry of the binary has the C type `tw_kernel` of runtime/native/tilewright_runtime.h: it takes the inputs of
    the task and then the outputs. ScheduleError and LoweringError make a trial INVALID, any other exception a
    BUILD_ERROR.
    """

    def __call__(self, task: Task, trace: Trace, target: Target, threads: int) -> KernelBinary: ...


def compile_trace(task: Task, trace: Trace, target: Target, threads: int) -> KernelBinary:
    """The tilewright compiler, which uses again what it compiled for other candidates."""
    return _shelf(target, threads).compile(trace.apply(task))


@lru_cache(maxsize=2)
def _shelf(target: Target, threads: int) -> CodeShelf:
    return CodeShelf(target, threads)


def find_compiler(name: str) -> Compiler:
    """The function that "module:function" names."""
    module, _, function = name.partition(":")
    try:
        return cast(Compiler, getattr(import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the measure option compiler is {name!r}, which cannot be imported: {error}") from error
