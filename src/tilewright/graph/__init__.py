"""The graph of a network: read from ONNX in `onnx/`, rewritten in `passes/`, run node by node in `evaluation/`."""

from tilewright.graph.graph import Graph

__all__ = ["Graph"]
