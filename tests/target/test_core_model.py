"""The model of a core: its families, and numbers that are changed."""

from __future__ import annotations

import math

import pytest

from tilewright.errors import CodegenError
from tilewright.target import FAMILIES, MEASURED, CoreModel, Target
from tilewright.target.core_model import NAMES


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("nehalem", "x86"),
        ("sandybridge", "x86"),
        ("haswell", "x86-avx2"),
        ("znver4", "x86-avx512"),
        ("llvm -mcpu=znver4 -mattr=-avx512f", "x86-avx2"),
        ("neoverse-v1", "aarch64"),
        ("spacemit-x60", "riscv64"),
    ],
)
def test_a_core_is_of_the_family_of_its_instruction_set(text: str, family: str) -> None:
    target = Target.parse(text)
    assert target.family == family
    assert target.core == FAMILIES[family]


def test_a_processor_that_is_known_has_numbers_of_its_own() -> None:
    target = Target.parse("znver5")
    assert target.family == "x86-avx512"
    assert target.core.l3_bytes_per_cycle > FAMILIES["x86-avx512"].l3_bytes_per_cycle
    assert "-core=" not in str(target)
    family = Target.parse("llvm -mcpu=znver5 -core=l3_bytes_per_cycle:9")
    assert family.core.l3_bytes_per_cycle == 9
    assert Target.parse(str(family)) == family
    assert family.uncalibrated == target


def test_a_number_that_the_string_gives_is_that_of_the_target() -> None:
    target = Target.parse("llvm -mcpu=haswell -core=l3_bytes_per_cycle:12.5")
    assert target.core.l3_bytes_per_cycle == 12.5
    assert target.core.changes_from(FAMILIES["x86-avx2"]) == {"l3_bytes_per_cycle": 12.5}
    assert target != Target.parse("haswell")


@pytest.mark.parametrize("value", [1 / 3, 1e-6, 1e12, 123456789.123, 5e-5, 7])
def test_every_number_comes_back_from_the_string(value: float) -> None:
    core = ",".join(f"{name}:{value!r}" for name in NAMES)
    target = Target.parse(f"llvm -mcpu=haswell -core={core}")
    assert {getattr(target.core, name) for name in NAMES} == {float(value)}
    assert Target.parse(str(target)) == target


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 10**400, True, None, "2", [2.0]])
def test_what_is_no_number_of_a_core_is_refused(value: object) -> None:
    with pytest.raises(CodegenError, match="window of a core is a number from 1e-06 to 1e\\+12; got"):
        CoreModel().with_values({"window": value})


def test_a_number_that_cores_do_not_have_is_refused() -> None:
    with pytest.raises(CodegenError, match="no number 'speed'; it has clock_hz, "):
        CoreModel().with_values({"speed": 1.0})


def test_what_is_measured_are_numbers_of_a_core() -> None:
    assert set(MEASURED) < set(NAMES)
