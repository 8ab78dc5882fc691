"""`tilewright fleet up|status|down`: machines that measure together; and what other commands need to use them."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tilewright.cli.table import table
from tilewright.cli.target import DEFAULT_TARGET
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.measure.fleet import DeviceInfo, Fleet

_LOCAL = "local"
_SHOWN = 60  # characters of a reason in a table


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "fleet",
        help="machines that measure together",
        description="Machines that measure together, connected by Ray. A fleet trusts its machines and its network: "
        "whoever has its secret can run programs on all of them.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_up(actions)
    status = actions.add_parser("status", help="the devices, and what each is doing")
    _add_address(status)
    status.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")
    status.set_defaults(run=show_status)
    down = actions.add_parser(
        "down", help="take this machine's devices out of their fleet; with its head, the fleet ends"
    )
    _add_address(down)
    down.add_argument("--as", dest="name", metavar="NAME", help="only this device (default: all of this machine)")
    down.set_defaults(run=take_down)


def _add_up(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = actions.add_parser(
        "up",
        help="put this machine into a fleet",
        description="Put this machine into a fleet: that of --address, or a new one, which listens on this machine "
        "alone unless --listen names an address that other machines reach.",
    )
    _add_address(up)
    up.add_argument("--listen", metavar="A", help="start a fleet that listens at this address of this machine")
    up.add_argument("--as", dest="name", metavar="NAME", help="what the device is called (default: the host's name)")
    up.add_argument("--target", default=DEFAULT_TARGET, metavar="T", help="what it runs (default: %(default)s)")
    up.add_argument("--cores", metavar="N,...", help="the cores that it measures on, such as 0 or 0-3 (default: all)")
    up.add_argument("--builders", type=int, metavar="N", help="processes that compile (default: as many as cores)")
    up.add_argument("--emulator", metavar="P", help="the program that runs the target's code, such as qemu-aarch64")
    up.add_argument("--no-device", action="store_true", help="measure nothing here: build, or only tune")
    up.set_defaults(run=put_up)


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", metavar="A", help="HOST:PORT of the fleet (default: the one of this machine)")


def put_up(arguments: argparse.Namespace) -> None:
    """Start a node and say how others join it."""
    from tilewright.measure.fleet import Address, Node, start_node
    from tilewright.measure.fleet.cluster import DEFAULT_PORT, LOOPBACK, new_folder

    if arguments.address and arguments.listen:
        raise UsageError("--address joins a fleet, and --listen starts one; give one of them")
    spec = _spec(arguments)
    is_head = arguments.address is None
    address = Address.parse(arguments.address or arguments.listen or f"{LOOPBACK}:{DEFAULT_PORT}")
    print(f"starting {spec.name}; a few seconds", file=sys.stderr)
    start_node(Node(address, is_head, spec, new_folder()))
    print(f"{spec.name} is in the fleet at {address}")
    if is_head:
        print(f"use it: tilewright tune WORKLOAD --fleet {address}")
        print(f"other devices join it: tilewright fleet up --address {address} --as NAME")


def _spec(arguments: argparse.Namespace) -> Any:
    from tilewright.measure.fleet import DeviceSpec
    from tilewright.measure.fleet.cluster import checked_device_name
    from tilewright.target import Target, runs_here

    name = checked_device_name(arguments.name or re.sub(r"[^A-Za-z0-9_.-]+", "-", socket.gethostname()).strip("-._"))
    target = Target.parse(arguments.target)
    if not (arguments.no_device or arguments.emulator or runs_here(target)):
        raise UsageError(
            f"this machine cannot run code for {target}; name the program that can with --emulator, such as "
            f"qemu-{target.arch}, or give --no-device"
        )
    cores = _cores(arguments.cores)
    num_builders = len(cores) if arguments.builders is None else arguments.builders
    if num_builders < 0:
        raise UsageError(f"--builders is {num_builders}; it must be at least 0")
    emulator = arguments.emulator or ""
    return DeviceSpec(name, None if arguments.no_device else str(target), cores, num_builders, emulator)


def _cores(text: str | None) -> tuple[int, ...]:
    """The cores that a text such as 0,2-3 names, of those that there are."""
    there = os.sched_getaffinity(0)
    if text is None:
        return tuple(sorted(there))
    found: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if ends is None:
            raise UsageError(f"--cores is {text!r}; give numbers and ranges, such as 0,2-3")
        found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    if not found or not found <= there:
        raise UsageError(f"--cores is {text!r}; this machine has: {', '.join(map(str, sorted(there)))}")
    return tuple(sorted(found))


def show_status(arguments: argparse.Namespace) -> None:
    """Print the devices of a fleet."""
    from tilewright.measure.fleet import fleet_status

    found = fleet_status(arguments.address)
    print(_as_json(found) if arguments.format == "json" else _as_table(found))


def _as_table(found: list[tuple[DeviceInfo, dict[str, Any]]]) -> str:
    rows: list[tuple[str, ...]] = [("device", "measures", "trials/s", "trials", "failures", "faults", "target")]
    for device, status in found:
        if "lost" in status:
            rows.append((device.name, f"lost: {status['lost']}", "-", "-", "-", "-", device.target or "builds only"))
            continue
        numbers = (f"{status['per_second']:.1f}", *(str(status[n]) for n in ("num_trials", "num_failed")))
        faults = f"{status['num_faults']}{', last: ' + status['last_fault'][:_SHOWN] if status['last_fault'] else ''}"
        rows.append((device.name, status["task"] or "-", *numbers, faults, device.target or "builds only"))
    return table(rows)


def _as_json(found: list[tuple[DeviceInfo, dict[str, Any]]]) -> str:
    devices = [
        {
            "name": d.name,
            "target": d.target,
            "cores": list(d.cores),
            "num_builders": d.num_builders,
            "host": d.host,
            **s,
        }
        for d, s in found
    ]
    return json.dumps(devices, indent=2)


def take_down(arguments: argparse.Namespace) -> None:
    """End the nodes of this machine."""
    from tilewright.measure.fleet import Address, running_nodes, stop_node

    wanted = None if arguments.address is None else str(Address.parse(arguments.address))
    nodes = [
        node
        for node in running_nodes()
        if (wanted is None or node["address"] == wanted) and arguments.name in (None, node["name"])
    ]
    if not nodes:
        raise UsageError("no device of this machine is in such a fleet; `tilewright fleet up` puts it into one")
    for node in sorted(nodes, key=lambda node: bool(node["is_head"])):  # the head last: it ends the others
        stop_node(node["name"])
        print(f"{node['name']} has left the fleet at {node['address']}{', which has ended' * node['is_head']}")


# --- for commands that measure ----------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--fleet and --devices."""
    parser.add_argument(
        "--fleet",
        nargs="?",
        const="auto",
        metavar="ADDRESS|local",
        help="measure on the devices of a fleet: at HOST:PORT, of this machine's fleet, or of one that is started here "
        "for this command (local)",
    )
    parser.add_argument("--devices", metavar="NAME,...", help="of a fleet, only these (default: all of the target)")


@contextlib.contextmanager
def fleets_of_kinds(
    arguments: argparse.Namespace, kinds: list[list[DeviceInfo]], say: Callable[[str], None]
) -> Iterator[dict[str, Fleet]]:
    """A fleet for each kind of devices, by the name of the first of them; closed in the end."""
    from tilewright.measure.fleet import Fleet

    with contextlib.ExitStack() as stack:
        found: dict[str, Fleet] = {}
        for kind in kinds:
            names = [device.name for device in kind]
            fleet = stack.enter_context(Fleet(arguments.fleet, devices=names, threads=arguments.threads, on_event=say))
            print(f"{', '.join(names)}: {fleet.threads} threads on {fleet.target}", file=sys.stderr)
            found[names[0]] = fleet
        yield found


def several_kinds(arguments: argparse.Namespace) -> list[list[DeviceInfo]]:
    """The devices of a command by their kinds, if it measures on several kinds at once; otherwise none."""
    from tilewright.measure.fleet import kinds_of

    if arguments.fleet in (None, _LOCAL) or arguments.target != DEFAULT_TARGET:
        return []
    kinds = kinds_of(arguments.fleet, None if arguments.devices is None else arguments.devices.split(","))
    return kinds if len(kinds) > 1 else []


@contextlib.contextmanager
def chosen_fleet(
    arguments: argparse.Namespace, say: Callable[[str], None], options: Any = None
) -> Iterator[Fleet | None]:
    """The fleet that a command names, or None; closed in the end. `say` is told what happens to its devices.

    With it the target and the threads are those of the devices where the command names none.
    """
    if arguments.fleet is None:
        if arguments.devices is not None:
            raise UsageError("--devices are those of a fleet; name it with --fleet")
        yield None
        return
    from tilewright.measure.fleet import Fleet
    from tilewright.target import checked_threads

    if arguments.fleet == _LOCAL:
        print("starting a fleet of this machine; a few seconds", file=sys.stderr)
    names = None if arguments.devices is None else arguments.devices.split(",")
    is_default = arguments.target == DEFAULT_TARGET
    threads = None if arguments.threads is None else checked_threads(arguments.threads, "--threads")
    with Fleet(
        arguments.fleet,
        devices=names,
        target=None if is_default else arguments.target,
        threads=threads,
        options=options,
        on_event=say,
    ) as fleet:
        named = ", ".join(device.name for device in fleet.devices)
        print(f"measuring on {named}: {fleet.threads} threads on {fleet.target}", file=sys.stderr)
        yield fleet
