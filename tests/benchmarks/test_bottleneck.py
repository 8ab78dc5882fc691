"""What the analytical model says that a program waits for."""

from __future__ import annotations

from benchmarks.bottleneck import bottleneck
from examples.gemm import gemm_schedule, gemm_task
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import Task

TARGET = Target.parse("llvm -mcpu=skylake-avx512")


def test_a_product_in_registers_waits_for_its_arithmetic() -> None:
    found = bottleneck(gemm_schedule(gemm_task(256, 256, 256), TARGET), TARGET, threads=1)
    assert found.startswith("C, ")
    assert found.endswith("is bound by arithmetic")


def test_a_map_of_much_data_waits_for_it() -> None:
    x = te.placeholder((1 << 28,), name="X")
    s = Schedule(Task([x], te.compute((1 << 28,), lambda i: x[i] * 2.0, name="Y")))
    s["Y"].vectorize(s["Y"].split("i", 64)[1])
    assert bottleneck(s, TARGET, threads=1) == "Y, all of the time, is bound by data from memory"
