"""The loop nest that a concrete schedule lowers to."""

from tilewright.ir.linear import FromMemory, Interval, Linear, Operation, bounds, floordiv, minimum, modulo, variables
from tilewright.ir.lower import Module, Pack, build_nests, lower
from tilewright.ir.nest import (
    INPUT,
    LOCAL,
    OUTPUT,
    PACKED,
    Block,
    Buffer,
    For,
    Index,
    Load,
    LoopNest,
    Stmt,
    Store,
    Test,
    Update,
    Where,
)
from tilewright.ir.printer import format_nest
from tilewright.ir.verify import verify
from tilewright.ir.walk import expressions, forms, statements, used_buffers, used_variables, values_of, written_buffers

__all__ = [
    "INPUT",
    "LOCAL",
    "OUTPUT",
    "PACKED",
    "Block",
    "Buffer",
    "For",
    "FromMemory",
    "Index",
    "Interval",
    "Linear",
    "Load",
    "LoopNest",
    "Module",
    "Operation",
    "Pack",
    "Stmt",
    "Store",
    "Test",
    "Update",
    "Where",
    "bounds",
    "build_nests",
    "expressions",
    "floordiv",
    "format_nest",
    "forms",
    "lower",
    "minimum",
    "modulo",
    "statements",
    "used_buffers",
    "used_variables",
    "values_of",
    "variables",
    "verify",
    "written_buffers",
]  # fmt: skip
