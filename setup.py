"""The native extension; everything else about the package is in pyproject.toml."""

import shutil
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

NATIVE = "src/tilewright/runtime/native"

PACKAGES = """    Debian, Ubuntu: apt install gcc python3-dev
    Fedora:         dnf install gcc python3-devel
    macOS:          xcode-select --install
then run the same command again; another compiler is chosen with the environment variable CC"""


class BuildExtension(build_ext):
    """As setuptools builds it; without a working compiler it says in a few lines what to install."""

    def build_extensions(self) -> None:
        compiler = self.compiler.compiler_so[0]
        if shutil.which(compiler) is None:
            raise SystemExit(f"tilewright needs a C compiler, and there is no {compiler!r}; install one:\n{PACKAGES}")
        try:
            super().build_extensions()
        except CompileError:
            raise SystemExit(
                f"tilewright's C sources cannot be compiled with {compiler!r}, which says why above; mostly the "
                f"headers of Python or of C are missing:\n{PACKAGES}"
            ) from None


setup(
    ext_modules=[
        Extension(
            "tilewright.runtime._native",
            sources=sorted(glob(f"{NATIVE}/*.c")),
            depends=sorted(glob(f"{NATIVE}/*.h")),
            extra_compile_args=["-O3", "-std=gnu11", "-Wall", "-Wextra", "-pthread"],
            extra_link_args=["-pthread"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
