"""`RandomGraph`: a model, what it is run on, and what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto

from tilewright.testing.random_graphs.draft import Array


@dataclass(frozen=True, slots=True)
class RandomGraph:
    """A model with inputs. `shapes` are those of inputs whose dimensions it leaves open."""

    model: ModelProto
    inputs: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, Array]
    """What every value is by the reference evaluator, node by node."""
