"""A compiler for the measurer that fails, as `MeasureOptions.compiler` names it."""

from __future__ import annotations

from tilewright.codegen import KernelBinary
from tilewright.errors import CodegenError
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task


def compile_nothing(task: Task, trace: Trace, target: Target, threads: int) -> KernelBinary:
    raise CodegenError("this compiler builds nothing")
