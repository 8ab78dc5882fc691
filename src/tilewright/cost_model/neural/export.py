"""From a network in torch to one in ONNX, whose weights are inputs like the programs.

So the same network, compiled once, runs with any weights: those of another training, or after an update.
"""

from __future__ import annotations

import copy
import io
import warnings

import onnx
import torch
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.cost_model.neural.inference import MASK, SCORES, VALUES
from tilewright.cost_model.neural.modules.program_module import ProgramModule
from tilewright.errors import UsageError

OPSET = 18
_PROGRAMS, _ROWS = "programs", "rows"
_CONSTANT = "Constant"


def export(module: ProgramModule, num_columns: int, num_rows: int | None = None) -> bytes:
    """The ONNX model, for any number of programs, and of rows unless `num_rows` says how many.

    Its inputs are the values, the mask and the weights by the names that torch has for them, all of them, in that
    order. It depends on the network alone, and not on what was learned.
    """
    _check_names(module)
    model = _exported(module, num_columns, num_rows)
    _fold_constants(model)
    found = {value.name: value for value in model.graph.input}
    mask = helper.make_tensor_value_info(MASK, TensorProto.FLOAT, [_PROGRAMS, num_rows or _ROWS])
    weights = [
        found.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, list(weight.shape))
        for name, weight in module.state_dict().items()
    ]
    inputs = [found[VALUES], found.get(MASK) or mask, *weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    del model.graph.value_info[:]
    serialized: bytes = model.SerializeToString(deterministic=True)
    return serialized


def _check_names(module: ProgramModule) -> None:
    taken = sorted({VALUES, MASK, SCORES}.intersection(module.state_dict()))
    if taken:
        raise UsageError(
            f"the weights of a network have names other than {VALUES}, {MASK} and {SCORES}, which are those of what it "
            f"reads and gives, got {taken[0]}; rename it in the module"
        )


def _exported(module: ProgramModule, num_columns: int, num_rows: int | None) -> ModelProto:
    rows = 8 if num_rows is None else num_rows
    programs = torch.zeros(2, rows, num_columns), torch.ones(2, rows)
    axes = {0: _PROGRAMS} if num_rows is not None else {0: _PROGRAMS, 1: _ROWS}
    file = io.BytesIO()
    with warnings.catch_warnings():
        # The exporter that traces is the one that leaves plain operators; torch tells of a newer one.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _with_distinct_weights(module),
            programs,
            file,
            dynamo=False,
            export_params=False,
            do_constant_folding=False,
            opset_version=OPSET,
            input_names=[VALUES, MASK],
            output_names=[SCORES],
            dynamic_axes={VALUES: axes, MASK: axes, SCORES: {0: _PROGRAMS}},
        )
    return onnx.load_model_from_string(file.getvalue())


def _with_distinct_weights(module: ProgramModule) -> ProgramModule:
    """The exporter takes weights that are equal, such as biases that are still 0, for one and the same."""
    copied = copy.deepcopy(module)
    copied.eval()
    for number, tensor in enumerate(copied.state_dict().values()):
        tensor.fill_(number)
    return copied


def _fold_constants(model: ModelProto) -> None:
    """Compute what depends on constants alone, as places in a shape: the types of all values then follow from shapes.

    What is left are the nodes that depend on inputs, and the constants that these read.
    """
    graph = model.graph
    constant: set[str] = set()
    for node in graph.node:
        if all(name in constant for name in node.input):
            constant.update(node.output)
    folded = [node for node in graph.node if constant.issuperset(node.output)]
    kept = [node for node in graph.node if not constant.issuperset(node.output)]
    read = sorted({name for node in kept for name in node.input} & constant)
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in read]
    sub = GraphProto(name="constants", node=folded, output=outputs)
    values = ReferenceEvaluator(
        ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=sub)
    ).run(None, {})
    constants = [
        helper.make_node(_CONSTANT, [], [name], value=numpy_helper.from_array(value))
        for name, value in zip(read, values, strict=True)
    ]
    del graph.node[:]
    graph.node.extend([*constants, *kept])
