"""`tilewright bench MODEL`: how fast a network runs here, next to other libraries on the same inputs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.cli import network, workload
from tilewright.cli.comparison import OURS, Row, check_agreement, rows_of, table
from tilewright.cli.run import check_compiled
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilewright.network import InferenceSession
    from tilewright.peers import NetworkPeer


def run(arguments: argparse.Namespace) -> None:
    """Time, and print what was found."""
    from tilewright.zoo import inputs_for

    libraries = _libraries(arguments)
    session, origin, threads = _session_of(arguments)
    source = arguments.model or (None if network.is_compiled(arguments.workload) else arguments.workload)
    model = None if source is None else network.read_onnx(source)
    inputs = inputs_for(session.model.input_types, model)
    peers, missing = _peers(libraries, model, threads, inputs)
    rows = measure(session, peers, inputs, arguments.rounds, threads)
    if arguments.format == "json":
        head = {"network": arguments.workload, "target": session.model.target, "threads": threads, "program": origin}
        print(json.dumps(head | {"rows": [row.to_json() for row in rows], "not_run": missing}, indent=2))
        return
    print(f"{arguments.workload} on {threads} threads: {origin}")
    print(table(rows))
    for reason in missing.values():
        print(reason)


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
    from tilewright.network import InferenceSession
    from tilewright.target import Target

    threads = workload.num_threads(arguments)
    if network.is_compiled(arguments.workload):
        check_compiled(arguments)
        session = InferenceSession(arguments.workload, threads=arguments.threads, exact=arguments.exact)
        return session, "as it was compiled", arguments.threads or session.model.threads
    partition, target = network.partition_of(arguments), Target.parse(arguments.target)
    compiled = network.compile_shown(partition, arguments.records, target, threads, arguments.exact)
    return InferenceSession(compiled.model), compiled.origin, threads


def _peers(
    libraries: Sequence[str], model: ModelProto | None, threads: int, inputs: Mapping[str, Any]
) -> tuple[dict[str, NetworkPeer], dict[str, str]]:
    """The libraries that can run the model, which shows when they do, and why the others cannot."""
    from tilewright.peers import PeerError, network_peer

    peers: dict[str, NetworkPeer] = {}
    missing: dict[str, str] = {}
    for name in libraries:
        assert model is not None
        try:
            peer = network_peer(name, model, threads)
            peer.run(inputs)
            peers[name] = peer
        except PeerError as error:
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
    from tilewright.peers import settle_s, take_turns

    names = [output.name for output in session.get_outputs()]
    ours = dict(zip(names, session.run(None, inputs), strict=True))
    for name, peer in peers.items():
        theirs = dict(zip(names, peer.run(inputs), strict=True))
        for output in names:
            check_agreement(name, output, ours[output], theirs[output])
    calls = {OURS: partial(session.run, None, inputs)}
    calls |= {name: partial(peer.run, inputs) for name, peer in peers.items()}
    return rows_of(take_turns(calls, rounds, settle_s(peers, threads)))
