"""The native extension; everything else about the package is in pyproject.toml."""

from glob import glob

from setuptools import Extension, setup

NATIVE = "src/tilewright/runtime/native"

setup(
    ext_modules=[
        Extension(
            "tilewright.runtime._native",
            sources=sorted(glob(f"{NATIVE}/*.c")),
            depends=sorted(glob(f"{NATIVE}/*.h")),
            extra_compile_args=["-O3", "-std=gnu11", "-Wall", "-Wextra", "-pthread"],
            extra_link_args=["-pthread"],
        )
    ]
)
