"""`tilewright model list`: the cost models that there are."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tilewright.cli.table import table

if TYPE_CHECKING:
    from tilewright.features import Encoder


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to the parser of `tilewright model`."""
    parser = actions.add_parser(
        "list",
        help="the models, and which of them ships",
        description="The cost models by name: what each reads of a program, what it needs to be trained, and which one "
        "ships with the package, trained. That one, with a local model that learns of each task, is what tuning calls "
        "default.",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Row:
    """A model."""

    name: str
    reads: str
    """The name of its encoder."""
    is_trained: bool
    """Whether it has something to learn."""
    needs_torch: bool
    """To be trained; none needs it to predict."""
    is_default: bool
    """Whether it is the one that ships."""
    about: str


def run(arguments: argparse.Namespace) -> None:
    """Print the models."""
    rows = models()
    if arguments.format == "json":
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    cells = [("name", "reads", "trained with", "default", "what it is")]
    for row in rows:
        needs = "torch" if row.needs_torch else "xgboost" if row.is_trained else "-"
        cells.append((row.name, row.reads, needs, "ships" if row.is_default else "", row.about))
    print(table(cells))


def models() -> list[Row]:
    """What is known of each model."""
    from tilewright.cost_model import create, names, shipped
    from tilewright.cost_model.neural import NeuralModel

    ships = shipped().name
    found = []
    for name in names():
        model = create(name)
        about = (type(model).__doc__ or "").strip().splitlines()[0]
        needs_torch = isinstance(model, NeuralModel)
        found.append(Row(name, reads(model.encoder), not model.is_fitted, needs_torch, name == ships, about))
    return found


def reads(encoder: Encoder) -> str:
    """The name of what is read, as `create_encoder` takes it."""
    from tilewright.features import JoinedEncoder

    return "+".join(map(reads, encoder.parts)) if isinstance(encoder, JoinedEncoder) else encoder.name
