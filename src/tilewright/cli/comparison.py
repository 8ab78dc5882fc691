"""What `tilewright bench` says of contestants that computed the same: whether they did, and their times in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from tilewright.runtime import Timing

OURS = "tilewright"
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Row:
    """One contestant. `ratio` is its time by that of tilewright; of a network there is no `gflops`."""

    name: str
    latency_ms: float
    ratio: float
    gflops: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def rows_of(timings: Mapping[str, Timing], flop: float | None = None) -> list[Row]:
    """A row for each contestant, one of which is tilewright."""
    ours_s = timings[OURS].median_s
    medians_s = {name: timing.median_s for name, timing in timings.items()}
    return [Row(name, s * 1e3, s / ours_s, None if flop is None else flop / s / 1e9) for name, s in medians_s.items()]


def table(rows: Sequence[Row]) -> str:
    """One line a contestant."""
    speeds = [] if rows[0].gflops is None else ["GFLOP/s"]
    lines = [["", "latency", *speeds, "time by ours"]]
    for row in rows:
        speeds = [] if row.gflops is None else [f"{row.gflops:.1f}"]
        lines.append([row.name, f"{row.latency_ms:.4g} ms", *speeds, f"{row.ratio:.2f}"])
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """The lines as columns: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    first, *rest = widths
    return "\n".join(
        "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(cells, rest, strict=True))])
        for name, *cells in lines
    )


def check_agreement(library: str, output: str, ours: Any, theirs: Any) -> None:
    """Both have the same shape, and differ by little of the largest value."""
    import numpy as np

    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            raise _disagreement(library, output, f"are sequences of {len(ours)} and {len(theirs)} elements")
        for mine, other in zip(ours, theirs, strict=True):
            check_agreement(library, output, mine, other)
        return
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape:
        raise _disagreement(library, output, f"have the shapes {a.shape} and {b.shape}")
    if a.dtype.kind in "OUS":
        if not np.array_equal(a.astype(str), b.astype(str)):
            raise _disagreement(library, output, "are different strings")
        return
    a, b = a.astype(np.float64), b.astype(np.float64)
    differences = np.abs(np.subtract(a, b, out=np.zeros_like(a), where=a != b))  # equal infinities do not differ
    largest = np.abs(b).max(initial=0.0, where=np.isfinite(b))
    error = float(differences.max(initial=0.0) / max(largest, 1e-30))
    if not error < _TOLERANCE:
        raise _disagreement(library, output, f"differ by {error:.2g} of the largest value")


def _disagreement(library: str, output: str, how: str) -> TilewrightError:
    return TilewrightError(
        f"{OURS} and {library} must compute the same, but their outputs {output} {how}: a speed would mean nothing; "
        "report this with the workload or the model, and its records"
    )
