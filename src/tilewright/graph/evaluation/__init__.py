"""Nodes run one by one on the reference evaluator of ONNX: constants at import, and operators without a kernel."""
