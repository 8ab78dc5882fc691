"""A network on the command line: which one is meant, the shapes of its inputs, and compiling it with progress."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.arguments import replaceable_file
from tilewright.cli.status_line import StatusLine
from tilewright.cli.target import DEFAULT_TARGET
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilewright.network import CompiledNetwork
    from tilewright.partition import Partition
    from tilewright.target import Target

_ZOO = "zoo:"
_MODEL = ".onnx"
_COMPILED = ".tw"


def is_network(text: str) -> bool:
    """Whether a WORKLOAD|MODEL argument names a network.

    >>> is_network("zoo:resnet18"), is_network("nets/a.onnx"), is_network("gmm:8x8x8")
    (True, True, False)
    """
    return text.startswith(_ZOO) or text.endswith(_MODEL)


def is_compiled(text: str) -> bool:
    """Whether the argument names a model that `tilewright compile` wrote.

    >>> is_compiled("model.tw"), is_compiled("model.onnx")
    (True, False)
    """
    return text.endswith(_COMPILED)


def check_model(text: str) -> None:
    """A model is a file or a network of the zoo; `load_model` looks into the file."""
    if not text.startswith(_ZOO) and not os.path.isfile(text):
        raise UsageError(f"MODEL is {text!r}, and there is no such file; give model.onnx, or a network as zoo:resnet18")


def check_place(option: str, path: str, *, is_folder: bool = False) -> None:
    """Before long work: that its result can be written to the path in the end."""
    if not path:
        raise UsageError(f"{option} is empty; name a {'folder' if is_folder else 'file'}")
    if not is_folder and path.endswith(os.sep):
        raise UsageError(f"{option} is {path}, which is the name of a folder; name a file")
    place = os.path.realpath(path)
    # A folder that is there is written to, and what it stands in is not, as with one that is mounted.
    folder = place if is_folder and os.path.isdir(place) else os.path.dirname(place)
    if not os.path.isdir(folder):
        raise UsageError(f"{option} is {path}, but there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{option} is {path}, but the folder {folder} must not be written to; name another place")
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except OSError as error:  # such as a name that is too long
        raise UsageError(f"{option} is {path}, which cannot be: {error.strerror}; name another place") from error
    if not is_folder:
        replaceable_file(option, path)
    if is_folder and os.path.exists(path) and not os.path.isdir(path):
        raise UsageError(f"{option} is {path}, which is a file; name a folder")


def add_shape_argument(parser: argparse._ActionsContainer) -> None:
    """`--shape`, which may be given several times."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=SIZES",
        help="what a model leaves open: the shape of an input, such as input=1x3x224x224, or the size of a dimension "
        "by its name, such as batch=4; may be repeated",
    )


def add_exact_argument(parser: argparse._ActionsContainer) -> None:
    """`--exact`."""
    parser.add_argument(
        "--exact",
        action="store_true",
        help="use no algorithm that rounds more than the sums of the task do, such as Winograd's convolution",
    )


def parse_shapes(given: Sequence[str]) -> dict[str, int | tuple[int, ...]]:
    """The shapes and sizes by the names of inputs and dimensions.

    >>> parse_shapes(["input=1x3x224x224", "batch=1"])
    {'input': (1, 3, 224, 224), 'batch': 1}
    """
    shapes: dict[str, int | tuple[int, ...]] = {}
    for text in given:
        found = re.fullmatch(r"(.+)=([0-9]{1,12}(?:x[0-9]{1,12})*)", text)
        if found is None:
            raise UsageError(f"--shape is {text!r}; give a name and sizes, such as input=1x3x224x224 or batch=4")
        name, sizes = found[1], tuple(int(size) for size in found[2].split("x"))
        shape = sizes if len(sizes) > 1 else sizes[0]
        if shapes.setdefault(name, shape) != shape:
            raise UsageError(f"--shape gives {name} twice, the second time as {found[2]}; give it once")
    return shapes


def read_onnx(text: str) -> ModelProto:
    """The model that MODEL names."""
    from tilewright.network import read_network

    check_model(text)
    return read_network(text)


def partition_of(arguments: argparse.Namespace) -> Partition:
    """The network that the arguments name, cut into tasks."""
    from tilewright.network import partition_network

    check_model(arguments.workload)
    return partition_network(arguments.workload, parse_shapes(arguments.shape))


def compile_shown(
    partition: Partition, records: str | None, target: Target, threads: int, exact: bool = False
) -> CompiledNetwork:
    """Compile with the best programs that are known, and show how far it is on stderr."""
    from tilewright.network import compile_partition

    line = StatusLine()

    def show(done: int, total: int) -> None:
        line.show(f"compiling: {done} of {total} kernels", is_last=done == total)

    compiled = compile_partition(partition, records, target, threads, show, exact=exact)
    line.finish()
    return compiled


def compile_command(arguments: argparse.Namespace, records: str | None, output: str) -> str:
    """The command that compiles the model of `arguments`, as they say, with what the records hold."""
    words = ["tilewright", "compile", arguments.workload]
    if records is not None:
        words += ["--records", records]
    words += [word for text in arguments.shape for word in ("--shape", text)]
    if arguments.target != DEFAULT_TARGET:
        words += ["--target", arguments.target]
    if arguments.threads is not None:
        words += ["--threads", str(arguments.threads)]
    if arguments.exact:
        words.append("--exact")
    return shlex.join([*words, "-o", output])
