"""`tilewright bench MODEL`: how fast a network runs here, next to other libraries on the same inputs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.cli import arrays, chosen, network
from tilewright.cli.bench import aligned
from tilewright.cli.run import check_compiled
from tilewright.errors import TilewrightError, UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilewright.graph.session import InferenceSession
    from tilewright.peers import NetworkPeer

_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Row:
    """One contestant. `ratio` is its time by that of tilewright."""

    name: str
    latency_ms: float
    ratio: float


def run(arguments: argparse.Namespace) -> None:
    """Time, and print what was found."""
    libraries = _libraries(arguments)
    session, origin, threads = _session_of(arguments)
    source = arguments.model or (None if network.is_compiled(arguments.workload) else arguments.workload)
    model = None if source is None else network.read_onnx(source)
    inputs = arrays.random_inputs(session.model.inputs, model)
    peers, missing = _peers(libraries, model, threads)
    rows = measure(session, peers, inputs, arguments.rounds, threads)
    if arguments.format == "json":
        head = {"network": arguments.workload, "target": session.model.target, "threads": threads, "program": origin}
        print(json.dumps(head | {"rows": [asdict(row) for row in rows], "not_available": missing}, indent=2))
        return
    print(f"{arguments.workload} on {threads} threads: {origin}")
    print(table(rows))
    for name, reason in missing.items():
        print(f"{name}: {reason}")


def _libraries(arguments: argparse.Namespace) -> list[str]:
    """What --against says, before anything is compiled."""
    from tilewright.peers import NETWORK_LIBRARIES

    libraries = [name for name in arguments.against.split(",") if name]
    for name in libraries:
        if name not in NETWORK_LIBRARIES:
            raise UsageError(
                f"a library to run a network with is one of {', '.join(NETWORK_LIBRARIES)}, got {name!r} in --against"
            )
    if network.is_compiled(arguments.workload):
        if libraries and not arguments.model:
            raise UsageError(
                f"{arguments.workload} is compiled, and other libraries cannot run it; give what it was made of, with "
                "--model model.onnx"
            )
    elif arguments.model:
        raise UsageError(f"--model is for compiled models, and {arguments.workload} is what libraries run itself")
    return libraries


def _session_of(arguments: argparse.Namespace) -> tuple[InferenceSession, str, int]:
    """The session, where its programs come from, and its threads."""
    from tilewright.codegen import Target

    threads = chosen.num_threads(arguments)
    if network.is_compiled(arguments.workload):
        check_compiled(arguments)
        session = network.open_session(arguments.workload, arguments.threads)
        return session, "as it was compiled", arguments.threads or session.model.threads
    partition = network.partition_of(arguments)
    compiled = network.compile_partition(partition, arguments.records, Target.parse(arguments.target), threads)
    return network.open_session(compiled.model), compiled.origin, threads


def _peers(
    libraries: Sequence[str], model: ModelProto | None, threads: int
) -> tuple[dict[str, NetworkPeer], dict[str, str]]:
    """The libraries that can run the model, and why the others cannot."""
    from tilewright.peers import NotAvailableError, network_peer

    peers: dict[str, NetworkPeer] = {}
    missing: dict[str, str] = {}
    for name in libraries:
        assert model is not None
        try:
            peers[name] = network_peer(name, model, threads)
        except NotAvailableError as error:
            missing[name] = str(error)
    return peers, missing


def measure(
    session: InferenceSession,
    peers: Mapping[str, NetworkPeer],
    inputs: Mapping[str, Any],
    rounds: int,
    threads: int,
) -> list[Row]:
    """tilewright first, then every library, all in turns; an error where one computes something else."""
    from tilewright.peers import take_turns

    names = [output.name for output in session.get_outputs()]
    ours = dict(zip(names, session.run(None, inputs), strict=True))
    for name, peer in peers.items():
        theirs = dict(zip(names, peer.run(inputs), strict=True))
        for output in names:
            check_agreement(name, output, ours[output], theirs[output])
    calls = {"tilewright": partial(session.run, None, inputs)}
    calls |= {name: partial(peer.run, inputs) for name, peer in peers.items()}
    timings = take_turns(calls, rounds, _settle_s(list(peers), threads))
    ours_s = timings["tilewright"].median_s
    return [Row(name, timing.median_s * 1e3, timing.median_s / ours_s) for name, timing in timings.items()]


def _settle_s(libraries: Sequence[str], threads: int) -> float:
    from tilewright.peers import ONNXRUNTIME_SETTLE_S, OPENMP_SETTLE_S

    if threads == 1 or not libraries:
        return 0.0
    return ONNXRUNTIME_SETTLE_S if "onnxruntime" in libraries else OPENMP_SETTLE_S


def check_agreement(library: str, output: str, ours: Any, theirs: Any) -> None:
    """Both have the same shape, and differ by little of the largest value."""
    import numpy as np

    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape:
        raise _disagreement(library, output, f"have the shapes {a.shape} and {b.shape}")
    if a.dtype.kind in "OUS":
        if not np.array_equal(a.astype(str), b.astype(str)):
            raise _disagreement(library, output, "are different strings")
        return
    a, b = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(np.where(a == b, 0.0, a - b)).max(initial=0.0)
    error = float(difference / max(np.abs(b).max(initial=0.0), 1e-30))
    if not error < _TOLERANCE:
        raise _disagreement(library, output, f"differ by {error:.2g} of the largest value")


def _disagreement(library: str, output: str, how: str) -> TilewrightError:
    return TilewrightError(
        f"tilewright and {library} must compute the same, but their outputs {output} {how}: a speed would mean "
        "nothing; report this with the model and its records"
    )


def table(rows: Sequence[Row]) -> str:
    """One line a contestant."""
    lines = [("", "latency", "time by ours")]
    return aligned([*lines, *((row.name, f"{row.latency_ms:.4g} ms", f"{row.ratio:.2f}") for row in rows)])
