"""Loads a model and runs it once, in a process of its own, and prints as JSON what that took.

`benchmarks.loading` starts it: `python -m benchmarks.load_once LIBRARY MODEL INPUTS OUTPUTS THREADS`. Nothing but the
standard library is imported before the clock runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Opener = Callable[[str, int], Any]
"""From the path of a model and a number of threads to a session with a `run` as onnxruntime's."""


def main(library: str, model: str, inputs: str, outputs: str, threads: str) -> None:
    """Time the import, the load and the first inference."""
    started_s = time.perf_counter()
    import numpy as np

    open_session = _IMPORTS[library]()
    imported_s = time.perf_counter()
    imported_mb = peak_memory_mb()
    with np.load(inputs, allow_pickle=False) as file:
        feed = {name: file[name] for name in file.files}
    begun_s = time.perf_counter()
    session = open_session(model, int(threads))
    loaded_s = time.perf_counter()
    found = session.run(None, feed)
    ended_s = time.perf_counter()
    sample = {
        "import_s": imported_s - started_s,
        "load_s": loaded_s - begun_s,
        "first_s": ended_s - loaded_s,
        "imported_mb": imported_mb,
        "peak_mb": peak_memory_mb(),
    }
    np.savez(outputs, *found)
    print(json.dumps(sample))


def peak_memory_mb() -> float:
    """The most that this process ever had in memory, pages of mapped files included.

    `getrusage` is no use here: what it tells is inherited from the process that started this one.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _import_tilewright() -> Opener:
    from tilewright import InferenceSession

    return lambda path, threads: InferenceSession(path, threads=threads)


def _import_onnxruntime() -> Opener:
    import onnxruntime

    def open_session(path: str, threads: int) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    return open_session


_IMPORTS: dict[str, Callable[[], Opener]] = {"tilewright": _import_tilewright, "onnxruntime": _import_onnxruntime}


if __name__ == "__main__":
    main(*sys.argv[1:])
