"""What a statement touches of each buffer, at every level of its loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.features.regions import Floats, Number, Region, is_dense, step
from tilewright.schedule import Loop, Schedule, Stage, buffer_dtype, required_region
from tilewright.te import DTYPES, Expr, Tensor

PAGE_BYTES = 4096
READ, WRITE, READ_WRITE = "read", "write", "readwrite"


@dataclass(frozen=True, slots=True)
class Access:
    """One buffer of one statement. Arrays are [levels, candidates], as in `regions`.

    `span` is the distance in elements from the first to the last element touched, `elements` how many different ones,
    `lines` how many cache lines hold them, in `runs` runs of neighbours. Runs that begin at the same place of many
    pages share few places of a cache: `crowded_lines` is how many lines of it are then as good as taken. `loops` are
    the positions of the loops that move the access, `parts` the loops themselves: of a fused one the parts that do.
    """

    buffer: str
    kind: str
    element_bytes: int
    num_accesses: int  # reads and writes in one execution of the statement
    is_intermediate: bool  # another statement of the kernel writes it, or reads what this one writes
    num_around: int  # how many of the loops are outside its allocation: each of their iterations fills it anew
    loops: frozenset[int]
    parts: frozenset[Loop]
    span: Floats
    elements: Floats
    lines: Floats
    runs: Floats
    crowded_lines: Floats

    def taken_lines(self, cache_lines: float) -> Floats:
        """Lines of a cache of that size that the access takes: those it crowds, where they are too many for it."""
        return np.where(self.crowded_lines > cache_lines, self.crowded_lines, self.lines)

    def stride_of(self, position: int, extent: Floats) -> Floats:
        """How many elements one step of the loop at `position` moves the access, on average; 0 where it runs once."""
        moved: Floats = self.span[position] - self.span[position + 1]
        return moved / np.maximum(extent - 1, 1)


def find_accesses(schedule: Schedule, regions: dict[Stage, Region], stage: Stage, line_bytes: int) -> list[Access]:
    """The accesses of the stage's statement: what it writes, then what it reads, a buffer once."""
    read_by: dict[Tensor, list[tuple[Expr, ...]]] = {}
    for read in stage.reads:
        read_by.setdefault(read.tensor, []).append(read.indices)
    reader = AccessReader(schedule, regions, regions[stage], line_bytes)
    written = reader.access(stage.tensor, [stage.axes], WRITE if stage.reduction is None else READ_WRITE)
    return [written, *(reader.access(tensor, indices, READ) for tensor, indices in read_by.items())]


class AccessReader:
    """Measures the accesses of one statement."""

    def __init__(self, schedule: Schedule, regions: dict[Stage, Region], region: Region, line_bytes: int) -> None:
        self.schedule = schedule
        self.regions = regions
        self.region = region
        self.line_bytes = line_bytes

    def access(self, tensor: Tensor, index_tuples: list[tuple[Expr, ...]], kind: str) -> Access:
        producer = self.schedule[tensor]
        element_bytes = DTYPES[buffer_dtype(producer)].bytes
        shape = self._shape(producer)
        fixed = 0 if producer.is_placeholder else self.regions[producer].num_around
        is_whole = self._whole_dimensions(producer)
        hulls: list[Floats] = []
        counts: list[Floats] = []
        loops: frozenset[int] = frozenset()
        is_shared = False
        for dim, size in enumerate(shape):
            hull, count, used = self._dimension(index_tuples, dim, size, 0 if is_whole[dim] else fixed)
            is_shared |= not loops.isdisjoint(used)
            loops |= used
            hulls.append(hull)
            counts.append(count)
        elements = _product(counts, self.region.path.inner)
        if is_shared:  # a fused loop moves several dimensions together
            elements = np.minimum(elements, self.region.path.product_of(loops))
        strides = _strides(shape)
        span = np.zeros_like(self.region.path.inner)
        for hull, stride in zip(hulls, strides, strict=True):
            span += (hull - 1) * stride
        lines, runs, crowded_lines = self._lines(hulls, counts, shape, span, element_bytes)
        is_intermediate = not (producer.is_placeholder or producer.is_output or self.schedule.is_prepacked(producer))
        return Access(
            buffer=tensor.name,
            kind=kind,
            element_bytes=element_bytes,
            num_accesses=2 if kind == READ_WRITE else len(index_tuples),
            is_intermediate=is_intermediate,
            num_around=fixed,
            loops=loops,
            parts=frozenset() if fixed else self.region.moved_by([i for indices in index_tuples for i in indices]),
            span=span,
            elements=elements,
            lines=lines,
            runs=runs,
            crowded_lines=crowded_lines,
        )

    def _whole_dimensions(self, producer: Stage) -> list[bool]:
        """Of which dimensions an attached stage computes everything, since nobody knows what part is needed."""
        if producer.attach_loop is None:
            return [False] * len(producer.tensor.shape)
        needed = required_region(self.schedule, producer, producer.attach_loop, self.schedule.extents)
        return [part is None for part in needed]

    def _shape(self, producer: Stage) -> list[Number]:
        if producer.is_placeholder:
            return list(producer.tensor.shape)
        return [self.schedule.extents[producer.loop_of_axis[axis]] for axis in producer.axes]  # type: ignore[misc]

    def _dimension(
        self, index_tuples: list[tuple[Expr, ...]], dim: int, size: Number, fixed: int
    ) -> tuple[Floats, Floats, frozenset[int]]:
        """The extent of what is touched of one dimension, how much of that is really touched, and by which loops.

        A buffer that is allocated inside the `fixed` outermost loops is filled anew in each of their iterations.
        """
        region = self.region
        width, form = region.hull(index_tuples, dim, size)
        loops = region.loops_of([indices[dim] for indices in index_tuples])
        if fixed:
            width = width.copy()
            width[:fixed] = width[fixed]
            loops = frozenset(position for position in loops if position >= fixed)
        hull = width + 1
        if form is not None and is_dense(form):
            return hull, hull, loops
        multiple = step(form) if form is not None and len(index_tuples) == 1 else 1
        dense = hull if multiple == 1 else np.floor(width / multiple) + 1
        return hull, np.minimum(dense, region.path.product_of(loops) * len(index_tuples)), loops

    def _lines(
        self, hulls: list[Floats], counts: list[Floats], shape: list[Number], span: Floats, element_bytes: int
    ) -> tuple[Floats, Floats, Floats]:
        """Cache lines that hold what is touched, in how many runs of neighbours, and the lines that these crowd."""
        if not hulls:
            return np.ones_like(span), np.ones_like(span), np.ones_like(span)
        strides = _strides(shape)
        run, num_runs, is_whole = hulls[-1], np.ones_like(span), hulls[-1] == shape[-1]
        places = np.ones_like(span)
        for d in range(len(shape) - 2, -1, -1):
            joins = is_whole & (counts[d] == hulls[d])
            apart = np.where(joins, 1.0, counts[d])
            num_runs *= apart
            places *= np.minimum(apart, _places_in_page(strides[d], element_bytes, hulls[d], counts[d]))
            run = np.where(joins, run * hulls[d], run)
            is_whole = joins & (hulls[d] == shape[d])
        lines = self._run_lines(run * element_bytes, element_bytes)
        slots = np.clip(places * lines, 1, PAGE_BYTES / self.line_bytes)
        if counts[-1] is not hulls[-1]:
            lines = np.minimum(lines, counts[-1] * run / hulls[-1])
        lines *= num_runs
        lines = np.minimum(lines, (span + 1) * (element_bytes / self.line_bytes) + 1, out=lines)
        return lines, num_runs, lines * (PAGE_BYTES / self.line_bytes / slots)

    def _run_lines(self, run_bytes: Floats, element_bytes: int) -> Floats:
        """Lines of one run: exact where lines and runs fit into each other, else for a start anywhere in a line."""
        lines = run_bytes / self.line_bytes
        is_exact = (np.floor(lines) == lines) | (np.floor(1 / lines) == 1 / lines)
        anywhere = lines + (1 - element_bytes / self.line_bytes)
        return np.where(is_exact, np.maximum(lines, 1), anywhere)


def _product(factors: list[Floats], like: Floats) -> Floats:
    total = np.ones_like(like)
    for factor in factors:
        total *= factor
    return total


def _places_in_page(stride: Number, element_bytes: int, hull: Floats, count: Floats) -> Floats:
    """At how many places of a page rows can begin, of which `count` are touched among `hull` that are so far apart."""
    stride_bytes = np.asarray(stride, np.int64) * element_bytes
    if count is not hull:
        step = (hull - 1) / np.maximum(count - 1, 1)
        stride_bytes = stride_bytes * np.where((step >= 1) & (step == np.floor(step)), step, 1).astype(np.int64)
    return PAGE_BYTES / np.gcd(stride_bytes, PAGE_BYTES).astype(np.float64)


def _strides(shape: list[Number]) -> list[Number]:
    strides: list[Number] = []
    step: Number = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return strides[::-1]
