"""The operators of networks as tensor expressions. `registry` says how one is written; each module has a family."""

from tilewright.graph.operators import convolution as convolution
from tilewright.graph.operators import transposed_convolution as transposed_convolution
from tilewright.graph.operators.registry import (
    Call,
    NotCompilableError,
    express,
    has_expression,
    operator,
)

__all__ = ["Call", "NotCompilableError", "express", "has_expression", "operator"]
