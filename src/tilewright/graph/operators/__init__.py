"""The operators of networks as tensor expressions. `registry` says how one is written; each module has a family."""

from tilewright.graph.operators import activations as activations
from tilewright.graph.operators import arithmetic as arithmetic
from tilewright.graph.operators import channel_normalization as channel_normalization
from tilewright.graph.operators import convolution as convolution
from tilewright.graph.operators import cumulative as cumulative
from tilewright.graph.operators import einsum as einsum
from tilewright.graph.operators import elementwise as elementwise
from tilewright.graph.operators import generation as generation
from tilewright.graph.operators import grid_sample as grid_sample
from tilewright.graph.operators import indexing as indexing
from tilewright.graph.operators import loss as loss
from tilewright.graph.operators import matmul as matmul
from tilewright.graph.operators import movement as movement
from tilewright.graph.operators import normalization as normalization
from tilewright.graph.operators import padding as padding
from tilewright.graph.operators import pooling as pooling
from tilewright.graph.operators import quantize as quantize
from tilewright.graph.operators import quantized as quantized
from tilewright.graph.operators import reductions as reductions
from tilewright.graph.operators import reshape as reshape
from tilewright.graph.operators import resize as resize
from tilewright.graph.operators import rotary as rotary
from tilewright.graph.operators import scattering as scattering
from tilewright.graph.operators import softmax as softmax
from tilewright.graph.operators import sorting as sorting
from tilewright.graph.operators import transposed_convolution as transposed_convolution
from tilewright.graph.operators import trigonometry as trigonometry
from tilewright.graph.operators.registry import (
    Call,
    KnownValues,
    MisfitError,
    NotCompilableError,
    express,
    has_expression,
    operator,
)

__all__ = ["Call", "KnownValues", "MisfitError", "NotCompilableError", "express", "has_expression", "operator"]
