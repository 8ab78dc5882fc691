"""The functions that a model brings along: their nodes take the place of their calls, unless that has no end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

import onnx.inliner
from onnx import FunctionProto, ModelProto, NodeProto
from onnx.checker import ValidationError

from tilewright.errors import ModelError
from tilewright.graph.naming import FreshNames
from tilewright.graph.onnx.conversion import with_functions_inlined
from tilewright.graph.protos import find_schema, normal_domain, subgraphs
from tilewright.operators import ONNX

_Name: TypeAlias = tuple[str, str, str]
"""Domain, name and overload."""

MOST_NODES = 1_000_000
"""That a model may have once its functions are inlined: two calls a level make 2^20 of twenty levels."""


def inline_functions(model: ModelProto) -> ModelProto:
    """The model with the calls of the functions that it brings along replaced by their nodes."""
    if not model.functions:
        return model
    _check_size(model)
    model = _with_own_opsets(_with_copies(_with_defaults(model)))
    try:
        inlined = onnx.inliner.inline_local_functions(model)
    except (ValidationError, RuntimeError, ValueError) as error:
        raise ModelError(
            f"onnx cannot inline the functions of the model: {error}; export the model without functions"
        ) from error
    if not _calls_functions(inlined):
        return inlined
    # What is left is written for another version of the operators than the model asks for.
    try:
        return with_functions_inlined(model)
    except ModelError as error:
        raise ModelError(
            f"the model has functions of another operator set than its own, and onnx cannot convert them: {error}; "
            f"export the model with one operator set"
        ) from error


def _with_defaults(model: ModelProto) -> ModelProto:
    """The model with the attributes that functions give where their calls leave them out: onnx forgets these."""
    defaults = {_name(function): function.attribute_proto for function in model.functions if function.attribute_proto}
    if not defaults:
        return model
    changed = ModelProto()
    changed.CopyFrom(model)
    waiting = [*changed.graph.node, *(node for function in changed.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        given = {attribute.name for attribute in node.attribute}
        node.attribute.extend(a for a in defaults.get(_called(node), ()) if a.name not in given)
        for graph in subgraphs(node):
            waiting.extend(graph.node)
    return changed


def _with_copies(model: ModelProto) -> ModelProto:
    """The model with functions that compute what they give: onnx forgets an output that is one of the inputs."""
    if not any(set(function.output).intersection(function.input) for function in model.functions):
        return model
    changed = ModelProto()
    changed.CopyFrom(model)
    for function in changed.functions:
        _copy_inputs(function, {normal_domain(entry.domain): entry.version for entry in changed.opset_import})
    return changed


def _copy_inputs(function: FunctionProto, opsets: Mapping[str, int]) -> None:
    taken = {*function.input, *function.output, *(name for node in function.node for name in node.output)}
    fresh = FreshNames(taken)
    for position, name in enumerate(function.output):
        if name in function.input:
            function.output[position] = fresh(name)
            function.node.add(op_type="Identity", input=[name], output=[function.output[position]])
    if ONNX not in {normal_domain(entry.domain) for entry in function.opset_import} and ONNX in opsets:
        function.opset_import.add(domain=ONNX, version=opsets[ONNX])


def _with_own_opsets(model: ModelProto) -> ModelProto:
    """The model with functions of its own operator sets, where what they use is the same there.

    Else onnx has to convert them, for which it needs to know the types of all values.
    """
    opsets = {normal_domain(entry.domain): entry.version for entry in model.opset_import}
    changed = ModelProto()
    changed.CopyFrom(model)
    for function in changed.functions:
        for entry in function.opset_import:
            version = opsets.get(normal_domain(entry.domain), entry.version)
            if version != entry.version and _is_same(function, normal_domain(entry.domain), entry.version, version):
                entry.version = version
    return changed


def _is_same(function: FunctionProto, domain: str, old: int, new: int) -> bool:
    """Whether all operators of a domain that a function uses are the same in two versions of it."""
    used = [op for place, op, _ in _operators(function.node) if place == domain]
    found = [(find_schema(op, old, domain), find_schema(op, new, domain)) for op in used]
    return all(a is not None and b is not None and a.since_version == b.since_version for a, b in found)


def _calls_functions(model: ModelProto) -> bool:
    names = {_name(function) for function in model.functions}
    return any(_called(node) in names for node in model.graph.node)


def _check_size(model: ModelProto) -> None:
    """The model has an end once its functions are inlined, and not too far away."""
    operators = {_name(function): _operators(function.node) for function in model.functions}
    calls = {name: [called for called in found if called in operators] for name, found in operators.items()}
    sizes: dict[_Name, int] = {}
    try:
        for name in TopologicalSorter(calls).static_order():
            sizes[name] = _size(operators[name], sizes)
    except CycleError as error:
        circle = " -> ".join(name for _, name, _ in reversed(error.args[1]))
        raise ModelError(
            f"functions of the model call themselves: {circle}; ONNX has no recursion, write it as a Loop"
        ) from error
    size = _size(_operators(model.graph.node), sizes)
    if size > MOST_NODES:
        raise ModelError(
            f"the model has {_text(size)} nodes once its functions are inlined, and may have {MOST_NODES:,}; "
            f"export it with fewer calls of functions that call others"
        )


def _size(operators: Counter[_Name], sizes: dict[_Name, int]) -> int:
    return sum(number * sizes.get(name, 1) for name, number in operators.items())


def _operators(nodes: Iterable[NodeProto]) -> Counter[_Name]:
    """How often each operator or function stands among the nodes and in their subgraphs."""
    found: Counter[_Name] = Counter()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        found[_called(node)] += 1
        for graph in subgraphs(node):
            waiting.extend(graph.node)
    return found


def _name(function: FunctionProto) -> _Name:
    return normal_domain(function.domain), function.name, function.overload


def _called(node: NodeProto) -> _Name:
    return normal_domain(node.domain), node.op_type, node.overload


def _text(size: int) -> str:
    return f"{size:,}" if size < 10**15 else f"about 2^{size.bit_length()}"
