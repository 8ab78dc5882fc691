"""`tilewright dataset info`: what datasets hold."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tilewright.cli.table import one_line, table

if TYPE_CHECKING:
    from tilewright.records.dataset.summary import DeviceSummary, NetworkSummary, Summary


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to the parser of `tilewright dataset`."""
    parser = actions.add_parser(
        "info",
        help="devices, networks, programs, failures and noise of datasets",
        description="What datasets hold: devices, networks, tasks, programs, failures, how far latencies are spread, "
        "and how noisy they are where some were measured twice.",
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print a summary of each folder."""
    from tilewright.records.dataset.summary import summarize

    found = [summarize(folder) for folder in arguments.folders]
    if arguments.format == "json":
        print(json.dumps([asdict(summary) for summary in found], indent=1))
    else:
        print("\n\n".join(map(describe, found)))


def describe(summary: Summary) -> str:
    """The datasets as tables: devices, then networks."""
    lines = [
        f"{summary.path}: {summary.num_programs} programs of {summary.num_tasks} tasks, {_size(summary.num_bytes)}",
        "",
        _devices(summary.devices) if summary.devices else "no devices",
    ]
    if summary.networks:
        lines += ["", _networks(summary.networks, [device.name for device in summary.devices])]
    if summary.broken:
        lines += [
            "",
            f"{len(summary.broken)} parts cannot be read:",
            *(f"  {one_line(text)}" for text in summary.broken),
        ]
    return "\n".join(lines)


def _devices(devices: Sequence[DeviceSummary]) -> str:
    columns = (
        "device",
        "tasks",
        "programs",
        "failed",
        "best of tasks",
        "best/latency 10 50 90 %",
        "noise",
        "what it is",
    )
    return table([columns, *map(_device, devices)])


def _device(device: DeviceSummary) -> tuple[str, ...]:
    best, noise = device.best_latencies_s, device.noise
    what = f"log of {device.tool}, {device.target}" if device.tool else f"{device.threads} threads, {device.processor}"
    return (
        device.name,
        str(device.num_tasks),
        str(device.num_programs),
        str(device.num_failed),
        "-" if best is None else f"{best[0] * 1e3:.3g} to {best[1] * 1e3:.3g} ms",
        "-" if device.labels is None else " ".join(f"{label:.2f}" for label in device.labels),
        "-" if noise is None else f"{noise.median:.1%} (90 %: {noise.quantile_90:.1%}) of {noise.num_programs}",
        what,
    )


def _networks(networks: Sequence[NetworkSummary], devices: Sequence[str]) -> str:
    """How many tasks of each network every device has; workloads in one line."""
    rows: list[tuple[str, ...]] = [("network", "kernels", "tasks", "context", *devices)]
    workloads = [network for network in networks if network.is_workload]
    for network in (network for network in networks if not network.is_workload):
        title = f"{network.name}[{network.sizes}]" if network.sizes else network.name
        counts = (str(network.measured[device]) for device in devices)
        rows.append((title, str(network.num_kernels), str(network.num_tasks), network.context, *counts))
    if workloads:
        counts = (str(sum(network.measured[device] for network in workloads)) for device in devices)
        rows.append((f"{len(workloads)} workloads", "", str(len(workloads)), "warm", *counts))
    return table(rows)


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e5 else f"{num_bytes / 1e3:.1f} kB"
