"""Records to write and read."""

from __future__ import annotations

from typing import Any

from tilewright.records import Record
from tilewright.schedule import Trace

TARGET = "llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu -num-cores=4"
TRACE = Trace.from_json(
    [
        {"step": "split", "stage": "C", "arguments": ["i", [4, 8]]},
        {"step": "vectorize", "stage": "C", "arguments": ["i.2"]},
    ]
)


def trace_of(latency_s: float | None) -> Trace:
    """A program of its own for each latency."""
    factor = 1 if latency_s is None else round(latency_s * 1e6)
    split, vectorize = TRACE.to_json()
    return Trace.from_json([split | {"arguments": ["i", [4, factor]]}, vectorize])


def record(**changes: Any) -> Record:
    changes.setdefault("trace", trace_of(changes["latency_s"]) if "latency_s" in changes else TRACE)
    fields: dict[str, Any] = {
        "task": "5f3a",
        "workload": "gmm:512x512x512",
        "target": TARGET,
        "threads": 2,
        "trace": TRACE,
        "status": "OK",
        "latency_s": 2e-3,
        "runs_s": (1e-3, 2e-3, 3e-3),
        "error": "",
        "build_s": 0.015,
        "time": 1.7e9,
    }
    return Record(**fields | changes)


def failed(status: str = "RUN_ERROR", **changes: Any) -> Record:
    fields: dict[str, Any] = {"latency_s": None, "runs_s": (), "error": "the runner died of SIGSEGV"}
    return record(status=status, **fields | changes)
