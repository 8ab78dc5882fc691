"""A compiler for the measurer that fails, as `MeasureOptions.compiler` names it."""

from __future__ import annotations

from tilewright.binary import KernelBinary
from tilewright.codegen import Target
from tilewright.errors import CodegenError
from tilewright.schedule import Trace
from tilewright.task import Task


def compile_nothing(task: Task, trace: Trace, target: Target, threads: int) -> KernelBinary:
    raise CodegenError("this compiler builds nothing")
