"""Walking and rebuilding expressions: what changes, and that nothing else does."""

from __future__ import annotations

from tilewright import te
from tilewright.te.transform import operands_first

A = te.placeholder((8, 8), name="A")
B = te.placeholder((8,), "int64", name="B")
i = te.reduce_axis(4, name="i")
j = te.reduce_axis(4, name="j")


def _every_kind() -> te.Expr:
    value = te.select(~(i < 2), -A[i, B[j]], te.cast(B[i], "float32")) * 2.0
    return te.sum(te.maximum(value, 0.0), axis=[i, j])


def test_substitute_replaces_a_variable_everywhere() -> None:
    result = te.substitute(_every_kind(), {i: i + 1, j: te.constant(3, "int64")})
    assert str(result) == ("sum(max(select(~(i + 1 < 2), -A[i + 1, B[3]], float32(B[i + 1])) * 2.0, 0.0), axis=[i, j])")


def test_operands_come_first_and_once() -> None:
    shared = A[i, j]
    order = operands_first(te.exp(shared) + shared)
    assert list(map(str, order)) == ["i", "j", "A[i, j]", "exp(A[i, j])", "exp(A[i, j]) + A[i, j]"]
    deep: te.Expr = i
    for _ in range(100_000):
        deep = te.Unary("int64", "neg", deep)
    assert len(operands_first(deep)) == 100_001


def test_substitute_does_all_variables_at_once() -> None:
    assert str(te.substitute(i - j, {i: j, j: i})) == "j - i"


def test_untouched_expressions_are_returned_as_they_are() -> None:
    e = _every_kind()
    absent = te.Var("int64", "absent")
    assert te.substitute(e, {}) is e
    assert te.substitute(e, {absent: i}) is e
    assert te.rewrite(e, lambda _: None) is e
    assert te.replace_reads(e, lambda _: None) is e


def test_only_the_changed_side_is_rebuilt() -> None:
    left, right = A[i, i] * 2.0, A[j, j] * 3.0
    result = te.substitute(left + right, {j: i})
    assert isinstance(result, te.Binary)
    assert result.a is left
    assert result.b is not right


def test_rewrite_sees_rewritten_operands_first() -> None:
    seen: list[str] = []

    def double(e: te.Expr) -> te.Expr | None:
        seen.append(str(e))
        return te.constant(e.value * 2, e.dtype) if isinstance(e, te.Const) else None

    assert str(te.rewrite(i * 3 + 1, double)) == "i * 6 + 2"
    assert seen == ["i", "3", "i * 6", "1", "i * 6 + 2"]


def test_replace_reads_replaces_reads_in_indices_first() -> None:
    def shift(read: te.Read) -> te.Expr | None:
        return read.indices[0] + 1 if read.tensor is B else None

    assert str(te.replace_reads(A[i, B[B[j]]], shift)) == "A[i, j + 1 + 1]"


def test_collect_reads_goes_left_to_right_and_once_a_node() -> None:
    read = A[i, B[j]]
    assert [str(r) for r in te.collect_reads(read * B[i] + read)] == ["A[i, B[j]]", "B[j]", "B[i]"]


def test_shared_nodes_are_visited_and_rebuilt_once() -> None:
    e: te.Expr = A[i, j]
    for _ in range(100):
        e = e + e
    nodes: list[te.Expr] = []
    te.visit(e, nodes.append)
    assert len(nodes) == 103
    result = te.substitute(e, {i: j})
    assert isinstance(result, te.Binary)
    assert result.a is result.b
    nodes.clear()
    te.visit(result, nodes.append)
    assert len(nodes) == 102


def test_children_are_the_operands_left_to_right() -> None:
    e = te.select(i < j, A[i, j], 0.0)
    assert [str(c) for c in te.children(e)] == ["i < j", "A[i, j]", "0.0"]
    assert te.children(i) == ()
