"""What has to hold before ONNX's own inference is called: on some nodes its native code crashes, or never returns.

Found by trying every attribute of every operator with odd values, and operands of every rank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from onnx import TypeProto

from tilewright.operators import ONNX, Node

_EQUATION = re.compile(r"[A-Za-z., ]*(->[A-Za-z. ]*)?")


_LARGEST_RANK = 1024


def reason_against(node: Node, inputs: Sequence[TypeProto | None]) -> str | None:
    """Why ONNX must not be asked for the types of this node, given those of its inputs; None where it may."""
    if node.domain != ONNX:
        return None
    shapes = [_shape(proto) for proto in inputs]
    rank = len(shapes[0]) if shapes and shapes[0] is not None else None
    axis = node.attributes.get("axis", 0)
    # Some operators name a place between axes: one more than the rank is theirs to judge.
    if isinstance(axis, int) and rank is not None and not -rank - 1 <= axis <= rank + 1:
        return f"axis {axis} is outside of its {rank} dimensions"
    match node.op:
        case "Einsum" if not _EQUATION.fullmatch(str(node.attributes.get("equation"))):
            return f"{node.attributes.get('equation')!r} is not an equation"
        case "Expand" if max((size for size in shapes[1] or ()), default=0) > _LARGEST_RANK:
            return f"its shape has {shapes[1]} numbers"
        case "GatherND" if not _is_within(node, "batch_dims", 0, rank):
            return f"batch_dims {node.attributes['batch_dims']!r} are not the first of its {rank} dimensions"
        case "Split" if node.attributes.get("num_outputs", len(node.outputs)) != len(node.outputs):
            return f"num_outputs is {node.attributes['num_outputs']!r}, but it has {len(node.outputs)} outputs"
        case _:
            return None


def _shape(proto: TypeProto | None) -> tuple[int, ...] | None:
    if proto is None or not proto.tensor_type.HasField("shape"):
        return None
    return tuple(dim.dim_value for dim in proto.tensor_type.shape.dim)


def _is_within(node: Node, attribute: str, low: int, high: int | None) -> bool:
    value = node.attributes.get(attribute, low)
    return isinstance(value, int) and low <= value and (high is None or value <= high)
