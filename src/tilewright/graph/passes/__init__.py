"""Rewrites of the graph that keep what it computes. A pass takes a graph and gives another; one file a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright.graph.collecting import rare_collections
from tilewright.graph.graph import Graph
from tilewright.graph.passes.affine import fold_affine
from tilewright.graph.passes.attention import fuse_attention
from tilewright.graph.passes.batch_norm import expand_batch_norm
from tilewright.graph.passes.canonical import canonicalize
from tilewright.graph.passes.channels_last import use_channels_last
from tilewright.graph.passes.constants import fold_constants
from tilewright.graph.passes.dead_code import remove_dead_code
from tilewright.graph.passes.flattened_weights import permute_weight_rows
from tilewright.graph.passes.hoisting import hoist_arithmetic
from tilewright.graph.passes.identities import drop_identities
from tilewright.graph.passes.integer_products import use_integer_products
from tilewright.graph.passes.layer_norm import recognize_layer_norm
from tilewright.graph.passes.packed_products import use_packed_products
from tilewright.graph.passes.pads import merge_pads
from tilewright.graph.passes.quantized_forms import expand_quantized_forms
from tilewright.graph.passes.reshapes import merge_movements
from tilewright.graph.passes.sixteen_bits import round_in_floats
from tilewright.graph.passes.slices import reshape_before_slices, split_into_slices
from tilewright.graph.passes.subexpressions import share_subexpressions
from tilewright.graph.passes.transposes import move_transposes
from tilewright.graph.verify import Verifier

__all__ = ["LAST_PASSES", "PASSES", "Pass", "optimize"]

Pass: TypeAlias = Callable[[Graph], Graph]

# What they leave is for kernels: parts and arithmetic where a kernel takes them in passing.
LAST_PASSES: tuple[Pass, ...] = (split_into_slices, reshape_before_slices, hoist_arithmetic, fuse_attention)

PASSES: tuple[Pass, ...] = (
    remove_dead_code,
    drop_identities,
    expand_quantized_forms,
    use_integer_products,
    use_packed_products,
    round_in_floats,
    canonicalize,
    fold_constants,
    share_subexpressions,
    merge_pads,
    expand_batch_norm,
    recognize_layer_norm,
    fold_affine,
    use_channels_last,
    move_transposes,
    recognize_layer_norm,  # of channels, which are last by now
    fold_affine,
    merge_movements,
    permute_weight_rows,
    drop_identities,
    fold_constants,
    share_subexpressions,
    *LAST_PASSES,
)


@rare_collections()
def optimize(graph: Graph, passes: Sequence[Pass] = PASSES) -> Graph:
    """The graph ready to be cut into kernels; the one given stays as it is."""
    verifier = Verifier()
    for run in passes:
        graph = verifier.after(run.__name__, run(graph))
    return graph
