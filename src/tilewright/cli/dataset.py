"""`tilewright dataset`: measure programs for cost models to learn from, take in logs of other tools, look at both."""

from __future__ import annotations

import argparse

from tilewright.cli import dataset_collect, dataset_import, dataset_info


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "dataset",
        help="measured programs for cost models to learn from",
        description="Measured programs of many tasks on many devices, for cost models to learn from.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in (dataset_collect, dataset_import, dataset_info):
        action.add_parser(actions)
