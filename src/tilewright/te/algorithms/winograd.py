"""Winograd's convolution: products of transformed tiles, of which there are fewer than of taps and results.

A tile of m x m results of a 3 x 3 convolution takes (m + 2)^2 products for each channel instead of 9 m^2: 4 of 9 with
m = 2, 1 of 4 with m = 4. Data and results are transformed along one dimension after the other, each in a stage of its
own, the weights ahead of time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.te.algorithms.convolution import Convolution, Window
from tilewright.te.algorithms.formulas import by_pairs, by_parity, choose
from tilewright.te.algorithms.toom_cook import Matrices, Row, matrices
from tilewright.te.expr import Axis, Const, Expr, Read, Reduce, Select, Var, binary, cast
from tilewright.te.tensor import Tensor
from tilewright.te.transform import substitute

NUM_TAPS = 3


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A tensor computed in another way: by `body`, from `stages` before it, of which `ahead` follow from constants."""

    stages: tuple[Tensor, ...]
    ahead: tuple[Tensor, ...]
    body: Expr


def winograd(convolution: Convolution, tile: int) -> Rewritten:
    """The convolution from tiles of `tile` results along each of its windows, which have three taps."""
    return _Winograd(convolution, tile).rewritten()


def saving(convolution: Convolution, tile: int) -> float:
    """How many products it saves: those of the convolution for each one that is left."""
    direct = math.prod(window.output.extent * window.tap.extent for window in convolution.windows)
    left = math.prod(-(-window.output.extent // tile) * (tile + NUM_TAPS - 1) for window in convolution.windows)
    return direct / left


class _Winograd:
    """One rewriting: the axes that its stages share the names of, and the stages as they are made."""

    def __init__(self, convolution: Convolution, tile: int) -> None:
        self.convolution = convolution
        self.tile = tile
        self.matrices: Matrices = matrices(tile, NUM_TAPS)
        self.num_products = len(self.matrices.inputs)
        self.windows: tuple[Window, ...] = convolution.windows
        self.name = convolution.tensor.name
        body = convolution.tensor.body
        assert isinstance(body, Reduce)
        self.used = {axis.name for axis in (*convolution.tensor.axes, *body.axes)}
        self.of_products = [self._new_name(f"p{n}") for n in range(len(self.windows))]
        self.of_tiles = [self._new_name(f"t{n}") for n in range(len(self.windows))]
        self.within = [self._new_name(f"d{n}") for n in range(len(self.windows))]

    def rewritten(self) -> Rewritten:
        data = self._transformed_data()
        weights = self._transformed_weights()
        product = self._product(data[-1], weights[-1])
        results = self._transformed_results(product)
        axes = self.convolution.tensor.axes
        place = {window.output: n for n, window in enumerate(self.windows)}
        outer = [binary("floordiv", axis, self.tile) if axis in place else axis for axis in axes[:-1]]
        inner = [binary("mod", window.output, self.tile) for window in self.windows]
        body = Read(results[-1].dtype, results[-1], (*outer, *inner, axes[-1]))
        return Rewritten((*data, *weights, product, *results), weights, body)

    # --- the data -------------------------------------------------------------------------------------------------

    def _transformed_data(self) -> tuple[Tensor, ...]:
        """A stage for each window: [outer dimensions and tiles, products so far, places left, channels].

        The last has the products first, since it is read by one of them after the other.
        """
        made: list[Tensor] = []
        for n in range(len(self.windows)):
            outer, channel = self._data_axes()
            inner = [*self._products(n + 1), *self._places(self.within[n + 1 :], self.num_products)]
            own = inner[n]

            def element(a: int) -> Expr:
                at = [*inner[:n], Const("int64", a), *inner[n + 1 :]]  # noqa: B023  # called in this iteration
                if not made:
                    return self._datum(outer, channel, at)  # noqa: B023
                return _read(made[-1], (*outer, *at, channel))  # noqa: B023

            body = choose(own, [by_parity(row, element) for row in self.matrices.inputs])
            is_last = n + 1 == len(self.windows)
            axes = (*inner, *outer, channel) if is_last else (*outer, *inner, channel)
            made.append(_tensor(f"{self.name}.data{n}", axes, body))
        return tuple(made)

    def _data_axes(self) -> tuple[list[Axis], Axis]:
        """New axes for all dimensions of the data, with tiles along its windows; the channels are the last."""
        of_dim = {window.dim: n for n, window in enumerate(self.windows)}
        axes = []
        for dim, index in enumerate(self.convolution.data.indices):
            if dim in of_dim:
                axes.append(self._tiles(of_dim[dim]))
            else:
                assert isinstance(index, Axis)
                axes.append(Axis("int64", index.name, index.extent, False))
        return axes[:-1], axes[-1]

    def _datum(self, outer: Sequence[Axis], channel: Axis, places: Sequence[Expr]) -> Expr:
        """An element of the data: zero where a last tile reaches beyond it."""
        data = self.convolution.data.tensor
        indices: list[Expr] = [*outer, channel]
        guards: list[Expr] = []
        for window, place in zip(self.windows, places, strict=True):
            tiles = outer[window.dim]
            indices[window.dim] = position = _plus(binary("add", binary("mul", tiles, self.tile), place), window.offset)
            highest = (tiles.extent - 1) * self.tile + self.num_products - 1 + window.offset
            if highest >= data.shape[window.dim]:
                guards.append(binary("lt", position, data.shape[window.dim]))
        value: Expr = Read(data.dtype, data, tuple(indices))
        if not guards:
            return value
        guard = guards[0]
        for other in guards[1:]:
            guard = binary("and", guard, other)
        return Select(value.dtype, guard, value, Const(value.dtype, 0.0))

    # --- the weights ----------------------------------------------------------------------------------------------

    def _transformed_weights(self) -> tuple[Tensor, ...]:
        """A stage for each window, in double precision but for the last: [products so far, taps left, the rest]."""
        source = self.convolution.weights
        taps = [window.tap for window in self.windows]
        made: list[Tensor] = []
        for n in range(len(taps)):
            rest = {
                index: Axis("int64", index.name, index.extent, False)
                for index in source.indices
                if isinstance(index, Axis) and index not in taps
            }
            inner = [*self._products(n + 1), *self._places([tap.name for tap in taps[n + 1 :]], NUM_TAPS)]
            own, is_last = inner[n], n + 1 == len(taps)

            def element(r: int) -> Expr:
                at = [*inner[:n], Const("int64", r), *inner[n + 1 :]]  # noqa: B023  # called in this iteration
                if made:
                    return _read(made[-1], (*at, *rest.values()))  # noqa: B023
                values: dict[Var, Expr] = {**dict(zip(taps, at, strict=True)), **rest}  # noqa: B023
                return cast(Read(source.dtype, source.tensor, tuple(substitute(i, values) for i in source.indices)), "float64")

            values = [by_parity(row, element) for row in self.matrices.taps]
            body = choose(own, [cast(value, source.dtype) for value in values] if is_last else values)
            made.append(_tensor(f"{self.name}.weights{n}", (*inner, *rest.values()), body))
        return tuple(made)

    # --- the products and the results -----------------------------------------------------------------------------

    def _product(self, data: Tensor, weights: Tensor) -> Tensor:
        """[products, outer dimensions and tiles of the results, channels], summed over the channels of the data."""
        convolution = self.convolution
        products = self._products(len(self.windows))
        axes = self._result_axes()
        reduced = {axis: Axis("int64", axis.name, axis.extent, True) for axis in convolution.channels}
        value_of: dict[Expr, Expr] = {**dict(zip(convolution.tensor.axes, axes, strict=True)), **reduced}
        of_dim = {window.dim: window.output for window in self.windows}
        read_data = [value_of[of_dim.get(dim, index)] for dim, index in enumerate(convolution.data.indices)]
        taps = {window.tap for window in self.windows}
        read_weights = [value_of[index] for index in convolution.weights.indices if index not in taps]
        value = binary("mul", _read(data, (*products, *read_data)), _read(weights, (*products, *read_weights)))
        body = Reduce(value.dtype, "sum", (value,), tuple(reduced.values()))
        return _tensor(f"{self.name}.product", (*products, *axes), body)

    def _transformed_results(self, product: Tensor) -> tuple[Tensor, ...]:
        """A stage for each window: [outer dimensions and tiles, results so far, products left, channels]."""
        made: list[Tensor] = []
        for n in range(len(self.windows)):
            *outer, channel = self._result_axes()
            inner = [
                *self._places(self.within[: n + 1], self.tile),
                *self._places(self.of_products[n + 1 :], self.num_products),
            ]
            own = inner[n]

            def element(a: int) -> Expr:
                at = [*inner[:n], Const("int64", a), *inner[n + 1 :]]  # noqa: B023  # called in this iteration
                if made:
                    return _read(made[-1], (*outer, *at, channel))  # noqa: B023
                return _read(product, (*at, *outer, channel))  # noqa: B023

            body = choose(own, [by_pairs(row, element) for row in self.matrices.outputs])
            made.append(_tensor(f"{self.name}.result{n}", (*outer, *inner, channel), body))
        return tuple(made)

    def _result_axes(self) -> list[Axis]:
        """New axes for those of the results, with tiles in the place of positions."""
        place = {window.output: n for n, window in enumerate(self.windows)}
        return [
            self._tiles(place[axis]) if axis in place else Axis("int64", axis.name, axis.extent, False)
            for axis in self.convolution.tensor.axes
        ]

    # --- axes -----------------------------------------------------------------------------------------------------

    def _tiles(self, n: int) -> Axis:
        return Axis("int64", self.of_tiles[n], -(-self.windows[n].output.extent // self.tile), False)

    def _products(self, num: int) -> list[Axis]:
        return self._places(self.of_products[:num], self.num_products)

    def _places(self, names: Sequence[str], extent: int) -> list[Axis]:
        return [Axis("int64", name, extent, False) for name in names]

    def _new_name(self, wanted: str) -> str:
        while wanted in self.used:
            wanted += "_"
        self.used.add(wanted)
        return wanted


def _plus(e: Expr, number: int) -> Expr:
    return e if number == 0 else binary("add", e, number)


def _read(tensor: Tensor, indices: Sequence[Expr]) -> Expr:
    """The element of a stage whose axes stand in another order than they were named: in its own."""
    return Read(tensor.dtype, tensor, tuple(indices))


def _tensor(name: str, axes: Sequence[Axis], body: Expr) -> Tensor:
    return Tensor(name, tuple(axis.extent for axis in axes), body.dtype, tuple(axes), body)


_Formula = Callable[[Row, Callable[[int], Expr]], Expr]
