"""`python -m benchmarks.integers`: networks quantized by onnxruntime's static quantizer, next to onnxruntime on them.

Weights are int8 with a scale for each channel, activations uint8 or int8. onnxruntime is faster on uint8: the marks
are for these. Every finished case is written to a JSON file at once, the quantized models beside it, and with --budget
the trials as records. Exits with 1 if they fall short.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

from benchmarks import arguments, suite
from benchmarks.contest import WrongResultError
from benchmarks.machine import describe_machine
from benchmarks.networks import ratio
from benchmarks.suite import Suite, geometric_mean, milliseconds
from benchmarks.table import heading, markdown
from benchmarks.timing import METHOD as TURNS
from benchmarks.tuned_network import tune_network
from tilewright.errors import TilewrightError
from tilewright.graph.onnx import load_model
from tilewright.network import InferenceSession, compile_partition, partition_network
from tilewright.peers import network_peer, settle_s, take_turns
from tilewright.target import Target
from tilewright.zoo import build, inputs_for

NETWORKS = ("resnet18", "resnet50", "mobilenet_v2", "bert_base")
ACTIVATIONS = ("uint8", "int8")
CASES = tuple(f"{network} {activations}" for activations in ACTIVATIONS for network in NETWORKS)
LIBRARY = "onnxruntime"
REQUIRED_MEAN, REQUIRED_LEAST = 1.1, 0.95
MOST_DIFFERENT = 0.1
METHOD = (
    f"{TURNS} Both run the same file. `difference` is the root of the mean square of what the outputs differ by, as a "
    "part of that of onnxruntime's: a value between two steps of a scale is rounded to either, here and there."
)
_NUM_CALIBRATIONS = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One network. The ratio is onnxruntime's time by ours; it is 0 where `failure` says why there is none."""

    case: str
    threads: int
    budget_s: float = 0.0
    num_tasks: int = 0
    num_kernels: int = 0
    ours_ms: float | None = None
    theirs_ms: float | None = None
    difference: float = 0.0
    ratio: float = 0.0
    failure: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen networks, and print all that the file holds of them."""
    parser = arguments.parser("benchmarks.integers", __doc__)
    parser.add_argument("--budget", type=arguments.positive, metavar="SECONDS", help="tune each for so long")
    options = suite.parse(parser, argv, "integers")
    kept = Suite("case", Row, run, _verdict, as_table, as_json, passed)
    return kept.main([case for case in CASES if options.case in case], options)


def run(case: str, options: argparse.Namespace) -> Row:
    """Quantize one network, compare what it computes, and time both in turns."""
    path = options.records / f"{case.replace(' ', '_')}.onnx"
    if not path.exists():
        network, activations = case.split()
        quantize(network, activations, path)
    try:
        return measure(case, path, options)
    except (TilewrightError, WrongResultError) as error:
        return Row(case, options.threads, failure=str(error).splitlines()[0])


def quantize(network: str, activations: str, path: Path) -> None:
    """Write the network as onnxruntime's static quantizer makes it, calibrated with random inputs."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = build(network)
    types = {name: known for name, known in load_model(model).types.items() if name in _input_names(model)}
    feeds = iter([inputs_for(types, model, seed) for seed in range(_NUM_CALIBRATIONS)])

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # the library has no types
        def get_next(self) -> Mapping[str, Any] | None:
            return next(feeds, None)

    with TemporaryDirectory() as folder:
        plain, prepared = f"{folder}/plain.onnx", f"{folder}/prepared.onnx"
        onnx.save(model, plain)
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        kind = QuantType.QUInt8 if activations == "uint8" else QuantType.QInt8
        quantize_static(
            prepared, str(path), Reader(), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=kind
        )


def _input_names(model: onnx.ModelProto) -> set[str]:
    return {value.name for value in model.graph.input}


def measure(case: str, path: Path, options: argparse.Namespace) -> Row:
    """Compile the file, tuned if a budget is given, and time it next to the library."""
    target, threads, records = Target.native(), options.threads, None
    if options.budget:
        records = options.records / f"{path.stem}.jsonl"
        tune_network(
            path.stem, partial(partition_network, str(path)), records,
            budget_s=options.budget, target=target, threads=threads, seed=options.seed,
        )  # fmt: skip
    partition = partition_network(str(path))
    session = InferenceSession(
        compile_partition(partition, None if records is None else str(records), target, threads).model
    )
    model = onnx.load(path)
    inputs = inputs_for(session.model.input_types, model)
    peer = network_peer(LIBRARY, model, threads)
    difference = compare(session.run(None, inputs), peer.run(inputs))
    calls = {"ours": partial(session.run, None, inputs), LIBRARY: partial(peer.run, inputs)}
    timings = take_turns(calls, options.rounds, settle_s([LIBRARY], threads))
    return Row(
        case,
        threads,
        float(options.budget or 0),
        len(partition.tasks),
        len(partition.kernels),
        timings["ours"].median_s * 1e3,
        timings[LIBRARY].median_s * 1e3,
        difference,
        ratio(timings[LIBRARY], timings["ours"]),
    )


def compare(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """How much the outputs differ, as a part of what they are; an error where that is more than rounding makes."""
    found = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        size = float(np.sqrt(np.mean(np.square(other, dtype=np.float64))))
        found = max(found, float(np.sqrt(np.mean(np.square(mine.astype(np.float64) - other)))) / max(size, 1e-9))
    if found > MOST_DIFFERENT:
        raise WrongResultError(
            f"outputs differ by {found:.1%} of what they are; at most {MOST_DIFFERENT:.0%} is rounding"
        )
    return found


def marked(rows: Sequence[Row]) -> list[Row]:
    """Those that the marks are for."""
    return [row for row in rows if row.case.endswith(" uint8")]


def passed(rows: Sequence[Row]) -> bool:
    """Whether the networks reach what they must."""
    ratios = [row.ratio for row in marked(rows)]
    is_fast = not ratios or (geometric_mean(ratios) >= REQUIRED_MEAN and min(ratios) >= REQUIRED_LEAST)
    return is_fast and not any(row.failure for row in rows)


def as_table(rows: Sequence[Row]) -> str:
    """One line a network, and below them what they must reach."""
    header = ("network", "threads", "tasks", "kernels", "tuning", "ours", LIBRARY, "ratio", "difference", "")
    cells = [
        [
            row.case, str(row.threads), str(row.num_tasks), str(row.num_kernels), f"{row.budget_s:.0f} s",
            milliseconds(row.ours_ms), milliseconds(row.theirs_ms), f"{row.ratio:.2f}", f"{row.difference:.1%}",
            row.failure,
        ]
        for row in rows
    ]  # fmt: skip
    ratios = [row.ratio for row in marked(rows)]
    lines = [heading(describe_machine([LIBRARY]), METHOD), markdown(header, cells), ""]
    if ratios:
        lines.append(
            f"uint8: geometric mean {geometric_mean(ratios):.2f} (must reach {REQUIRED_MEAN:.2f}), "
            f"lowest {min(ratios):.2f} (must reach {REQUIRED_LEAST:.2f})"
        )
    return "\n".join([*lines, "pass" if passed(rows) else "FAIL"])


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object; `Suite.read` takes it back."""
    found = {
        "machine": describe_machine([LIBRARY]),
        "method": METHOD,
        "status": "pass" if passed(rows) else "fail",
        "geometric_mean": geometric_mean([row.ratio for row in marked(rows)]),
        "cases": [asdict(row) for row in rows],
    }
    return json.dumps(found, indent=2)


def _verdict(row: Row) -> str:
    if row.failure:
        return f"failed: {row.failure}"
    return f"{milliseconds(row.ours_ms)}, {LIBRARY} {milliseconds(row.theirs_ms)}: ratio {row.ratio:.2f}"


if __name__ == "__main__":
    sys.exit(main())
