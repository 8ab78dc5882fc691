"""Networks: ONNX in, operators, passes, partition into tasks, memory plan, executor and artifact."""

from tilewright.graph.graph import ONNX, OWN, Graph, Node, TensorType

__all__ = ["ONNX", "OWN", "Graph", "Node", "TensorType"]
