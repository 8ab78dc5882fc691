"""How candidates are measured: time limits, repeats, and which compiler builds them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tilewright.errors import UsageError

DEFAULT_COMPILER = "tilewright.measure.compiler:compile_trace"


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Options of a `Measurer`.

    `compiler` names the function that builds a candidate, as "module:function". It is the way to measure code that
    does not come from the tilewright compiler: see `compiler.Compiler` for what it is given and returns.
    """

    num_builders: int | None = None  # None: as many as cores
    build_timeout_s: float = 10.0
    run_timeout_s: float = 10.0  # once a best latency is known: ten times that plus a second, if that is less
    min_repeat_ms: float = 3.0  # a repeat runs the kernel so often that it lasts this long
    min_repeats: int = 3
    max_total_ms: float = 12.0  # for a candidate near the best; others stop after min_repeats
    close_factor: float = 1.04  # near the best: below this many times its latency
    hopeless_factor: float = 3.0  # a candidate this many times slower than the best is timed once
    contender_factor: float = 1.3  # a candidate below this many times the best could win: its output is checked
    seed: int = 0  # of the random inputs
    compiler: str = DEFAULT_COMPILER

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and field.name != "seed" and not value > 0:
                raise UsageError(f"the measure option {field.name} is {value}; it must be above 0")
        if self.compiler.count(":") != 1:
            raise UsageError(
                f"the measure option compiler is {self.compiler!r}; it names a function as 'module:function'"
            )

    def run_deadline_s(self, best_latency_s: float | None) -> float:
        """How long a candidate may take from loading to its last run."""
        if best_latency_s is None:
            return self.run_timeout_s
        return min(self.run_timeout_s, 10 * best_latency_s + 1.0)
