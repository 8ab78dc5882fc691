"""Targets: what a string means, what it is printed as, and that the processor tables agree with LLVM."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
from llvmlite import binding

from tilewright import CodegenError
from tilewright.target import Caches, Target, runs_here
from tilewright.target.cpus import CPU_FEATURES, GENERIC_CPU, IMPLIED, apply_features

# text, architecture, vector bytes, vector registers, fused multiply-add, float16 conversion
MACHINES = [
    ("x86-64", "x86_64", 16, 16, False, False),
    ("x86-64-v2", "x86_64", 16, 16, False, False),
    ("nehalem", "x86_64", 16, 16, False, False),
    ("sandybridge", "x86_64", 32, 16, False, False),
    ("haswell", "x86_64", 32, 16, True, True),
    ("znver3", "x86_64", 32, 16, True, True),
    ("znver4", "x86_64", 64, 32, True, True),
    ("skylake-avx512", "x86_64", 64, 32, True, True),
    ("aarch64", "aarch64", 16, 32, True, True),
    ("neoverse-v1", "aarch64", 16, 32, True, True),
    ("riscv64", "riscv64", 8, 32, True, False),
    ("spacemit-x60", "riscv64", 16, 32, True, True),
    ("llvm -mcpu=haswell -mattr=-fma", "x86_64", 32, 16, False, True),
    ("llvm -mcpu=haswell -mattr=-avx", "x86_64", 16, 16, False, False),
    ("llvm -mcpu=x86-64 -mattr=+avx512f", "x86_64", 64, 32, True, True),
    ("llvm -mtriple=riscv64-unknown-linux-gnu -mattr=+v", "riscv64", 16, 32, True, False),
]

HASWELL = "llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu"
INTEL_CACHES = "-l1d=32K -l2=256K -l3=8M -line=64"
ARM_CACHES = "-l1d=32K -l2=512K -l3=4M -line=64"
FUTURE = (
    "llvm -mcpu=future9 -mtriple=riscv64-unknown-linux-gnu "
    "-mattr=+m,+a,+f,+d,+c,-zba,-zbb,-zbs,-zfhmin,-zfh,+v -num-cores=1 -l1d=32K -l2=512K -l3=2M -line=64"
)

CANONICAL = [
    ("haswell", f"{HASWELL} -num-cores=1 {INTEL_CACHES}"),
    ("llvm -mcpu=haswell -mattr=+avx2,+fma", f"{HASWELL} -num-cores=1 {INTEL_CACHES}"),
    ("llvm -mattr=-fma,-avx2 -mcpu=haswell", f"{HASWELL} -mattr=-fma,-avx2 -num-cores=1 {INTEL_CACHES}"),
    ("llvm -l3=6144K -line=64 -mcpu=haswell", f"{HASWELL} -num-cores=1 -l1d=32K -l2=256K -l3=6M -line=64"),
    ("llvm -mcpu=haswell -l3=0", f"{HASWELL} -num-cores=1 -l1d=32K -l2=256K -l3=0 -line=64"),
    ("llvm -mcpu=haswell -l2=1000", f"{HASWELL} -num-cores=1 -l1d=32K -l2=1000 -l3=8M -line=64"),
    ("llvm -mcpu=haswell -vector-bits=256 -vector-registers=16", f"{HASWELL} -num-cores=1 {INTEL_CACHES}"),
    (
        "llvm -vector-registers=12 -mcpu=haswell -vector-bits=128",
        f"{HASWELL} -num-cores=1 {INTEL_CACHES} -vector-bits=128 -vector-registers=12",
    ),
    (
        "llvm -mcpu=haswell -core=window:224,mad_latency:5.25,loads_per_cycle:2.0",
        f"{HASWELL} -num-cores=1 {INTEL_CACHES} -core=mad_latency:5.25,window:224",
    ),
    ("aarch64", f"llvm -mcpu=generic -mtriple=aarch64-unknown-linux-gnu -num-cores=1 {ARM_CACHES}"),
    (
        "llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod",
        f"llvm -mcpu=generic -mtriple=aarch64-unknown-linux-gnu -mattr=+dotprod -num-cores=1 {ARM_CACHES}",
    ),
    ("llvm -mcpu=haswell -mtriple=x86_64-linux", f"{HASWELL[:-4]} -num-cores=1 {INTEL_CACHES}"),
    ("llvm -mtriple=aarch64-none-none", f"llvm -mcpu=generic -mtriple=aarch64-none-none -num-cores=1 {ARM_CACHES}"),
    (
        "raspberry-pi-5",
        "llvm -mcpu=cortex-a76 -mtriple=aarch64-unknown-linux-gnu -num-cores=4 -l1d=64K -l2=512K -l3=2M -line=64",
    ),
    (
        "a64fx",
        "llvm -mcpu=a64fx -mtriple=aarch64-unknown-linux-gnu -num-cores=1 -l1d=64K -l2=8M -l3=0 -line=256",
    ),
    (FUTURE, FUTURE),
]

MISTAKES = [
    ("", "begin it with 'llvm'"),
    ("cuda -arch=sm_90", "begin it with 'llvm'"),
    ("hasswell", "did you mean haswell"),
    ("qqqq", "use one such as native, x86_64"),
    ("llvm -mcpu=hasswell", "got 'hasswell': did you mean haswell"),
    ("llvm -mcpu=i386 -mtriple=x86_64-unknown-linux-gnu", "got 'i386'"),
    ("llvm -mcpu=haswell -mtriple=aarch64-unknown-linux-gnu", "-mcpu names an aarch64 processor"),
    ("llvm -mcpu=native -mtriple=riscv64-unknown-linux-gnu", "name a processor, such as -mcpu=generic-rv64"),
    ("llvm -mcpu", "write -option=value"),
    ("llvm -mcpu=", "write -option=value"),
    ("llvm -mcpu haswell", "write -option=value"),
    ("llvm -O3=yes", "got '-O3=yes'"),
    ("llvm -mcpu=haswell -mcpu=haswell", "-mcpu twice"),
    ("llvm -mtriple=sparc-sun-solaris", "got 'sparc-sun-solaris'"),
    ("llvm -mtriple=x86_64", "got 'x86_64'"),
    ("llvm -mtriple=sparc-linux-gnu", "got 'sparc-unknown-linux-gnu'"),
    ("llvm -mcpu=haswell -mattr=avx512f", "each with \\+ or -; got 'avx512f'"),
    ("llvm -mcpu=haswell -mattr=+avx513f", "did you mean avx512f"),
    ("llvm -mcpu=haswell -mattr=+neon", "got '\\+neon'"),
    ("llvm -mcpu=generic", "got 'generic'.*-mtriple"),
    (FUTURE.replace("+m,", ""), "got 'future9'"),
    (FUTURE.replace("future9", "../x"), "got '../x'"),
    ("llvm -mcpu=haswell -num-cores=0", "at least 1 .*got '0'"),
    ("llvm -mcpu=haswell -num-cores=two", "got 'two'"),
    ("llvm -mcpu=haswell -num-cores=" + "9" * 5000, "got '999"),
    ("llvm -mcpu=haswell -num-cores=٣", "got '٣'"),
    ("llvm -mcpu=haswell -l2=256k", "got '256k': write for example -l2=256K"),
    ("llvm -mcpu=haswell -l2=-1", "got '-1'"),
    ("llvm -mcpu=haswell -l2=1e3", "got '1e3'"),
    ("llvm -mcpu=haswell -l1d=0", "which every processor has.*-l1d=0"),
    ("llvm -mcpu=haswell -l3=9999G", "no cache exceeds 1024G; got"),
    ("llvm -mcpu=haswell -line=48", "a power of two.*-line=48"),
    ("llvm -mcpu=haswell -line=0", "a power of two.*-line=0"),
    ("llvm -mcpu=haswell -line=1M -l1d=1M", "at most 4096"),
    ("llvm -mcpu=haswell -vector-bits=512", "at most 256; got '512'"),
    ("llvm -mcpu=haswell -vector-bits=192", "a power of two; got 192"),
    ("llvm -mcpu=haswell -vector-bits=8", "at least 64"),
    ("llvm -mcpu=haswell -vector-registers=17", "at most 16; got '17'"),
    ("llvm -mcpu=haswell -core=window", "got 'window'"),
    ("llvm -mcpu=haswell -core=window:2,window:2", "each name once"),
    ("llvm -mcpu=haswell -core=windows:2", "no number 'windows'"),
    ("llvm -mcpu=haswell -core=window:nan", "got 'window:nan'"),
    ("llvm -mcpu=haswell -core=window:0", "from 1e-06 to 1e\\+12; got 0.0"),
    ("llvm -mcpu=haswell -core=window:1e999", "got inf"),
    ("llvm -cores=2", "got '-cores=2'"),
]


@pytest.mark.parametrize(("text", "arch", "vector_bytes", "num_registers", "has_fma", "has_float16"), MACHINES)
def test_target_knows_its_vector_unit(
    text: str, arch: str, vector_bytes: int, num_registers: int, has_fma: bool, has_float16: bool
) -> None:
    target = Target.parse(text)
    assert target.arch == arch
    assert target.vector_bytes == vector_bytes
    assert target.num_vector_registers == num_registers
    assert target.has_fma == has_fma
    assert target.has_float16_conversion == has_float16


def test_lanes_fill_a_vector_register() -> None:
    haswell = Target.parse("haswell")
    assert [haswell.lanes(dtype) for dtype in ("int8", "float16", "float32", "float64")] == [32, 16, 8, 4]
    assert Target.parse("riscv64").lanes("float64") == 1


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_text_is_canonical(text: str, expected: str) -> None:
    target = Target.parse(text)
    assert str(target) == expected


@pytest.mark.parametrize("text", [row[0] for row in (*MACHINES, *CANONICAL)] + ["native", "llvm", "llvm -num-cores=7"])
def test_text_survives_parsing(text: str) -> None:
    target = Target.parse(text)
    assert Target.parse(str(target)) == target
    assert hash(Target.parse(str(target))) == hash(target)


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistake_is_named_with_its_remedy(text: str, message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        Target.parse(text)


def test_native_is_this_machine() -> None:
    target = Target.native()
    assert runs_here(target)
    assert target.arch == platform.machine()
    assert target.cpu == binding.get_host_cpu_name()
    assert target.num_cores == len(os.sched_getaffinity(0))
    assert target == Target.parse("llvm -mcpu=native") == Target.parse("llvm")
    host = binding.get_host_cpu_features()
    assert target.enabled_features == {name for name in IMPLIED[target.arch] if host.get(name)}


def test_other_machines_are_not_native() -> None:
    other = "riscv64" if platform.machine() != "riscv64" else "aarch64"
    assert not runs_here(Target.parse(other))
    assert not runs_here(Target.parse("llvm -mcpu=x86-64 -mattr=+avx512vp2intersect,+avxvnniint16"))


def test_native_takes_other_options_into_account() -> None:
    native, other = Target.native(), Target.parse("llvm -mcpu=native -num-cores=77 -l2=3M")
    assert (other.num_cores, other.l2_bytes, other.cpu, other.l1_bytes) == (77, 3 << 20, native.cpu, native.l1_bytes)


def test_what_a_string_does_not_say_is_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["haswell", "x86_64", "aarch64", "graviton3", "llvm -mcpu=skylake-avx512 -l2=2M", "spacemit-x60"]
    here = [Target.parse(text) for text in texts]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0} if here[0].num_cores > 1 else {0, 1, 2})
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert [Target.parse(text) for text in texts] == here


def test_caches_are_those_of_the_processor() -> None:
    assert Target.parse("znver4").caches == Caches(32 << 10, 1 << 20, 32 << 20, 64)
    assert Target.parse("llvm -mcpu=znver4 -l3=16M").caches == Caches(32 << 10, 1 << 20, 16 << 20, 64)
    for arch, table in CPU_FEATURES.items():
        for cpu in table:
            target = Target.parse(f"llvm -mcpu={cpu} -mtriple={arch}-unknown-linux-gnu")
            assert target.caches.are_possible
            assert target.l2_bytes == 0 or target.l1_bytes < target.l2_bytes


def test_importing_and_parsing_do_not_load_llvm() -> None:
    program = (
        "import sys; from tilewright.target.target import Target; print(Target.parse('haswell').vector_bytes); "
        "sys.exit('llvmlite' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=_environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "32\n", "")


@pytest.mark.parametrize("arch", list(CPU_FEATURES))
def test_llvm_knows_every_processor_and_feature(arch: str, capfd: pytest.CaptureFixture[str]) -> None:
    binding.initialize_all_targets()
    llvm_target = binding.Target.from_triple(f"{arch}-unknown-linux-gnu")
    for cpu in CPU_FEATURES[arch]:
        llvm_target.create_target_machine(cpu=cpu)
    llvm_target.create_target_machine(cpu=GENERIC_CPU[arch], features=",".join("+" + name for name in IMPLIED[arch]))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("arch", "cpu"), [(arch, cpu) for arch, table in CPU_FEATURES.items() for cpu in table])
def test_features_of_a_processor_are_those_of_llvm(arch: str, cpu: str) -> None:
    features = Target.parse(f"llvm -mcpu={cpu} -mtriple={arch}-unknown-linux-gnu").features
    assert _features_in_llvm(arch, cpu, features) == CPU_FEATURES[arch][cpu]


@pytest.mark.parametrize(("arch", "feature"), [(arch, name) for arch, table in IMPLIED.items() for name in table])
def test_a_feature_brings_along_what_it_does_in_llvm(arch: str, feature: str) -> None:
    generic = Target.parse(arch)
    changes = ",".join(filter(None, [generic.features, "+" + feature]))
    assert _features_in_llvm(arch, generic.cpu, changes) == apply_features(
        arch, generic.enabled_features, ["+" + feature]
    )


def _features_in_llvm(arch: str, cpu: str, features: str) -> frozenset[str]:
    """Which features LLVM gives a processor: it inlines a function only into one that has all its features."""
    binding.initialize_all_targets()
    # The generic aarch64 processor has features and tunings that others lack and that would forbid every inlining.
    neutral = "-trbe,-enable-select-opt,-fuse-adrp-add,-fuse-aes,-use-postra-scheduler," if arch == "aarch64" else ""
    names = list(IMPLIED[arch])
    lines = [f'attributes #0 = {{ "target-cpu"="{cpu}" "target-features"="{features}" }}']
    for n, name in enumerate(names, start=1):
        lines += [
            f"define internal i32 @callee{n}(i32 %x) #{n} {{\n  %y = add i32 %x, {n}\n  ret i32 %y\n}}",
            f"define i32 @{name}(i32 %x) #0 {{\n  %y = call i32 @callee{n}(i32 %x)\n  ret i32 %y\n}}",
            f'attributes #{n} = {{ "target-cpu"="{GENERIC_CPU[arch]}" "target-features"="{neutral}+{name}" }}',
        ]
    module = binding.parse_assembly("\n".join(lines), binding.create_context())
    machine = binding.Target.from_triple(f"{arch}-unknown-linux-gnu").create_target_machine(cpu=cpu, features=features)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=1))
    builder.getModulePassManager().run(module, builder)
    return frozenset(name for name in names if "call" not in str(module.get_function(name)))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
