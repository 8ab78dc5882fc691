"""What the searches of `benchmarks.autotvm` came to: JSON lines that outlive the records, and are added to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).parent / "measured" / "autotvm.jsonl"
"""What was measured for the tables of docs/autotvm.md."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search came to."""

    case: str
    method: str
    seed: int
    gflops: tuple[float, ...]
    """Of the best program after each trial, as it was measured then."""
    ratio: float
    """The time of the reference's best program by that of its own best, both timed in turns."""
    reached_after: int | None
    """The first trial whose program is no slower than the reference's best, in turns; None where there is none."""


@dataclass(frozen=True, slots=True)
class OutcomeFile:
    """Outcomes by what was compared. Those of other processors are kept, and passed over."""

    path: Path
    processor: str

    def find(self, key: str) -> Outcome | None:
        """The last one of that key on this processor; None where there is none."""
        found = None
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                form = json.loads(line)
                if (form["key"], form["processor"]) == (key, self.processor):
                    found = _read(form)
        return found

    def add(self, key: str, outcome: Outcome) -> Outcome:
        """Write it, and give it as it will be read."""
        form = {"key": key, "processor": self.processor, **_write(outcome)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(form) + "\n")
        return replace(_read(form), method=outcome.method)


def _write(outcome: Outcome) -> dict[str, Any]:
    """Of the curve only where it rises."""
    before = (None, *outcome.gflops)
    rises = [[n, round(now, 2)] for n, now in enumerate(outcome.gflops, start=1) if now != before[n - 1]]
    return {
        "case": outcome.case,
        "method": outcome.method,
        "seed": outcome.seed,
        "trials": len(outcome.gflops),
        "gflops": rises,
        "ratio": round(outcome.ratio, 4),
        "reached_after": outcome.reached_after,
    }


def _read(form: Mapping[str, Any]) -> Outcome:
    ends = [n for n, _ in form["gflops"][1:]] + [form["trials"] + 1]
    pieces = (((now,) * (end - n)) for (n, now), end in zip(form["gflops"], ends, strict=True))
    gflops = tuple(now for piece in pieces for now in piece)
    return Outcome(form["case"], form["method"], form["seed"], gflops, form["ratio"], form["reached_after"])
