"""Winograd's convolution: products of transformed tiles, of which there are fewer than of taps and results.

A tile of m x m results of a 3 x 3 convolution takes (m + 2)^2 products for each channel instead of 9 m^2: 4 of 9 with
m = 2, 1 of 4 with m = 4. Data and results are transformed along one dimension after the other, each in a stage of its
own, the weights ahead of time. A window that is not transformed stays a sum, in the stage of the products.

With stride 2 it is four convolutions of every second place in both dimensions, with 2 x 2, 2 x 1, 1 x 2 and 1 x 1 of
the taps, which are added up in the transform of the results: (2 m + 1)^2 products instead of 9 m^2.

With dilation d it is d x d convolutions without one, of every d-th place and with the same weights. All their tiles are
multiplied together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from tilewright.te.algorithms.algorithm import Rewritten
from tilewright.te.algorithms.convolution import Convolution
from tilewright.te.algorithms.formulas import by_pairs, by_parity, choose
from tilewright.te.algorithms.toom_cook import Row, matrices
from tilewright.te.algorithms.window_tiles import WindowTiles, times
from tilewright.te.expr import Axis, Const, Expr, Read, Reduce, Select, Var, binary, cast
from tilewright.te.tensor import Tensor
from tilewright.te.transform import substitute

_Element: TypeAlias = Callable[[Sequence[Expr]], Expr]
"""What stands at a place of a tile."""
_Formula: TypeAlias = Callable[[Row, Callable[[int], Expr]], Expr]


def winograd(convolution: Convolution, tiles: Sequence[int]) -> Rewritten:
    """The convolution from tiles of so many results along each of its windows; 0 for a window that stays a sum."""
    return _Winograd(convolution, tiles).rewritten()


def saving(convolution: Convolution, tiles: Sequence[int]) -> float:
    """How many products it saves: those of the convolution for each one that is left."""
    saved = 1.0
    for window, tile in zip(convolution.windows, tiles, strict=True):
        if tile:
            extent, num_taps = window.output.extent, window.tap.extent
            num_products = len(matrices(tile, num_taps, window.stride).inputs)
            saved *= extent * num_taps / (WindowTiles(window, tile).num_tiles * num_products)
    return saved


class _Winograd:
    """One rewriting: the names of the axes of its stages, and these stages, one kind after the other.

    `windows` are those that are transformed, `tiles`, `matrices` and `taps` what belongs to each of them.
    """

    def __init__(self, convolution: Convolution, tiles: Sequence[int]) -> None:
        self.convolution = convolution
        sizes = list(zip(convolution.windows, tiles, strict=True))
        self.tiles = [WindowTiles(window, tile) for window, tile in sizes if tile]
        self.windows = [made.window for made in self.tiles]
        self.sums = [window for window, tile in sizes if not tile]
        self.taps = [window.tap for window in self.windows]
        self.matrices = [matrices(t.size, t.window.tap.extent, t.window.stride) for t in self.tiles]
        self.name = convolution.tensor.name
        taps = [window.tap for window in convolution.windows]
        taken = {axis.name for axis in (*convolution.tensor.axes, *convolution.channels, *taps)}
        self.of_products = _new_names("p", len(self.windows), taken)
        self.of_tiles = _new_names("t", len(self.windows), taken)
        self.within = _new_names("d", len(self.windows), taken)
        self.of_dims = _new_names("i", max(convolution.data.tensor.ndim, convolution.weights.tensor.ndim), taken)

    def rewritten(self) -> Rewritten:
        data, weights = self._transformed_data(), self._transformed_weights()
        product = self._product(data[-1], weights[-1])
        results = self._transformed_results(product)
        *axes, channel = self.convolution.tensor.axes
        tile_of = {tiles.window.output: tiles.tile_of_result for tiles in self.tiles}
        outer = [tile_of.get(axis, axis) for axis in axes]
        inner = [tiles.place_of_result for tiles in self.tiles]
        body = _at(results[-1], outer, [channel], inner)
        return Rewritten((*data, *weights, product, *results), weights, body)

    # --- the data -------------------------------------------------------------------------------------------------

    def _transformed_data(self) -> tuple[Tensor, ...]:
        """A stage for each window: [other dimensions and tiles, products so far, places left, channels].

        The last has the products first, since one of them after the other reads it. Before them stands the data made
        longer, where the last tiles reach beyond it.
        """
        data = self._long_data()
        made = [] if data is self.convolution.data.tensor else [data]
        for n in range(len(self.windows)):
            outer, channel = self._data_axes()
            inner = [*self._products(0, n + 1), *self._places(n + 1)]
            element = partial(_at, made[-1], outer, [channel]) if n else partial(self._datum, data, [*outer, channel])
            formula = partial(by_parity, stride=self.windows[n].stride)
            body = _transformed(element, inner, n, self.matrices[n].inputs, formula)
            is_last = n + 1 == len(self.windows)
            axes = (*inner, *outer, channel) if is_last else (*outer, *inner, channel)
            made.append(_tensor(f"{self.name}.data{n}", axes, body))
        return tuple(made)

    def _long_data(self) -> Tensor:
        """The data, with zeros behind it where tiles reach beyond it."""
        source = self.convolution.data.tensor
        shape = list(source.shape)
        for tiles in self.tiles:
            dim = tiles.window.dim
            shape[dim] = max(shape[dim], tiles.num_read)
        if tuple(shape) == source.shape:
            return source
        axes = [Axis("int64", f"i{dim}", extent, False) for dim, extent in enumerate(shape)]
        guard: Expr | None = None
        for axis, extent in zip(axes, source.shape, strict=True):
            if axis.extent > extent:
                is_inside = binary("lt", axis, extent)
                guard = is_inside if guard is None else binary("and", guard, is_inside)
        assert guard is not None, "some dimension is longer"
        body = Select(source.dtype, guard, _at(source, axes, [], []), Const(source.dtype, 0.0))
        return _tensor(f"{self.name}.long", axes, body)

    def _datum(self, data: Tensor, outer: Sequence[Axis], places: Sequence[Expr]) -> Expr:
        """An element of the data, at a place of a tile."""
        indices: list[Expr] = list(outer)
        for tiles, place in zip(self.tiles, places, strict=True):
            dim = tiles.window.dim
            indices[dim] = tiles.position(outer[dim], place)
        for window in self.sums:
            indices[window.dim] = _moved(outer[window.dim], window.offset)
        return _at(data, indices, [], [])

    def _data_axes(self) -> tuple[list[Axis], Axis]:
        """New axes for the dimensions of the data, and those of its channels.

        They are tiles along its windows, and all that is read along those that stay sums.
        """
        axis_of = {window.dim: self._tiles(n) for n, window in enumerate(self.windows)}
        for window in self.sums:
            reach = (window.output.extent - 1) * window.stride + (window.tap.extent - 1) * window.dilation
            axis_of[window.dim] = Axis("int64", window.output.name, reach + 1, False)
        indices = self.convolution.data.indices
        axes = [axis_of[d] if d in axis_of else self._whole(self.convolution.data, d) for d in range(len(indices))]
        return axes[:-1], axes[-1]

    def _whole(self, read: Read, dim: int) -> Axis:
        """A new axis for a dimension that is read at an axis, or for all of one that is not, as channels of groups."""
        index = read.indices[dim]
        if isinstance(index, Axis):
            return _new_axis(index)
        return Axis("int64", self.of_dims[dim], read.tensor.shape[dim], False)

    # --- the weights ----------------------------------------------------------------------------------------------

    def _transformed_weights(self) -> tuple[Tensor, ...]:
        """A stage for each window, in double precision but for the last: [products so far, taps left, the rest]."""
        source = self.convolution.weights
        made: list[Tensor] = []
        for n in range(len(self.taps)):
            rest = {dim: self._whole(source, dim) for dim, index in enumerate(source.indices) if index not in self.taps}
            inner = [*self._tap_sums(n + 1), *map(_new_axis, self.taps[n + 1 :])]
            after = list(rest.values())
            element = partial(_at, made[-1], [], after) if made else partial(self._weight, rest)
            formula = partial(_rounded, source.dtype) if n + 1 == len(self.taps) else by_parity
            body = _transformed(element, inner, n, self.matrices[n].taps, formula)
            made.append(_tensor(f"{self.name}.weights{n}", (*inner, *after), body))
        return tuple(made)

    def _weight(self, rest: dict[int, Axis], taps: Sequence[Expr]) -> Expr:
        source = self.convolution.weights
        place: dict[Expr, Expr] = dict(zip(self.taps, taps, strict=True))
        indices = tuple(rest[dim] if dim in rest else place[index] for dim, index in enumerate(source.indices))
        return cast(Read(source.dtype, source.tensor, indices), "float64")

    # --- the products and the results -----------------------------------------------------------------------------

    def _product(self, data: Tensor, weights: Tensor) -> Tensor:
        """[products, other dimensions and tiles, channels] of the results, summed over the channels of the data.

        Also over the taps of windows that stay sums.
        """
        convolution = self.convolution
        products = self._products(0, len(self.windows))
        axes = self._result_axes()
        over = (*(window.tap for window in self.sums), *convolution.channels)
        summed = {axis: Axis("int64", axis.name, axis.extent, True) for axis in over}
        value_of: dict[Var, Expr] = dict(zip(convolution.tensor.axes, axes, strict=True))
        value_of.update(summed.items())
        position_of = {window.dim: value_of[window.output] for window in self.windows}
        for window in self.sums:
            start, tap = times(value_of[window.output], window.stride), times(value_of[window.tap], window.dilation)
            position_of[window.dim] = binary("add", start, tap)
        of_data = [
            position_of[dim] if dim in position_of else substitute(index, value_of)
            for dim, index in enumerate(convolution.data.indices)
        ]
        of_weights = [substitute(e, value_of) for e in convolution.weights.indices if e not in self.taps]
        factors = [_at_most(axis, len(made.taps) - 1) for axis, made in zip(products, self.matrices, strict=True)]
        value = binary("mul", _at(data, [], of_data, products), _at(weights, [], of_weights, factors))
        body = Reduce(value.dtype, "sum", (value,), tuple(summed.values()))
        return _tensor(f"{self.name}.product", (*products, *axes), body)

    def _transformed_results(self, product: Tensor) -> tuple[Tensor, ...]:
        """A stage for each window: [other dimensions and tiles, results so far, products left, channels]."""
        made: list[Tensor] = []
        for n in range(len(self.windows)):
            *outer, channel = self._result_axes()
            results = _new_axes(self.within[: n + 1], [tiles.size for tiles in self.tiles])
            inner = [*results, *self._products(n + 1, len(self.windows))]
            before, after = (outer, [channel]) if made else ([], [*outer, channel])
            element = partial(_at, made[-1] if made else product, before, after)
            formula = partial(by_pairs, alike=self.matrices[n].alike)
            body = _transformed(element, inner, n, self.matrices[n].outputs, formula)
            made.append(_tensor(f"{self.name}.result{n}", (*outer, *inner, channel), body))
        return tuple(made)

    def _result_axes(self) -> list[Axis]:
        """New axes for those of the results, with tiles in the place of positions."""
        place = {window.output: n for n, window in enumerate(self.windows)}
        return [self._tiles(place[axis]) if axis in place else _new_axis(axis) for axis in self.convolution.tensor.axes]

    def _tiles(self, n: int) -> Axis:
        return Axis("int64", self.of_tiles[n], self.tiles[n].num_tiles, False)

    def _products(self, begin: int, end: int) -> list[Axis]:
        return _new_axes(self.of_products[begin:end], [len(made.inputs) for made in self.matrices[begin:end]])

    def _tap_sums(self, num: int) -> list[Axis]:
        """Those of the transformed taps along the first windows: products that have the same read the last one."""
        return _new_axes(self.of_products[:num], [len(made.taps) for made in self.matrices])

    def _places(self, begin: int) -> list[Axis]:
        """Those of the data of a tile, along the windows from `begin` on."""
        return _new_axes(self.within[begin:], [len(made.inputs) for made in self.matrices[begin:]])


def _transformed(element: _Element, inner: Sequence[Axis], n: int, rows: Sequence[Row], formula: _Formula) -> Expr:
    """What stands at the places `inner` after a transform along the n-th of them, from what stood there before."""

    def before(a: int) -> Expr:
        return element([*inner[:n], Const("int64", a), *inner[n + 1 :]])

    return choose(inner[n], [formula(row, before) for row in rows])


def _rounded(dtype: str, row: Row, element: Callable[[int], Expr]) -> Expr:
    return cast(by_parity(row, element), dtype)


def _at(tensor: Tensor, before: Sequence[Expr], after: Sequence[Expr], places: Sequence[Expr]) -> Expr:
    return Read(tensor.dtype, tensor, (*before, *places, *after))


def _tensor(name: str, axes: Sequence[Axis], body: Expr) -> Tensor:
    return Tensor(name, tuple(axis.extent for axis in axes), body.dtype, tuple(axes), body)


def _new_axis(like: Axis) -> Axis:
    return Axis("int64", like.name, like.extent, False)


def _new_axes(names: Sequence[str], extents: Sequence[int]) -> list[Axis]:
    return [Axis("int64", name, extent, False) for name, extent in zip(names, extents, strict=False)]


def _moved(index: Expr, offset: int) -> Expr:
    return index if offset == 0 else binary("add", index, offset)


def _at_most(axis: Axis, last: int) -> Expr:
    return axis if axis.extent == last + 1 else binary("min", axis, last)


def _new_names(letter: str, num: int, taken: set[str]) -> list[str]:
    """So many names that no axis has yet; the loops of a stage are told apart by them."""
    made = []
    for n in range(num):
        name = f"{letter}{n}"
        while name in taken:
            name += "_"
        taken.add(name)
        made.append(name)
    return made
