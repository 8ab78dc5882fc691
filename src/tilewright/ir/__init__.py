"""The loop nest that a concrete schedule lowers to."""

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
from tilewright.ir.walk import (
    expressions,
    forms,
    operands,
    statements,
    used_buffers,
    used_variables,
    values_of,
    written_buffers,
)

__all__ = [
    "INPUT",
    "LOCAL",
    "OUTPUT",
    "PACKED",
    "Block",
    "Buffer",
    "For",
    "Index",
    "Load",
    "LoopNest",
    "Module",
    "Pack",
    "Stmt",
    "Store",
    "Test",
    "Update",
    "Where",
    "build_nests",
    "expressions",
    "format_nest",
    "forms",
    "lower",
    "operands",
    "statements",
    "used_buffers",
    "used_variables",
    "values_of",
    "verify",
    "written_buffers",
]  # fmt: skip
