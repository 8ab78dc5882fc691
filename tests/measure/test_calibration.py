"""Measuring a core: the programs are what they say, and the numbers follow from their times."""

from __future__ import annotations

import pytest

from tilewright.codegen import compile_schedule
from tilewright.measure.calibration import calibrate, make_probes, numbers_of
from tilewright.target import MEASURED, Target

# From far below a slow core to far above a fast one; a busy machine may be anywhere between.
PLAUSIBLE = {
    "clock_hz": (2e8, 1e10),
    "arithmetic_per_cycle": (0.05, 8),
    "loads_per_cycle": (0.05, 8),
    "stores_per_cycle": (0.05, 8),
    "mad_latency": (1, 40),
    "l2_bytes_per_cycle": (0.5, 256),
    "l3_bytes_per_cycle": (0.1, 256),
    "memory_bytes_per_cycle": (0.05, 256),
    "region_cycles": (10, 1e8),
}


def test_this_machine_is_measured() -> None:
    target = Target.native()
    numbers = calibrate(target, threads=2, seconds=0.1)
    absent = {"l2_bytes_per_cycle"} if not target.l2_bytes else set()
    absent |= {"l3_bytes_per_cycle"} if target.l3_bytes <= target.l2_bytes else set()
    assert set(numbers) == set(MEASURED) - absent
    for name, value in numbers.items():
        least, most = PLAUSIBLE[name]
        assert least < value < most, name
    assert Target.parse(str(target)).core.with_values(numbers).clock_hz == numbers["clock_hz"]


def test_what_a_machine_does_not_have_is_not_measured() -> None:
    probes = make_probes(Target.parse("raspberry-pi-4"), threads=1)
    assert {"l3", "shared"}.isdisjoint(probes)
    numbers = numbers_of(probes, dict.fromkeys(probes, 1e-3) | {"region": 1e-7}, threads=1)
    assert set(MEASURED) - numbers.keys() == {"l3_bytes_per_cycle", "region_cycles"}


def test_the_numbers_follow_from_the_times() -> None:
    probes = make_probes(Target.parse("llvm -mcpu=skylake-avx512 -num-cores=4"), threads=4)
    clock_hz = 2e9
    cycles = {name: probe.amount for name, probe in probes.items()}  # one of everything in a cycle
    cycles |= {"mads_in_a_chain": 5 * cycles["mads_in_a_chain"], "mads": cycles["mads"] / 2, "l2": cycles["l2"] / 32}
    cycles |= {"alone": 10_000, "shared": 13_000, "region": 200}
    numbers = numbers_of(probes, {name: count / clock_hz for name, count in cycles.items()}, threads=4)
    assert numbers == pytest.approx(
        {
            "clock_hz": clock_hz, "arithmetic_per_cycle": 2, "loads_per_cycle": 1, "stores_per_cycle": 1,
            "mad_latency": 5, "l2_bytes_per_cycle": 32, "l3_bytes_per_cycle": 1, "memory_bytes_per_cycle": 1,
            "region_cycles": 3000,
        }
    )  # fmt: skip


def test_a_region_costs_no_less_than_to_offer_the_work() -> None:
    probes = make_probes(Target.parse("haswell"), threads=2)
    times_s = dict.fromkeys(probes, 1e-3) | {"region": 1e-6}
    times_s["shared"] = 0.9e-3  # the other one was disturbed
    assert numbers_of(probes, times_s, threads=2)["region_cycles"] == pytest.approx(1e-6 * 2048 / 1e-3)


@pytest.mark.parametrize(
    "text", ["nehalem", "haswell", "skylake-avx512", "aarch64", "a64fx", "riscv64", "spacemit-x60"]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_programs_compile_for_every_target(text: str, threads: int) -> None:
    target = Target.parse(text)
    for probe in make_probes(target, threads).values():
        compile_schedule(probe.schedule, target, probe.threads)


def test_a_cache_that_cores_share_is_read_by_no_more_of_them_than_it_feeds() -> None:
    few = make_probes(Target.parse("llvm -mcpu=znver4 -l2=1M -l3=16M"), threads=64)["l3"]
    assert few.threads == 4
    assert few.amount == 2 << 20  # twice what a core has of its own
