"""Functions that a model brings along: nested ones are inlined, those without end are refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import FunctionProto, ModelProto, NodeProto

from tests.graph.onnx_models import graph, model, node, reference, tensor
from tilewright.errors import ModelError
from tilewright.graph.onnx import functions, load_model
from tilewright.testing.graph_reference import evaluate

OPSETS = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("local", 1)]


def call(name: str, source: str, result: str) -> NodeProto:
    return onnx.helper.make_node(name, [source], [result], domain="local")


def function(name: str, nodes: Sequence[NodeProto]) -> FunctionProto:
    """A function from the value a to the value b."""
    return onnx.helper.make_function("local", name, ["a"], ["b"], nodes, OPSETS)


def nested(depth: int, num_calls: int) -> ModelProto:
    """Each function calls the one before it some times; the first is a Softsign."""
    made = [function("f0", [node("Softsign", ["a"], ["b"])])]
    for level in range(1, depth):
        values = ["a", *(f"t{n}" for n in range(1, num_calls)), "b"]
        calls = [call(f"f{level - 1}", *values[n : n + 2]) for n in range(num_calls)]
        made.append(function(f"f{level}", calls))
    top = call(f"f{depth - 1}", "x", "y")
    return model([top], [tensor("x", [3])], ["y"], opset_imports=OPSETS, functions=made)


@pytest.mark.parametrize(("depth", "num_calls"), [(1, 1), (40, 1), (5, 2), (3, 5)])
def test_nested_functions_are_inlined(depth: int, num_calls: int) -> None:
    proto = nested(depth, num_calls)
    network = load_model(proto)
    assert [n.op for n in network.nodes] == ["Softsign"] * num_calls ** (depth - 1)
    x = np.array([-2, 0.5, 3], np.float32)
    np.testing.assert_allclose(evaluate(network, {"x": x})["y"], reference(proto, {"x": x})["y"], rtol=1e-5)


@pytest.mark.parametrize(("depth", "number"), [(31, "1,073,741,824"), (90, r"about 2\^90")])
def test_calls_that_double_at_each_level_are_refused_before_they_are_inlined(depth: int, number: str) -> None:
    with pytest.raises(ModelError, match=f"{number} nodes once its functions are inlined, and may have 1,000,000"):
        load_model(nested(depth, 2))


def test_calls_in_subgraphs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    branches = {f"{name}_branch": graph([call("f3", "x", name)], [], [tensor(name, [3])]) for name in ("then", "else")}
    inner = nested(4, 2)
    proto = model(
        [node("If", ["c"], ["y"], **branches)],
        [tensor("x", [3]), tensor("c", [], onnx.TensorProto.BOOL)],
        ["y"],
        opset_imports=OPSETS,
        functions=inner.functions,
    )
    monkeypatch.setattr(functions, "MOST_NODES", 17)
    load_model(proto)
    monkeypatch.setattr(functions, "MOST_NODES", 16)
    with pytest.raises(ModelError, match="17 nodes once"):
        load_model(proto)


@pytest.mark.parametrize(
    ("calls", "circle"),
    [({"f": "f"}, "f -> f"), ({"f": "g", "g": "h", "h": "f"}, r"f -> g -> h -> f|g -> h -> f -> g|h -> f -> g -> h")],
)
def test_functions_that_call_themselves_are_refused(calls: dict[str, str], circle: str) -> None:
    made = [function(name, [call(called, "a", "b")]) for name, called in calls.items()]
    proto = model([call("f", "x", "y")], [tensor("x", [3])], ["y"], opset_imports=OPSETS, functions=made)
    with pytest.raises(ModelError, match=f"call themselves: ({circle}); .*Loop"):
        load_model(proto)


def test_a_chain_of_calls_that_onnx_takes_for_too_long_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="onnx cannot inline .* without functions"):
        load_model(nested(300, 1))


@pytest.mark.parametrize("where", ["graph", "function", "branch"])
def test_attributes_that_a_call_leaves_out_are_those_of_the_function(where: str) -> None:
    text = {
        "graph": "y = local.leaky(x)",
        "function": "y = local.outer(x)",
        "branch": """m = ReduceMax <keepdims = 0> (x) c = Cast <to = 9> (m)
            y = If (c) <then_branch = t () => (float[3] p) { p = local.leaky(x) },
                        else_branch = e () => (float[3] q) { q = Neg(x) }>""",
    }[where]
    proto = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 18, "local": 1]> net (float[3] x) => (float[3] y) {{ {text} }}
        <domain: "local", opset_import: ["": 18]> leaky <slope: float = 0.5>(a) => (b) {{
            b = LeakyRelu <alpha: float = @slope>(a)
        }}
        <domain: "local", opset_import: ["": 18, "local": 1]> outer (a) => (b) {{ b = local.leaky(a) }}
    """)
    x = np.array([-2, 0.5, 3], np.float32)
    assert evaluate(load_model(proto), {"x": x})["y"].tolist() == [-1, 0.5, 3]


def test_a_function_may_give_what_it_takes() -> None:
    proto = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18, "local": 1]> net (float[3] x, float[3] z) => (float[3] y, float[3] w) {
            y, v = local.both(x, z)
            w = local.same(v)
        }
        <domain: "local", opset_import: ["": 18]> both (a, b) => (b, c) { c = Sub(a, b) }
        <domain: "local", opset_import: ["local": 1]> same (a) => (a) {}
    """)
    x, z = np.array([1, 2, 3], np.float32), np.array([5, 5, 7], np.float32)
    found = evaluate(load_model(proto), {"x": x, "z": z})
    assert found["y"].tolist() == z.tolist()
    assert found["w"].tolist() == (x - z).tolist()


def test_a_function_of_another_operator_set_may_read_what_has_no_type() -> None:
    proto = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 1, "local": 1]> net (float[3] x) => (float[3] y) {
            z = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (x)
            y = local.double(z)
        }
        <domain: "local", opset_import: ["": 15]> double (a) => (b) { b = Add(a, a) }
    """)
    x = np.array([1, 2, 3], np.float32)
    assert evaluate(load_model(proto), {"x": x})["y"].tolist() == [0, 4, 8]
