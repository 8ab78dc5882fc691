"""All cases with what they must reach. The schedules that are measured are in `schedules`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import peers, references, schedules
from benchmarks.contest import Case, Contest, LimitCase, RatioCase, Run
from benchmarks.peers import Call
from benchmarks.references import Array
from benchmarks.timing import Plan
from tilewright.runtime import parallel_region_s

GEMM_SHAPES = [
    ((512, 512, 512), 0.90),
    ((1024, 1024, 1024), 0.90),
    ((197, 768, 768), 0.80),
    ((49, 512, 2048), 0.80),
]
CONV_SHAPES = [
    ((56, 56, 64, 64), 0.85),
    ((28, 28, 128, 128), 0.85),
    ((14, 14, 256, 256), 0.85),
    ((7, 7, 512, 512), 0.75),
]
CONV_YARDSTICK = (1024, 1024, 1024)
DEPTHWISE_SHAPES = [(112, 112, 32), (14, 14, 512)]
SOFTMAX_SHAPE = (512, 1024)
LAYER_NORM_SHAPE = (512, 768)
ELEMENTWISE_SIZE = 16 * 2**20
COMPILE_LIMIT_MS = 30.0
REGION_LIMIT_US = 5.0
# With work in it, the imbalance of the two halves counts too; a worker that had to be woken would show as 100 us.
REGION_WITH_WORK_LIMIT_US = 25.0
REGION_SOFTMAX_SHAPE = (64, 1024)


def all_cases() -> list[Case]:
    """In the order in which they are measured and printed."""
    gflops, gbytes = "GFLOP/s", "GB/s"
    softmax, layer_norm = partial(_softmax, SOFTMAX_SHAPE), partial(_layer_norm, LAYER_NORM_SHAPE)
    cases: list[Case] = []
    for gemm, required in GEMM_SHAPES:
        cases += [RatioCase(f"gemm {_by(gemm)}", t, required, gflops, partial(_gemm, gemm)) for t in (1, 2)]
    for conv, required in CONV_SHAPES:
        cases.append(RatioCase(f"conv2d {_conv_name(conv)}", 1, required, gflops, partial(_conv2d, conv)))
    for image in DEPTHWISE_SHAPES:
        name, prepare = f"depthwise {_by(image)}", partial(_depthwise, image)
        cases += [RatioCase(name, t, 1.0, gflops, prepare, needs_torch=True) for t in (1, 2)]
    for t in (1, 2):
        cases.append(RatioCase(f"softmax {_by(SOFTMAX_SHAPE)}", t, 1.0, gbytes, softmax, needs_torch=True))
    for t in (1, 2):
        cases.append(RatioCase(f"layer norm {_by(LAYER_NORM_SHAPE)}", t, 1.0, gbytes, layer_norm, needs_torch=True))
    cases.append(RatioCase("elementwise a*b+c 16M", 2, 0.90, gbytes, _elementwise))
    for gemm, _ in GEMM_SHAPES:
        for t in (1, 2):
            build = partial(schedules.gemm, *gemm, threads=t)
            cases.append(_compile_case(f"compile gemm {_by(gemm)}", t, build))
    for conv, _ in CONV_SHAPES:
        build = partial(schedules.conv2d, *conv, threads=1)
        cases.append(_compile_case(f"compile conv2d {_conv_name(conv)}", 1, build))
    cases.append(LimitCase("empty parallel region", 2, REGION_LIMIT_US, "us", partial(_empty_region_us, 2)))
    name = f"region with work, softmax {_by(REGION_SOFTMAX_SHAPE)}"
    cases.append(LimitCase(name, 2, REGION_WITH_WORK_LIMIT_US, "us", partial(_region_with_work_us, 2)))
    return cases


# --- ratios -------------------------------------------------------------------------------------------------


def _gemm(shape: tuple[int, int, int], threads: int) -> Contest:
    m, n, k = shape
    a, b = _random((m, k), (k, n))
    out = np.empty((m, n), np.float32)
    kernel = schedules.gemm(m, n, k, threads)
    return _contest(lambda: kernel(a, b, out=out), peers.numpy_gemm(a, b), 2.0 * m * n * k, out, a @ b)


def _conv2d(shape: tuple[int, int, int, int], threads: int) -> Contest:
    h, w, ci, co = shape
    m, n, k = CONV_YARDSTICK
    x, weight, bias, a, b = _random((1, h, w, ci), (3, 3, ci, co), (co,), (m, k), (k, n))
    out = np.empty((1, h, w, co), np.float32)
    kernel = schedules.conv2d(h, w, ci, co, threads).bind(W=weight)
    yardstick = {f"{name} gemm {m}": Run(call, 2.0 * m * n * k) for name, call in peers.numpy_gemm(a, b).items()}
    ours = Run(lambda: kernel(x, bias, out=out), 2.0 * h * w * co * ci * 9)
    return Contest(ours, yardstick, out, references.conv2d_bias_relu(x, weight, bias))


def _depthwise(shape: tuple[int, int, int], threads: int) -> Contest:
    h, w, c = shape
    x, weight = _random((1, h, w, c), (3, 3, c))
    out = np.empty_like(x)
    kernel = schedules.depthwise(h, w, c, threads).bind(W=weight)
    expected = references.depthwise(x, weight)
    return _contest(lambda: kernel(x, out=out), peers.torch_depthwise(x, weight), 2.0 * h * w * c * 9, out, expected)


def _softmax(shape: tuple[int, int], threads: int) -> Contest:
    (x,) = _random(shape)
    out = np.empty_like(x)
    kernel = schedules.softmax(*shape, threads)
    moved = float(x.nbytes + out.nbytes)
    return _contest(lambda: kernel(x, out=out), peers.torch_softmax(x), moved, out, references.softmax(x))


def _layer_norm(shape: tuple[int, int], threads: int) -> Contest:
    x, gamma, beta = _random(shape, shape[1:], shape[1:])
    out = np.empty_like(x)
    kernel = schedules.layer_norm(*shape, threads)
    moved = float(x.nbytes + out.nbytes)
    expected = references.layer_norm(x, gamma, beta)
    torch_calls = peers.torch_layer_norm(x, gamma, beta)
    return _contest(lambda: kernel(x, gamma, beta, out=out), torch_calls, moved, out, expected)


def _elementwise(threads: int) -> Contest:
    a, b, c = _random(*[(ELEMENTWISE_SIZE,)] * 3)
    out = np.empty_like(a)
    kernel = schedules.elementwise(ELEMENTWISE_SIZE, threads)
    copies = {name: Run(call, 2.0 * a.nbytes) for name, call in peers.parallel_copy(a, threads).items()}
    return Contest(Run(lambda: kernel(a, b, c, out=out), 4.0 * a.nbytes), copies, out, a * b + c)


def _contest(ours: Call, others: dict[str, Call], work: float, out: Array, expected: Array) -> Contest:
    """All do the same work."""
    return Contest(Run(ours, work), {name: Run(call, work) for name, call in others.items()}, out, expected)


# --- limits -------------------------------------------------------------------------------------------------


def _compile_case(name: str, threads: int, build: Callable[[], object]) -> LimitCase:
    return LimitCase(name, threads, COMPILE_LIMIT_MS, "ms", partial(_build_times_ms, build))


def _build_times_ms(build: Callable[[], object], plan: Plan) -> list[float]:
    build()
    times = []
    for _ in range(plan.builds):
        start = time.perf_counter()
        build()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def _empty_region_us(threads: int, plan: Plan) -> list[float]:
    parallel_region_s(threads)
    return [parallel_region_s(threads) * 1e6 for _ in range(plan.rounds)]


def _region_with_work_us(threads: int, plan: Plan) -> list[float]:
    """What a region adds to an even share of the work.

    The caller can finish an empty region before another thread has noticed it; here the others have to take part.
    """
    (x,) = _random(REGION_SOFTMAX_SHAPE)
    out = np.empty_like(x)
    alone, shared = (schedules.softmax(*REGION_SOFTMAX_SHAPE, t) for t in (1, threads))
    number = 200
    overheads = []
    for _ in range(plan.rounds):
        alone_s = alone.time(x, out=out, number=number) / number
        shared_s = shared.time(x, out=out, number=number) / number
        overheads.append((shared_s - alone_s / threads) * 1e6)
    return overheads


# --- names and data -----------------------------------------------------------------------------------------


def _random(*shapes: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(0)
    return [generator.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _conv_name(shape: tuple[int, int, int, int]) -> str:
    h, w, ci, co = shape
    return f"{h}x{w}x{ci}->{co}"
