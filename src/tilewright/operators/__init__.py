"""The operators of networks: their tensor expressions, and what is known of them.

`registry` says how an operator is written; each module has a family of them.
"""

from tilewright.operators import activations as activations
from tilewright.operators import arithmetic as arithmetic
from tilewright.operators import channel_normalization as channel_normalization
from tilewright.operators import convolution as convolution
from tilewright.operators import cumulative as cumulative
from tilewright.operators import einsum as einsum
from tilewright.operators import elementwise as elementwise
from tilewright.operators import generation as generation
from tilewright.operators import grid_sample as grid_sample
from tilewright.operators import indexing as indexing
from tilewright.operators import loss as loss
from tilewright.operators import matmul as matmul
from tilewright.operators import movement as movement
from tilewright.operators import normalization as normalization
from tilewright.operators import packed_weights as packed_weights
from tilewright.operators import padding as padding
from tilewright.operators import pooling as pooling
from tilewright.operators import quantize as quantize
from tilewright.operators import quantized as quantized
from tilewright.operators import random as random
from tilewright.operators import reductions as reductions
from tilewright.operators import reshape as reshape
from tilewright.operators import resize as resize
from tilewright.operators import rotary as rotary
from tilewright.operators import scattering as scattering
from tilewright.operators import softmax as softmax
from tilewright.operators import sorting as sorting
from tilewright.operators import transposed_convolution as transposed_convolution
from tilewright.operators import trigonometry as trigonometry
from tilewright.operators import words as words
from tilewright.operators.movement import transpose_order
from tilewright.operators.node import ONNX, OWN, Attribute, Node, TensorType
from tilewright.operators.reductions import reduced_axes
from tilewright.operators.registry import (
    Call,
    Facts,
    KnownValues,
    MisfitError,
    NotCompilableError,
    axis_attribute,
    express,
    facts_of,
    has_expression,
    is_random,
    operator,
)

__all__ = [
    "ONNX",
    "OWN",
    "Attribute",
    "Call",
    "Facts",
    "KnownValues",
    "MisfitError",
    "Node",
    "NotCompilableError",
    "TensorType",
    "axis_attribute",
    "express",
    "facts_of",
    "has_expression",
    "is_random",
    "operator",
    "reduced_axes",
    "transpose_order",
]
