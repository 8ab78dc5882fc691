"""Which strings in records stand for a target."""

from __future__ import annotations

import pytest

from tilewright.target import Target, stands_for

HASWELL = "llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu"
TARGET = Target.parse(f"{HASWELL} -num-cores=4 -l1d=32K -l2=1M -l3=30M -line=64 -core=window:224")

STANDING = [
    str(TARGET),
    HASWELL,
    f"{HASWELL} -num-cores=4",  # as older versions wrote it
    f"{HASWELL} -num-cores=64",
    f"{HASWELL} -mattr=+avx2 -num-cores=4",
    f"{HASWELL} -l1d=32K -l2=1024K -l3=30M",
    f"{HASWELL} -l2=1M -l3=30M -core=window:400,mad_latency:5",
    f"{HASWELL} -vector-bits=256",
]
OTHERS = [
    f"{HASWELL} -mattr=-fma -num-cores=4",
    HASWELL.replace("haswell", "broadwell"),
    HASWELL.replace("linux-gnu", "linux-musl"),
    f"{HASWELL} -vector-bits=128",
    f"{HASWELL} -vector-registers=8",
    f"{HASWELL} -l2=2M -l3=30M",
    f"{HASWELL} -l2=1M",  # and so the third cache of a haswell
    "aarch64",
    "native",
    "llvm",
    "llvm -mcpu=native",
    "",
    "llvm -keys=arm_cpu,cpu -mcpu=cortex-a72",
    "cuda",
    HASWELL + " " * 5000,
    "x" * 1_000_000,
]


@pytest.mark.parametrize("text", STANDING)
def test_the_same_code_and_caches_stand_for_a_target(text: str) -> None:
    assert stands_for(text, TARGET)


@pytest.mark.parametrize("text", OTHERS)
def test_other_code_or_caches_and_what_is_no_target_do_not(text: str) -> None:
    assert not stands_for(text, TARGET)


def test_a_record_of_this_machine_by_an_older_version_stands_for_it() -> None:
    native = Target.native()
    mattr = f" -mattr={','.join(native.mattr)}" if native.mattr else ""
    assert stands_for(f"llvm -mcpu={native.cpu} -mtriple={native.triple}{mattr} -num-cores={native.num_cores}", native)
