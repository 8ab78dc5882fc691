"""`python -m benchmarks.loading`: how long a compiled model takes to load and to run once, and in how much memory.

Writes the model as .onnx and, compiled with zero trials, as .tw, and starts processes that each load one of the two
and run it once: ours and onnxruntime, in turns. Exits with 1 if a model is slow to load, or takes too much memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from tilewright.cli.arrays import write_npz
from tilewright.cli.comparison import check_agreement
from tilewright.deploy.artifact import save
from tilewright.network import compile_network, read_network
from tilewright.zoo import inputs_for

METHOD = (
    "Each run is a new process that imports its library and NumPy, loads the model from its file, and computes one "
    "inference; the two libraries take turns, and an untimed process of each comes first, so that the files are in "
    "memory. The times are medians over the runs. Peak memory is VmHWM at the end, which counts the pages of mapped "
    "files; `after import` is the same before the model is loaded. The outputs of both are compared."
)
MODEL = "zoo:resnet50"
OURS, PEER = "tilewright", "onnxruntime"
LIMIT_S = 0.5
MEMORY_LIMIT = 1.5
ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Sample:
    """One process."""

    import_s: float
    load_s: float
    first_s: float
    imported_mb: float
    peak_mb: float

    @property
    def ready_s(self) -> float:
        """Until the first result is there, without the import."""
        return self.load_s + self.first_s

    @property
    def with_import_s(self) -> float:
        return self.import_s + self.ready_s


@dataclass(frozen=True, slots=True)
class Case:
    """One model. Where onnxruntime is not installed, it has no samples, and memory is not judged."""

    model: str
    threads: int
    onnx_mb: float
    compiled_mb: float
    samples: dict[str, tuple[Sample, ...]]

    def median_of(self, library: str, value: Callable[[Sample], float]) -> float:
        return median(map(value, self.samples[library]))

    @property
    def ready_s(self) -> float:
        """Load and first inference of ours."""
        return self.median_of(OURS, lambda sample: sample.ready_s)

    @property
    def memory_ratio(self) -> float | None:
        """The peak memory of ours by onnxruntime's."""
        if PEER not in self.samples:
            return None
        ours, peer = (self.median_of(library, lambda sample: sample.peak_mb) for library in (OURS, PEER))
        return ours / peer

    @property
    def is_fast(self) -> bool:
        return self.ready_s <= LIMIT_S

    @property
    def is_small(self) -> bool:
        return self.memory_ratio is None or self.memory_ratio <= MEMORY_LIMIT


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen models and print them."""
    options = _parse(argv)
    chosen = [model for model in options.model if options.case in model]
    if not chosen:
        print(f"no model matches; they are {', '.join(options.model)}", file=sys.stderr)
        return 2
    cases = [run(model, options) for model in chosen]
    print(as_json(cases) if options.format == "json" else as_table(cases))
    return 0 if all(case.is_fast and case.is_small for case in cases) else 1


def run(model: str, options: argparse.Namespace) -> Case:
    """Write the model's files, and start the processes."""
    libraries = [OURS, PEER] if find_spec(PEER) else [OURS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = _write_files(model, folder, options.threads)
        for library in libraries:
            load_once(library, files[library], folder, options.threads)
        compare_outputs(libraries, folder)
        samples: dict[str, list[Sample]] = {library: [] for library in libraries}
        for number in range(options.runs):
            print(f"{model}: run {number + 1} of {options.runs}", file=sys.stderr, flush=True)
            for library in libraries if number % 2 == 0 else reversed(libraries):
                samples[library].append(load_once(library, files[library], folder, options.threads))
        onnx_mb, compiled_mb = (files[library].stat().st_size / 1e6 for library in (PEER, OURS))
    return Case(model, options.threads, onnx_mb, compiled_mb, {name: tuple(found) for name, found in samples.items()})


def load_once(library: str, model: Path, folder: Path, threads: int) -> Sample:
    """Load and run the model in a new process, which leaves its outputs in the folder."""
    paths = [str(model), str(folder / "inputs.npz"), str(_outputs_path(library, folder))]
    command = [sys.executable, "-m", "benchmarks.load_once", library, *paths, str(threads)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S)
    return Sample(**json.loads(done.stdout))


def _write_files(model: str, folder: Path, threads: int) -> dict[str, Path]:
    """The file that each library loads, and the inputs for all."""
    print(f"{model}: compiling with zero trials", file=sys.stderr, flush=True)
    files = {OURS: folder / "model.tw", PEER: folder / "model.onnx"}
    source = read_network(model)
    files[PEER].write_bytes(source.SerializeToString())
    compiled = compile_network(source, threads=threads)
    save(compiled, files[OURS])
    write_npz(str(folder / "inputs.npz"), inputs_for(compiled.input_types, source))
    return files


def compare_outputs(libraries: Sequence[str], folder: Path) -> None:
    """An error where the libraries compute different things."""
    found = []
    for library in libraries:
        with np.load(_outputs_path(library, folder), allow_pickle=False) as file:
            found.append({name: file[name] for name in file.files})
    for theirs in found[1:]:
        for name, ours in found[0].items():
            check_agreement(PEER, name, ours, theirs[name])


def _outputs_path(library: str, folder: Path) -> Path:
    return folder / f"{library}.npz"


def as_table(cases: Sequence[Case]) -> str:
    """A line for each library and model, and below them what ours must reach."""
    header = (
        "model", "library", "file", "import", "load", "first inference", "load + first", "best", "with import", "best",
        "peak memory", "after import",
    )  # fmt: skip
    cells = [_row(case, library) for case in cases for library in case.samples]
    verdicts = [line for case in cases for line in _verdicts(case)]
    return "\n".join([heading(describe_machine([PEER]), METHOD), markdown(header, cells), "", *verdicts])


def _row(case: Case, library: str) -> list[str]:
    return [
        case.model,
        library,
        _megabytes(case.compiled_mb if library == OURS else case.onnx_mb),
        _milliseconds(case.median_of(library, lambda sample: sample.import_s)),
        _milliseconds(case.median_of(library, lambda sample: sample.load_s)),
        _milliseconds(case.median_of(library, lambda sample: sample.first_s)),
        _milliseconds(case.median_of(library, lambda sample: sample.ready_s)),
        _milliseconds(min(sample.ready_s for sample in case.samples[library])),
        _milliseconds(case.median_of(library, lambda sample: sample.with_import_s)),
        _milliseconds(min(sample.with_import_s for sample in case.samples[library])),
        _megabytes(case.median_of(library, lambda sample: sample.peak_mb)),
        _megabytes(case.median_of(library, lambda sample: sample.imported_mb)),
    ]


def _verdicts(case: Case) -> list[str]:
    ready = f"{case.model}: load and first inference, without the import: {_milliseconds(case.ready_s)}"
    memory = f"{case.model}: peak memory by that of {PEER}"
    ratio = case.memory_ratio
    judged = "not run: needs onnxruntime"
    if ratio is not None:
        judged = f"{ratio:.2f} (must be <= {MEMORY_LIMIT:g}): {_mark(case.is_small)}"
    return [f"{ready} (must be <= {_milliseconds(LIMIT_S)}): {_mark(case.is_fast)}", f"{memory}: {judged}"]


def _mark(is_reached: bool) -> str:
    return "pass" if is_reached else "FAIL"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"


def _megabytes(value: float) -> str:
    return f"{value:.0f} MB"


def as_json(cases: Sequence[Case]) -> str:
    """The same as one JSON object, with every sample."""
    described = [
        {
            "status": "pass" if case.is_fast and case.is_small else "fail",
            "load_and_first_s": case.ready_s,
            "limit_s": LIMIT_S,
            "memory_ratio": case.memory_ratio,
            "memory_limit": MEMORY_LIMIT,
        }
        | asdict(case)
        for case in cases
    ]
    return json.dumps({"machine": describe_machine([PEER]), "method": METHOD, "cases": described}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.loading", __doc__)
    parser.add_argument("--model", nargs="+", default=[MODEL], help=f"models.onnx or networks; default: {MODEL}")
    parser.add_argument("--runs", type=arguments.positive, default=11, metavar="N", help="processes of each library")
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
