"""A network on the command line: which one is meant, the shapes of its inputs, and compiling it with progress."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.cli.target import DEFAULT_TARGET
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilewright.deploy.compiled import CompiledModel
    from tilewright.network import InferenceSession
    from tilewright.partition.groups import Partition
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


def base_name(text: str) -> str:
    """What the files that belong to a network are called.

    >>> base_name("zoo:resnet18"), base_name("nets/a.onnx")
    ('resnet18', 'a')
    """
    return text.removeprefix(_ZOO) if text.startswith(_ZOO) else Path(text).stem


def check_model(text: str) -> None:
    """A model is a file or a network of the zoo; `load_model` looks into the file."""
    if not text.startswith(_ZOO) and not os.path.isfile(text):
        raise UsageError(f"MODEL is {text!r}, and there is no such file; give model.onnx, or a network as zoo:resnet18")


def check_place(option: str, path: str, *, is_folder: bool = False) -> None:
    """Before long work: that its result can be written to the path in the end."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{option} is {path}, but there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{option} is {path}, but the folder {folder} must not be written to; name another place")
    if not is_folder and os.path.isdir(path):
        raise UsageError(f"{option} is {path}, which is a folder; name a file")
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
    from tilewright.graph.onnx.reading import read_model
    from tilewright.zoo import build

    check_model(text)
    return build(text.removeprefix(_ZOO)) if text.startswith(_ZOO) else read_model(text)


def partition_of(arguments: argparse.Namespace) -> Partition:
    """The network that the arguments name, cut into tasks."""
    from tilewright.network import partition_network

    check_model(arguments.workload)
    return partition_network(arguments.workload, parse_shapes(arguments.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A compiled network, and how many of its tasks have a program from records."""

    model: CompiledModel
    num_tasks: int
    num_tuned: int

    @property
    def origin(self) -> str:
        """Where its programs come from."""
        num_default = self.num_tasks - self.num_tuned
        return f"{self.num_tasks} tasks, {self.num_tuned} tuned and {num_default} with the default program"


def compile_partition(partition: Partition, records: str | None, target: Target, threads: int) -> Compiled:
    """Compile with the best recorded programs, and show how far it is on stderr."""
    from functools import partial

    from tilewright.cli.status_line import StatusLine
    from tilewright.deploy.compilation import compile_model
    from tilewright.network import recorded_programs
    from tilewright.schedule import Trace
    from tilewright.tuning.untuned import default_trace

    line = StatusLine()
    programs = recorded_programs(partition, records or (), target, threads)
    model = compile_model(
        partition,
        programs,
        target,
        threads,
        default_trace=partial(default_trace, target=target, threads=threads),
        last_resort=Trace(),
        on_progress=lambda done, total: line.show(f"compiling: {done} of {total} kernels", is_last=done == total),
    )
    line.finish()
    num_tuned = sum(found.best is not None for found in programs.values())
    return Compiled(model, len(partition.tasks), num_tuned)


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
    return shlex.join([*words, "-o", output])


def open_session(model: CompiledModel | str, threads: int | None = None) -> InferenceSession:
    """A session of a compiled model."""
    from tilewright.network import InferenceSession

    return InferenceSession(model, threads=threads)
