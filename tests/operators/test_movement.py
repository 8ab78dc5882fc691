"""Operators that move elements, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.operators.nodes import reference
from tilewright.operators import NotCompilableError
from tilewright.testing.operators import run_operator

X = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)


@pytest.mark.parametrize("perm", [None, [0, 2, 3, 1], [3, 1, 0, 2], [0, 1, 2, 3]])
def test_transpose(perm: list[int] | None) -> None:
    attributes: dict[str, Any] = {} if perm is None else {"perm": perm}
    np.testing.assert_array_equal(run_operator("Transpose", X, **attributes)[0], X.transpose(perm))


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(0, 5, 1), (1, 4, 2), (-1, -6, -1), (4, -(2**62), -2), (1, 2**62, 3), (-100, 3, 1), (3, 0, -1), (100, 0, -3)],
)
def test_slices_are_bounded_as_python_bounds_them(start: int, end: int, step: int) -> None:
    operands = [np.array([n]) for n in (start, end, -1, step)]
    np.testing.assert_array_equal(run_operator("Slice", X, *operands)[0], X[..., start:end:step])


def test_slices_of_several_axes() -> None:
    operands = [np.array(numbers) for numbers in ([1, -1], [3, -4], [1, 2], [1, -2])]
    np.testing.assert_array_equal(run_operator("Slice", X, *operands)[0], X[:, 1:3, -1:-4:-2])


def test_a_slice_without_elements_is_not_compiled() -> None:
    with pytest.raises(NotCompilableError, match="holds no elements"):
        run_operator("Slice", X, np.array([3]), np.array([3]), np.array([2]))


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_concat_of_many_parts(axis: int) -> None:
    parts = [np.roll(X, n, 0).take(range(1 + n % 2), axis) for n in range(5)]
    np.testing.assert_array_equal(run_operator("Concat", *parts, axis=axis)[0], np.concatenate(parts, axis))


def test_concat_leaves_out_what_is_empty() -> None:
    empty = np.zeros((2, 3, 4, 0), np.float32)
    np.testing.assert_array_equal(run_operator("Concat", X, empty, X, known=[1], axis=3)[0], np.concatenate([X, X], 3))


@pytest.mark.parametrize(
    ("opset", "operands", "attributes", "sizes"),
    [
        (11, [], {"split": [1, 2, 2]}, [1, 2, 2]),
        (13, [np.array([3, 1, 1])], {}, [3, 1, 1]),
        (18, [], {"num_outputs": 3}, [2, 2, 1]),
    ],
)
def test_split(opset: int, operands: list[np.ndarray], attributes: dict[str, Any], sizes: list[int]) -> None:
    found = run_operator("Split", X, *operands, opset=opset, outputs=3, axis=-1, **attributes)
    expected = np.split(X, np.cumsum(sizes)[:-1], axis=-1)
    for part, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, e)


def test_tile_and_expand() -> None:
    np.testing.assert_array_equal(run_operator("Tile", X, np.array([1, 2, 1, 3]))[0], np.tile(X, [1, 2, 1, 3]))
    y = X[:, :1, :, 0]
    np.testing.assert_array_equal(
        run_operator("Expand", y, np.array([3, 2, 5, 1]))[0], np.broadcast_to(y[None], (3, 2, 5, 4))
    )


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_move_into_depth_and_back(mode: str) -> None:
    image = np.arange(2 * 8 * 4 * 6, dtype=np.float32).reshape(2, 8, 4, 6)
    (spread,) = run_operator("DepthToSpace", image, blocksize=2, mode=mode)
    np.testing.assert_array_equal(spread, reference("DepthToSpace", [image], blocksize=2, mode=mode)[0])
    if mode == "DCR":
        np.testing.assert_array_equal(run_operator("SpaceToDepth", spread, blocksize=2)[0], image)


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_sequences_are_reversed_up_to_their_lengths(time: int, batch: int) -> None:
    y = np.arange(4 * 4 * 2, dtype=np.float32).reshape(4, 4, 2)
    lengths = np.array([4, 3, 1, 2])
    expected = np.moveaxis(y.copy(), (time, batch), (0, 1))
    for b, n in enumerate(lengths):
        expected[:n, b] = expected[:n, b][::-1].copy()
    (found,) = run_operator("ReverseSequence", y, lengths, time_axis=time, batch_axis=batch)
    np.testing.assert_array_equal(np.moveaxis(found, (time, batch), (0, 1)), expected)


@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("k", [-2, 0, 1, 9])
def test_triangles_of_any_diagonal(k: int, known: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(run_operator("Trilu", X, np.array(k), known=known)[0], np.triu(X, k))
    np.testing.assert_array_equal(run_operator("Trilu", X, np.array(k), known=known, upper=0)[0], np.tril(X, k))


def test_dropout_is_the_identity_unless_training() -> None:
    kept, mask = run_operator("Dropout", X, outputs=2)
    np.testing.assert_array_equal(kept, X)
    assert mask.all()
    with pytest.raises(NotCompilableError, match="at random"):
        run_operator("Dropout", X, np.array(0.5, np.float32), np.array(True))


MALFORMED: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "Transpose": ((X,), {"perm": [0, 1]}),
    "Tile": ((X, np.array([2])), {}),
    "Slice": ((X, np.array([0, 0]), np.array([1]), np.array([0])), {}),
    "Pad": ((X, np.array([1, 1])), {}),
    "Trilu": ((X[0, 0, 0],), {}),
    "DepthToSpace": ((X[0],), {"blocksize": 2}),
    "Concat": ((X, X[0]), {"axis": 0}),
    "Split": ((X, np.array([1, 1])), {"axis": 3, "num_outputs": 2}),
    "GatherND": ((X, np.zeros((1, 5), np.int64)), {}),
    "Range": ((np.array(0), np.array(3), np.array(0)), {}),
    "CenterCropPad": ((X, np.array([1])), {}),
    "Unsqueeze": ((X, np.array([0, 0])), {}),
    "ReduceSum": ((X, np.array([7])), {}),
    "ScatterND": ((X, np.zeros((1, 1), np.int64), X), {}),
}


@pytest.mark.parametrize("op", MALFORMED)
def test_operands_that_do_not_fit_are_not_compiled(op: str) -> None:
    operands, attributes = MALFORMED[op]
    with pytest.raises(NotCompilableError):
        run_operator(op, *operands, **attributes)
