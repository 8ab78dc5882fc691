"""What an index reaches."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import te
from tilewright.te.index import index_range

I = te.placeholder((4,), "int32", name="I")  # noqa: E741

_AXES = (te.reduce_axis(5, name="i"), te.reduce_axis(3, name="j"))
_INDICES: st.SearchStrategy[te.Expr] = st.recursive(
    st.sampled_from(_AXES) | st.integers(-9, 9).map(lambda n: te.constant(n, "int64")),
    lambda inner: (
        st.tuples(st.sampled_from(["add", "sub", "mul", "min", "max"]), inner, inner).map(lambda t: te.binary(*t))
        | st.tuples(st.sampled_from(["floordiv", "mod"]), inner, st.integers(1, 7)).map(lambda t: te.binary(*t))
        | inner.map(lambda e: -e)
    ),
    max_leaves=8,
)


@given(_INDICES)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_range_of_an_index_is_what_its_values_reach(index: te.Expr) -> None:
    scope = {"min": min, "max": max}
    values = [
        int(eval(str(index), scope, {"i": i, "j": j})) for i, j in product(*(range(axis.extent) for axis in _AXES))
    ]
    assert index_range(index) == (min(values), max(values))


def test_ranges_of_data_and_wrapping_indices_are_unknown() -> None:
    i = te.reduce_axis(200, name="i")
    assert index_range(I[i]) is None
    assert index_range(te.cast(i, "int8")) is None
    assert index_range(te.cast(i, "int32") * 2**24) is None
    assert index_range(7 // i) is None


def test_the_interval_is_used_where_a_grid_is_too_large_to_evaluate() -> None:
    i = te.reduce_axis(2**30, name="i")
    assert index_range(i - i % 4) == (-3, 2**30 - 1)
    assert index_range(i * 2 + 1) == (1, 2**31 - 1)
