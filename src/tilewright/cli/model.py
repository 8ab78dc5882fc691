"""`tilewright model`: cost models, what they are, how they are trained, and how well they rank."""

from __future__ import annotations

import argparse

from tilewright.cli import model_evaluate, model_list, model_train


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "model",
        help="train cost models, and rate them",
        description="Cost models, which rank programs before any is measured: which there are, training them on "
        "datasets, and rating them on networks that they have not seen.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in (model_list, model_train, model_evaluate):
        action.add_parser(actions)
