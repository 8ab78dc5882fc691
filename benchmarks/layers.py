"""`python -m benchmarks.layers`: consecutive layers by bands of rows, next to the same layers one after the other.

What lies between two layers is written and read again; by bands of rows it could stay in the cache. Before a compiler
learns that, this tells what it would give: every layer is compiled for the whole image and for bands of several
heights, each tuned alone with the same trials, on one thread, and a loop calls the bands of all layers in turn, so that
rows which two bands need are computed twice. Both ways must compute the same. A compiled loop would have no calls from
Python: what these take is measured with a kernel that does next to nothing, and subtracted from both ways. The exit
code tells nothing of the speed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.references import Array
from benchmarks.suite import milliseconds
from benchmarks.table import heading, markdown
from benchmarks.timing import METHOD
from benchmarks.tuned import file_name, tune_task
from tilewright import te
from tilewright.peers import take_turns
from tilewright.runtime import Kernel
from tilewright.runtime.build import build

THREADS = 1
TOLERANCE = 1e-3
"""Of the largest output: bands may be computed by another algorithm than the whole image."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution with a square window, padded so that stride 1 keeps the size, and a ReLU."""

    features: int
    kernel: int
    stride: int = 1
    depthwise: bool = False

    @property
    def padding(self) -> int:
        return self.kernel // 2

    def rows_in(self, rows: int) -> int:
        """How many rows of the input the window needs for so many of the output."""
        return (rows - 1) * self.stride + self.kernel


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers that follow each other; `shape` is height, width and channels of what the first reads."""

    name: str
    shape: tuple[int, int, int]
    layers: tuple[Layer, ...]
    heights: tuple[int, ...]
    """Of bands, in rows of the last output."""


def _inverted(size: int, channels: int, features: int, out: int, stride: int, heights: tuple[int, ...]) -> Chain:
    name = f"{size}x{size}x{channels}: 1x1 -> {features}, 3x3 depthwise s{stride}, 1x1 -> {out}"
    layers = (Layer(features, 1), Layer(features, 3, stride, depthwise=True), Layer(out, 1))
    return Chain(name, (size, size, channels), layers, heights)


def _pair(size: int, channels: int, features: int, heights: tuple[int, ...]) -> Chain:
    name = f"{size}x{size}x{channels}: 3x3 -> {features}, 3x3 -> {features}"
    return Chain(name, (size, size, channels), (Layer(features, 3), Layer(features, 3)), heights)


CHAINS = (
    _inverted(112, 16, 96, 24, 2, (2, 4, 8, 14)),
    _inverted(56, 24, 144, 24, 1, (4, 8, 14, 28)),
    _inverted(56, 24, 144, 32, 2, (2, 4, 7, 14)),
    _inverted(28, 32, 192, 32, 1, (7, 14)),
    _inverted(14, 64, 384, 64, 1, (7,)),
    Chain(
        "112x112x32: 3x3 depthwise, 1x1 -> 16",
        (112, 112, 32),
        (Layer(32, 3, depthwise=True), Layer(16, 1)),
        (4, 8, 16, 28),
    ),
    _pair(224, 3, 64, (8, 16, 28, 56)),
    _pair(112, 64, 128, (8, 16, 28, 56)),
    _pair(56, 64, 64, (8, 14, 28)),
)
"""Those of mobilenet_v2, the first of vgg16, and the first block of resnet18."""


@dataclass(frozen=True, slots=True)
class Row:
    """A chain in both ways; of the bands the height that was fastest."""

    chain: str
    between_mb: float
    """The largest array between two layers."""
    layers_ms: float
    bands_ms: dict[int, float]
    call_ms: float
    """What was subtracted from these for every call of a kernel."""
    ratio: float
    """The time of the layers one after the other by that of the fastest bands, median of the rounds."""


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and time the chosen chains."""
    options = _parse(argv)
    chains = [chain for chain in CHAINS if options.case in chain.name]
    if not chains:
        print(f"no case matches; they are {'; '.join(chain.name for chain in CHAINS)}", file=sys.stderr)
        return 2
    options.records.mkdir(parents=True, exist_ok=True)
    rows = [run(chain, options) for chain in chains]
    print(as_json(rows) if options.format == "json" else as_table(rows))
    return 0


def run(chain: Chain, options: argparse.Namespace) -> Row:
    """Both ways, checked against each other and timed in turns."""
    rng = np.random.default_rng(options.seed)
    source = rng.standard_normal(chain.shape, np.float32)
    weights = [rng.standard_normal(shape, np.float32) / np.float32(8) for shape in weight_shapes(chain)]
    compiler = Compiler(options.records, options.trials, options.seed)
    ways = {0: one_after_the_other(chain, source, weights, compiler)}
    for height in chain.heights:
        ways[height] = by_bands(chain, height, source, weights, compiler)
    expected = ways[0]().copy()
    for height, way in ways.items():
        error = np.abs(way() - expected).max() / np.abs(expected).max()
        if not error <= TOLERANCE:
            raise AssertionError(f"{chain.name}, bands of {height} rows: differs by {error:.1e} of the largest output")
    turns = take_turns(
        {"call": _next_to_nothing()} | {str(height): way for height, way in ways.items()}, options.rounds, settle_s=0.0
    )
    call_ms = turns["call"].median_s * 1e3
    num_bands = {0: 1} | {height: heights_of(chain)[-1] // height for height in chain.heights}
    turns_ms = {
        height: np.multiply(turns[str(height)].samples_s, 1e3) - call_ms * len(chain.layers) * number
        for height, number in num_bands.items()
    }
    medians_ms = {height: float(np.median(own_ms)) for height, own_ms in turns_ms.items()}
    fastest = min(chain.heights, key=lambda height: medians_ms[height])
    ratio = float(np.median(turns_ms[0] / turns_ms[fastest]))
    layers_ms = medians_ms.pop(0)
    return Row(chain.name, _between_mb(chain), layers_ms, medians_ms, call_ms, ratio)


def _next_to_nothing() -> Callable[[], Array]:
    """A call of a kernel that copies one number."""
    X = te.placeholder((1,), name="X")
    kernel = build(te.Task([X], [te.compute((1,), lambda i: X[i], "copy")]), threads=THREADS)
    source, out = np.ones(1, np.float32), np.empty(1, np.float32)
    return lambda: kernel(source, out=out)


Compile = Callable[[Layer, tuple[int, int, int], Array, bool], Kernel]
"""A kernel of a layer for an image or a band of this shape, with these weights; of an image the rows are padded."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """Makes kernels of layers, each the best of a few trials."""

    records: Path
    trials: int
    seed: int

    def __call__(self, layer: Layer, shape: tuple[int, int, int], weights: Array, pad_rows: bool) -> Kernel:
        task = task_of(layer, shape, pad_rows)
        name = f"{'x'.join(map(str, shape))}-{layer}-{'padded' if pad_rows else 'band'}"
        print(f"{name}: {self.trials} trials", file=sys.stderr, flush=True)
        found = tune_task(task, self.records / file_name(name), self.trials, THREADS, self.seed)
        return found.compile().bind(W=weights)


def one_after_the_other(
    chain: Chain, source: Array, weights: Sequence[Array], compiled: Compile
) -> Callable[[], Array]:
    """Every layer as one kernel of the whole image."""
    arrays = [source[None]]
    kernels = []
    for layer, weight in zip(chain.layers, weights, strict=True):
        kernel = compiled(layer, arrays[-1].shape[1:], weight, True)
        kernels.append(kernel)
        arrays.append(np.empty(kernel.outputs[0].shape, np.float32))

    def call() -> Array:
        for kernel, array, out in zip(kernels, arrays, arrays[1:], strict=False):
            kernel(array, out=out)
        return arrays[-1]

    return call


def by_bands(
    chain: Chain, height: int, source: Array, weights: Sequence[Array], compiled: Compile
) -> Callable[[], Array]:
    """For each band of rows of the output all layers, with the rows around it that the next window needs.

    The source gets rows of zeros above and below, and the rows between two layers that lie outside the image are set to
    zero before they are read: so all bands are the same kernels.
    """
    firsts = first_rows(chain)
    counts = [height]
    for layer in reversed(chain.layers):
        counts.insert(0, layer.rows_in(counts[0]))
    sizes = heights_of(chain)
    num_bands, rest = divmod(sizes[-1], height)
    assert rest == 0, "bands are of equal height"
    steps = [int(np.prod([layer.stride for layer in chain.layers[place:]])) for place in range(len(chain.layers))]
    last_row = firsts[0] + steps[0] * height * (num_bands - 1) + counts[0]
    below = max(0, last_row - sizes[0])
    padded = np.pad(source, ((-firsts[0], below), (0, 0), (0, 0)))[None]
    kernels: list[Kernel] = []
    buffers: list[Array] = []
    shape = (counts[0], *chain.shape[1:])
    for layer, weight in zip(chain.layers, weights, strict=True):
        kernel = compiled(layer, shape, weight, False)
        kernels.append(kernel)
        buffers.append(np.empty(kernel.outputs[0].shape, np.float32))
        shape = buffers[-1].shape[1:]
    result = np.empty((1, sizes[-1], *shape[1:]), np.float32)
    plans = []
    for band in range(num_bands):
        begin = steps[0] * height * band
        reads = [padded[:, begin : begin + counts[0]], *buffers[:-1]]
        writes = [*buffers[:-1], result[:, height * band : height * (band + 1)]]
        outside = [
            _outside(buffers[place - 1], firsts[place] + steps[place] * height * band, sizes[place])
            for place in range(1, len(kernels))
        ]
        plans.append(list(zip(kernels, reads, writes, [*outside, []], strict=True)))

    def call() -> Array:
        for plan in plans:
            for kernel, read, write, zeros in plan:
                kernel(read, out=write)
                for rows in zeros:
                    rows[...] = 0.0
        return result

    return call


def _outside(buffer: Array, first: int, size: int) -> list[Array]:
    """The rows of a band that begins at `first` which lie above or below an image of `size` rows."""
    above, below = max(0, -first), max(0, first + buffer.shape[1] - size)
    views = [buffer[:, :above], buffer[:, buffer.shape[1] - below :]]
    return [view for view in views if view.size]


def first_rows(chain: Chain) -> list[int]:
    """Which row of each layer's input the first row of the last output needs first; above the image it is negative.

    >>> first_rows(_pair(56, 64, 64, (8,)))
    [-2, -1]
    """
    firsts = [0]
    for layer in reversed(chain.layers):
        firsts.insert(0, firsts[0] * layer.stride - layer.padding)
    return firsts[:-1]


def heights_of(chain: Chain) -> list[int]:
    """The rows of what the first layer reads, and of what each writes.

    >>> heights_of(_inverted(112, 16, 96, 24, 2, (8,)))
    [112, 112, 56, 56]
    """
    heights = [chain.shape[0]]
    for layer in chain.layers:
        heights.append((heights[-1] + 2 * layer.padding - layer.kernel) // layer.stride + 1)
    return heights


def weight_shapes(chain: Chain) -> list[tuple[int, ...]]:
    """Of every layer's weights."""
    channels = [chain.shape[2], *(layer.features for layer in chain.layers)]
    return [
        (layer.kernel, layer.kernel, *((layer.features,) if layer.depthwise else (given, layer.features)))
        for layer, given in zip(chain.layers, channels, strict=False)
    ]


def task_of(layer: Layer, shape: tuple[int, int, int], pad_rows: bool) -> te.Task:
    """A layer on an image, or on a band of one, whose rows above and below are part of it."""
    height, width, channels = shape
    padding, above = layer.padding, layer.padding if pad_rows else 0
    X = te.placeholder((1, height, width, channels), name="X")
    ((_, _, *features),) = weight_shapes(Chain("", shape, (layer,), ()))
    W = te.placeholder((layer.kernel, layer.kernel, *features), name="W", constant=True)
    P = X
    if padding:
        P = te.compute(
            (1, height + 2 * above, width + 2 * padding, channels),
            lambda n, y, x, c: te.select(
                (y >= above) & (y < height + above) & (x >= padding) & (x < width + padding),
                X[n, y - above, x - padding, c],
                0.0,
            ),
            "padded",
        )
    r, s = te.reduce_axis(layer.kernel, "r"), te.reduce_axis(layer.kernel, "s")
    k = te.reduce_axis(channels, "k")
    rows, columns = ((size - layer.kernel) // layer.stride + 1 for size in P.shape[1:3])

    def window(n: te.Expr, y: te.Expr, x: te.Expr, f: te.Expr) -> te.Expr:
        y, x = (y, x) if layer.stride == 1 else (y * layer.stride, x * layer.stride)
        if layer.depthwise:
            return te.sum(P[n, y + r, x + s, f] * W[r, s, f], axis=[r, s])
        return te.sum(P[n, y + r, x + s, k] * W[r, s, k, f], axis=[r, s, k])

    conv = te.compute((1, rows, columns, layer.features), window, "conv")
    out = te.compute(conv.shape, lambda *i: te.maximum(conv[i], 0.0), "relu")
    return te.Task([X, W], [out])


def _between_mb(chain: Chain) -> float:
    heights = heights_of(chain)
    widths = [chain.shape[1] * height // chain.shape[0] for height in heights]
    sizes = [h * w * layer.features for h, w, layer in zip(heights[1:], widths[1:], chain.layers, strict=True)]
    return max(sizes[:-1]) * 4 / 1e6


def as_table(rows: Sequence[Row]) -> str:
    """One line a chain."""
    header = ("layers", "between them", "one after the other", "by bands (rows)", "ratio")
    cells = [
        [
            row.chain, f"{row.between_mb:.1f} MB", milliseconds(row.layers_ms),
            ", ".join(f"{milliseconds(ms)} ({height})" for height, ms in row.bands_ms.items()), f"{row.ratio:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    return "\n".join([heading(describe_machine(), METHOD), markdown(header, cells)])


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object."""
    return json.dumps({"machine": describe_machine(), "chains": [asdict(row) for row in rows]}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.layers", __doc__)
    parser.add_argument("--trials", type=arguments.positive, default=32, metavar="N", help="of every kernel")
    parser.add_argument("--rounds", type=arguments.positive, default=25, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--records", type=Path, default=Path("results/layers"), metavar="DIR")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
