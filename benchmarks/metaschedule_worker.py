"""The side of TVM MetaSchedule, in a process and an environment of its own: nothing of tilewright is imported here.

`python metaschedule_worker.py CASE TRIALS THREADS CPU SEED DIRECTORY` tunes, says so in a line of JSON, and then
answers each line with a number of calls by the seconds that one of them takes, until its input ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Arrays = list[Any]


def main(case: str, trials: int, threads: int, cpu: str, seed: int, directory: str) -> None:
    os.environ["TVM_NUM_THREADS"] = str(threads)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the tuner prints is no answer
    import tvm
    from tvm.s_tir import meta_schedule

    function, inputs, expected = CASES[case](seed)
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
    start = time.perf_counter()
    database = meta_schedule.tune_tir(function, target, directory, trials, seed=seed, num_tuning_cores=threads)
    tuning_s = time.perf_counter() - start
    schedule = meta_schedule.tir_integration.compile_tir(database, function, target)
    if schedule is None:
        raise SystemExit("MetaSchedule found no valid program")
    kernel = tvm.compile(schedule.mod, target=target)
    given = [tvm.runtime.tensor(array) for array in inputs]
    out = tvm.runtime.tensor(expected * 0)
    run = kernel["main"]

    def call() -> None:
        run(*given, out)

    call()
    error = float(abs(out.numpy() - expected).max() / abs(expected).max())
    print(json.dumps({"tuning_s": tuning_s, "error": error}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(seconds_a_call(call, int(line))), file=answers, flush=True)


def seconds_a_call(call: Callable[[], None], number: int) -> float:
    """After one that is not timed."""
    call()
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def gemm(seed: int) -> tuple[Any, Arrays, Any]:
    """512 x 512 x 512."""
    import numpy as np
    from tvm import te

    size = 512
    a, b = (te.placeholder((size, size), "float32", name) for name in "AB")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    x, y = np.random.default_rng(seed).uniform(-1, 1, (2, size, size)).astype(np.float32)
    return te.create_prim_func([a, b, c]), [x, y], x @ y


def convolution(seed: int) -> tuple[Any, Arrays, Any]:
    """28 x 28 places of 128 channels, 128 filters of 3 x 3, padding 1, and ReLU."""
    import numpy as np
    from tvm import te, tirx

    size, channels, filters, taps = 28, 128, 128, 3
    data = te.placeholder((1, size, size, channels), "float32", "X")
    weight = te.placeholder((taps, taps, channels, filters), "float32", "W")

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        is_inside = tirx.all(y >= 1, y <= size, x >= 1, x <= size)
        return tirx.if_then_else(is_inside, data[n, y - 1, x - 1, c], tirx.const(0.0, "float32"))

    padded = te.compute((1, size + 2, size + 2, channels), element, name="padded")
    r, s, c = te.reduce_axis((0, taps), "r"), te.reduce_axis((0, taps), "s"), te.reduce_axis((0, channels), "c")
    conv = te.compute(
        (1, size, size, filters),
        lambda n, y, x, f: te.sum(padded[n, y + r, x + s, c] * weight[r, s, c, f], axis=[r, s, c]),
        name="conv",
    )
    relu = te.compute(conv.shape, lambda *i: tirx.max(conv(*i), tirx.const(0.0, "float32")), name="relu")
    rng = np.random.default_rng(seed)
    image = rng.uniform(-1, 1, (1, size, size, channels)).astype(np.float32)
    kernel = rng.uniform(-1, 1, (taps, taps, channels, filters)).astype(np.float32)
    around = np.pad(image[0], ((1, 1), (1, 1), (0, 0)))
    total = sum(around[y : y + size, x : x + size] @ kernel[y, x] for y in range(taps) for x in range(taps))
    return te.create_prim_func([data, weight, relu]), [image, kernel], np.maximum(total, 0)[None]


CASES: dict[str, Callable[[int], tuple[Any, Arrays, Any]]] = {
    "gmm:512x512x512": gemm,
    "c2d:1x28x28x128,128,3x3,s1,p1+relu": convolution,
}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6])
