"""Resize and Upsample: an image in another size.

Output place i of an axis lies at the coordinate (a * i + b) / c of the input, a fraction of integers. So the places it
reads are integer arithmetic, exact, and known when the expression is built. Nearest reads one place; linear and cubic
weigh the places around, one axis after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tilewright import te
from tilewright.operators.elementwise import round_half_even
from tilewright.operators.movement import copied
from tilewright.operators.operands import axes_of, check_lengths, check_not_empty, replaced
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError, operator
from tilewright.te import Expr, Tensor

# Up to this many taps are written out; more are a reduction.
_MAX_WRITTEN_TAPS = 4

# The part of an axis that is resized, from its start to its end.
_WHOLE = (Fraction(0), Fraction(1))


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One axis that is resized from `size` to `output` places: place i lies at the coordinate step * i + offset."""

    axis: int
    size: int
    output: int
    scale: Fraction
    step: Fraction
    offset: Fraction
    is_cropped: bool
    """Whether places outside of the input take the extrapolation value."""

    @property
    def denominator(self) -> int:
        return math.lcm(self.step.denominator, self.offset.denominator)

    def numerator(self, index: Expr) -> Expr:
        """The coordinate times the denominator."""
        return index * int(self.step * self.denominator) + int(self.offset * self.denominator)

    def is_outside(self, index: Expr) -> Expr:
        n = self.numerator(index)
        return (n < 0) | (n > (self.size - 1) * self.denominator)

    def rounded_down(self, index: Expr, shift: Fraction) -> Expr:
        """floor(coordinate + shift), kept within the input."""
        start = self.offset + shift
        common = math.lcm(self.step.denominator, start.denominator)
        factor, addend = int(self.step * common), int(start * common)
        # floor((g*a*i + b) / (g*c)) is floor((a*i + floor(b/g)) / c): most upsampling becomes i // 2.
        shared = math.gcd(factor, common) or 1
        factor, addend, divisor = factor // shared, addend // shared, common // shared
        moved = index if factor == 1 else index * factor
        moved = moved if addend == 0 else moved + addend
        place = moved if divisor == 1 else moved // divisor
        ends = [(factor * i + addend) // divisor for i in (0, self.output - 1)]
        if min(ends) < 0:
            place = te.maximum(place, 0)
        return te.minimum(place, self.size - 1) if max(ends) >= self.size else place


@operator("Resize", facts=Facts(checks_shapes=True, shaped_by_floats=True))
def resize(call: Call) -> Tensor:
    """An image resized by scales or to sizes, with the modes that the attributes name."""
    mode = call.attribute("mode", "nearest")
    return _resized(call, mode, _coordinates(call, is_exact=mode == "nearest"))


@operator("Upsample", facts=Facts(checks_shapes=True, shaped_by_floats=True))
def upsample(call: Call) -> Tensor:
    """What Resize was before opset 10: coordinates are divided by the scale."""
    X = call.tensor(0)
    scales = call.value(1)
    if scales is None:
        raise NotCompilableError("Upsample has no scales")
    check_lengths(call, X.ndim, list(scales.reshape(-1)))
    found = []
    for axis, scale in enumerate(_checked_scales(scales)):
        factor = Fraction(scale)
        output = _scaled_size(scale, X.shape[axis])
        check_not_empty(call, (output,))
        found.append(Coordinate(axis, X.shape[axis], output, factor, 1 / factor, Fraction(0), False))
    return _resized(call, call.attribute("mode", "nearest"), [c for c in found if c.scale != 1], "floor")


def _resized(call: Call, mode: str, coordinates: Sequence[Coordinate], rounding: str | None = None) -> Tensor:
    X = call.tensor(0)
    if not coordinates:
        return copied(call, X)
    if mode == "nearest":
        return _nearest(call, coordinates, rounding or call.attribute("nearest_mode", "round_prefer_floor"))
    if mode not in ("linear", "cubic"):
        raise NotCompilableError(f"{call.node.op} has no mode {mode}")
    dtype = "float64" if X.dtype in ("float64", "int32", "int64") else "float32"
    result = X
    for coordinate in coordinates:
        result = _interpolated(call, result, coordinate, _filter(call, mode), dtype)
    if result.dtype == X.dtype:
        return result
    return te.compute(result.shape, lambda *i: _narrowed(result[i], X.dtype), call.name())


def _narrowed(x: Expr, dtype: str) -> Expr:
    """A float in the type of the image; of integers the nearest one."""
    if te.is_float(dtype):
        return te.cast(x, dtype)
    kind = te.DTYPES[dtype]
    low, high = (0, 2**kind.bits - 1) if kind.kind == "uint" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
    return te.cast(te.minimum(te.maximum(round_half_even(x), float(low)), float(high)), dtype)


# --- coordinates ---------------------------------------------------------------------------------------------------


def _coordinates(call: Call, is_exact: bool) -> list[Coordinate]:
    """The axes of a Resize that change."""
    X = call.tensor(0)
    axes = axes_of(call, call.attribute("axes", list(range(X.ndim))), X.ndim)
    scales, outputs = _scales_and_outputs(call, axes, is_exact)
    check_not_empty(call, outputs)
    mode = call.attribute("coordinate_transformation_mode", "half_pixel")
    regions = _regions(call, len(axes)) if mode == "tf_crop_and_resize" else [_WHOLE] * len(axes)
    found = []
    for axis, scale, output, region in zip(axes, scales, outputs, regions, strict=True):
        size = X.shape[axis]
        if scale == 1 and output == size and region == _WHOLE:
            continue
        step, offset = _line(mode, size, output, scale, region)
        found.append(Coordinate(axis, size, output, scale, step, offset, mode == "tf_crop_and_resize"))
    return found


def _scales_and_outputs(call: Call, axes: Sequence[int], is_exact: bool) -> tuple[list[Fraction], list[int]]:
    shape = [call.tensor(0).shape[axis] for axis in axes]
    scales = call.value(2)
    if scales is not None and scales.size:
        check_lengths(call, len(axes), list(scales.reshape(-1)))
        numbers = _checked_scales(scales)
        outputs = [_scaled_size(number, size) for number, size in zip(numbers, shape, strict=True)]
        return [Fraction(number) if is_exact else _simple(number) for number in numbers], outputs
    sizes = call.value(3)
    if sizes is None:
        raise NotCompilableError(f"{call.node.op} has neither scales nor sizes")
    outputs = [int(output) for output in sizes.reshape(-1)]
    check_lengths(call, len(axes), outputs)
    ratios = [Fraction(output, size) for output, size in zip(outputs, shape, strict=True)]
    policy = call.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return ratios, outputs
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [scale] * len(axes), [math.floor(scale * size + Fraction(1, 2)) for size in shape]


def _scaled_size(scale: float, size: int) -> int:
    """Rounded as floats are before the rest is cut off: the float nearest to 18/11 makes 18 of 11, and not 17."""
    return math.floor(np.float32(scale) * np.float32(size))


def _checked_scales(scales: npt.NDArray[np.generic]) -> list[float]:
    numbers = [float(scale) for scale in scales.reshape(-1)]
    if not all(0 < number < math.inf for number in numbers):
        raise MisfitError(f"its scales are {numbers}, but must be greater than 0")
    return numbers


def _simple(number: float) -> Fraction:
    """The simple fraction that a float32 stands for, such as 3/5 for 0.60000002."""
    simple = Fraction(number).limit_denominator(4096)
    return simple if abs(float(simple) - number) <= 2.0**-23 * number else Fraction(number)


def _regions(call: Call, num_axes: int) -> list[tuple[Fraction, Fraction]]:
    """The part of each axis that is cropped, from the operand `roi`: all starts, then all ends."""
    roi = call.value(1)
    if roi is None or roi.size != 2 * num_axes:
        raise NotCompilableError(f"{call.node.op} with tf_crop_and_resize needs a roi of {2 * num_axes} numbers")
    if not np.isfinite(np.asarray(roi, np.float64)).all():
        raise MisfitError(f"its roi is {roi.reshape(-1).tolist()}, which is not all numbers")
    numbers = [Fraction(float(x)) for x in roi.reshape(-1)]
    return list(zip(numbers[:num_axes], numbers[num_axes:], strict=True))


def _line(
    mode: str, size: int, output: int, scale: Fraction, region: tuple[Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    """Step and offset of the coordinates. The output that the scale gives may differ from the rounded `output`."""
    half = Fraction(1, 2)
    unrounded = scale * size
    if mode == "align_corners":
        return (Fraction(0) if unrounded == 1 else (size - 1) / (unrounded - 1)), Fraction(0)
    if mode == "asymmetric":
        return 1 / scale, Fraction(0)
    if mode == "tf_crop_and_resize":
        start, end = region
        if unrounded == 1:
            return Fraction(0), (start + end) * (size - 1) / 2
        return (end - start) * (size - 1) / (unrounded - 1), start * (size - 1)
    if mode == "pytorch_half_pixel" and output == 1:
        return Fraction(0), Fraction(0)
    if mode == "tf_half_pixel_for_nn":
        return 1 / scale, half / scale
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return 1 / scale, half / scale - half
    if mode == "half_pixel_symmetric":
        return 1 / scale, Fraction(size, 2) * (1 - output / unrounded) + half / scale - half
    raise NotCompilableError(f"Resize has no coordinate transformation {mode}")


# --- nearest -------------------------------------------------------------------------------------------------------


def _nearest(call: Call, coordinates: Sequence[Coordinate], rounding: str) -> Tensor:
    X = call.tensor(0)
    by_axis = {coordinate.axis: coordinate for coordinate in coordinates}
    shape = [by_axis[d].output if d in by_axis else extent for d, extent in enumerate(X.shape)]

    def read(*i: Expr) -> Expr:
        value = X[tuple(_nearest_place(by_axis[d], x, rounding) if d in by_axis else x for d, x in enumerate(i))]
        for coordinate in coordinates:
            value = _cropped(call, coordinate, i, value)
        return value

    return te.compute(shape, read, call.name())


def _nearest_place(coordinate: Coordinate, index: Expr, rounding: str) -> Expr:
    common = math.lcm(coordinate.denominator, 2)
    # Just below one: coordinates are multiples of 1 / common, so that adding this rounds up.
    almost_one = 1 - Fraction(1, common)
    shifts = {
        "floor": Fraction(0),
        "ceil": almost_one,
        "round_prefer_ceil": Fraction(1, 2),
        "round_prefer_floor": almost_one - Fraction(1, 2),
    }
    if rounding not in shifts:
        raise NotCompilableError(f"Resize has no nearest mode {rounding}")
    return coordinate.rounded_down(index, shifts[rounding])


def _cropped(call: Call, coordinate: Coordinate, i: Sequence[Expr], value: Expr) -> Expr:
    if not coordinate.is_cropped:
        return value
    outside = te.constant(call.attribute("extrapolation_value", 0.0), value.dtype)
    return te.select(coordinate.is_outside(i[coordinate.axis]), outside, value)


# --- linear and cubic ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Filter:
    """What weighs a place by its distance from the coordinate; it reaches `radius` places to both sides."""

    radius: int
    weight: Callable[[Expr], Expr]
    is_antialiased: bool
    excludes_outside: bool

    def num_taps(self, scale: Fraction) -> int:
        """Places around a coordinate; downscaling without aliases stretches the filter."""
        stretch = 1 / min(scale, Fraction(1)) if self.is_antialiased else Fraction(1)
        return 2 * math.ceil(self.radius * stretch)


def linear_weight(distance: Expr) -> Expr:
    """The weight in a linear interpolation of a place at that distance."""
    return te.maximum(1.0 - distance, 0.0)


def cubic_weight(distance: Expr, a: float) -> Expr:
    """The weight in a cubic convolution of a place at that distance."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1.0
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return te.select(distance <= 1.0, near, te.select(distance < 2.0, far, te.constant(0, distance.dtype)))


def _filter(call: Call, mode: str) -> _Filter:
    is_antialiased, excludes_outside = bool(call.attribute("antialias", 0)), bool(call.attribute("exclude_outside", 0))
    if mode == "linear":
        return _Filter(1, linear_weight, is_antialiased, excludes_outside)
    a = call.attribute("cubic_coeff_a", -0.75)
    return _Filter(2, lambda distance: cubic_weight(distance, a), is_antialiased, excludes_outside)


def _interpolated(call: Call, X: Tensor, coordinate: Coordinate, filter: _Filter, dtype: str) -> Tensor:
    """X resized along one axis: a weighted sum of the places around each coordinate, those at the edges repeated."""
    axis = coordinate.axis
    weights = _weights(call, coordinate, filter, dtype)
    taps = weights.shape[0]
    shape = (*X.shape[:axis], coordinate.output, *X.shape[axis + 1 :])

    def term(i: Sequence[Expr], tap: te.ExprLike) -> Expr:
        place = _first_place(coordinate, i[axis], taps) + tap
        inside = te.minimum(te.maximum(place, 0), coordinate.size - 1)
        return te.cast(X[replaced(i, axis, inside)], dtype) * weights[tap, i[axis]]

    if taps <= _MAX_WRITTEN_TAPS:

        def written(*i: Expr) -> Expr:
            total = term(i, 0)
            for tap in range(1, taps):
                total = total + term(i, tap)
            return _cropped(call, coordinate, i, total)

        return te.compute(shape, written, call.name())
    k = te.reduce_axis(taps, "k")
    total = te.compute(shape, lambda *i: te.sum(term(i, k), axis=k), call.name("weighted"))
    return te.compute(shape, lambda *i: _cropped(call, coordinate, i, total[i]), call.name())


def _first_place(coordinate: Coordinate, index: Expr, taps: int) -> Expr:
    """The first of the places around a coordinate; a whole one counts as the right neighbour of the one before."""
    return (coordinate.numerator(index) - 1) // coordinate.denominator + (1 - taps // 2)


def _weights(call: Call, coordinate: Coordinate, filter: _Filter, dtype: str) -> Tensor:
    """The weight of each tap for each output place, as [tap, place]."""
    taps = filter.num_taps(coordinate.scale)
    stretch = float(min(coordinate.scale, Fraction(1))) if filter.is_antialiased else 1.0
    denominator = coordinate.denominator

    def raw(tap: Expr, i: Expr) -> Expr:
        ratio = te.cast((coordinate.numerator(i) - 1) % denominator + 1, "float64") / float(denominator)
        distance = te.abs(te.cast(tap + (1 - taps // 2), "float64") - ratio) * stretch
        weight = filter.weight(distance)
        if not filter.excludes_outside:
            return weight
        place = _first_place(coordinate, i, taps) + tap
        return te.select((place >= 0) & (place < coordinate.size), weight, te.constant(0, "float64"))

    shape = (taps, coordinate.output)
    if not filter.is_antialiased and not filter.excludes_outside:
        return te.compute(shape, lambda tap, i: te.cast(raw(tap, i), dtype), call.name("weights"))
    unscaled = te.compute(shape, raw, call.name("unscaled"))
    k = te.reduce_axis(taps, "k")
    total = te.compute((coordinate.output,), lambda i: te.sum(unscaled[k, i], axis=k), call.name("total"))
    return te.compute(shape, lambda tap, i: te.cast(unscaled[tap, i] / total[i], dtype), call.name("weights"))
