"""`tilewright model evaluate`: how well cost models rank what was measured."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tilewright.cli.model_data import (
    add_data_arguments,
    check_trainable,
    encode_shown,
    names_of,
    parse_hold_out,
    train_shown,
)
from tilewright.cli.table import table
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.cost_model import CostModel
    from tilewright.records.dataset import Corpus, Evaluation, EvaluationData, Rating, Split


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to the parser of `tilewright model`."""
    parser = actions.add_parser(
        "evaluate",
        help="how well models rank measured programs",
        description="Rate cost models on measured programs. top-k is the time that networks take with the best "
        "measured program of each task, over the time that they take with the best of the k that the model likes most; "
        "pairwise is the share of pairs of programs that it has in the right order. A model that is named and has "
        "something to learn is trained on what is not held out.",
    )
    parser.add_argument(
        "models",
        nargs="+",
        metavar="NAME|MODEL.npz",
        help="names of `tilewright model list`, also with options, as in boosted-trees:features=curves; default, or "
        "trained models",
    )
    add_data_arguments(parser)
    parser.add_argument(
        "--device", action="append", metavar="D", help="a device to rate on; may be repeated (default: all)"
    )
    parser.add_argument("--workloads", action="store_true", help="count single workloads beside the networks")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Rate each model in turn, and print all."""
    from tilewright.records.dataset import Corpus, EvaluationData, Split

    models = [find(text, arguments.seed) for text in arguments.models]
    for text, model in zip(arguments.models, models, strict=True):
        check_ready(text, model, bool(arguments.hold_out))
    corpus = Corpus.open(arguments.data)
    split = Split(hold_out=parse_hold_out(arguments.hold_out, names_of(corpus)))
    data = EvaluationData.of(corpus, split, arguments.device, arguments.workloads)
    found = [rated(text, model, corpus, split, data) for text, model in zip(arguments.models, models, strict=True)]
    if arguments.format == "json":
        print(json.dumps([evaluation.to_json() for evaluation in found], indent=1))
    else:
        print(describe(found))


def find(text: str, seed: int) -> CostModel:
    """What an argument names."""
    from tilewright.cost_model import DEFAULT, find, load, names

    if seed < 0:
        raise UsageError(f"--seed is {seed}; it must be at least 0")
    if text == DEFAULT or text.partition(":")[0] in names():
        return find(text, seed)
    if not os.path.exists(text):
        raise UsageError(
            f"{text!r} is neither a file nor a cost model; the models are {', '.join([DEFAULT, *names()])}"
        )
    return load(text)


def check_ready(text: str, model: CostModel, has_rest: bool) -> None:
    """That the model is trained, or can be, before the data is read."""
    if model.is_fitted:
        return
    if os.path.exists(text) and text.partition(":")[0] != model.name:
        raise UsageError(f"{text} holds a cost model that has learned nothing; train it first")
    if not has_rest:
        raise UsageError(
            f"the cost model {text} has learned nothing, and all data is to rate it on; --hold-out some networks, so "
            "that it is trained on the rest, or give the file of a trained one"
        )
    check_trainable(model)


def rated(text: str, model: CostModel, corpus: Corpus, split: Split, data: EvaluationData) -> Evaluation:
    """Train the model if it has to be, and rate it."""
    from tilewright.cost_model import RandomModel
    from tilewright.records.dataset import evaluate

    if not model.is_fitted:
        train_shown(model, split.training(corpus))
    seen = {each.task for each in data.lists} & set(model.tasks_)
    if seen:
        warnings.warn(
            f"{text} has learned from {len(seen)} of the {len({each.task for each in data.lists})} tasks that it is "
            "rated on; --hold-out what was held out when it was trained",
            stacklevel=2,
        )
    if not isinstance(model, RandomModel):
        encode_shown([group for each in data.lists for group in each.groups], model.encoder)
    return evaluate(model, data, text)


def describe(evaluations: Sequence[Evaluation]) -> str:
    """A line for each model; then a line for each network, and for each device if there are several."""
    rows: list[tuple[str, ...]] = [("model", "top-1", "top-5", "pairwise", "tasks", "missing")]
    for evaluation in evaluations:
        rating = evaluation.overall
        numbers = (f"{value:.3f}" for value in (rating.top_1, rating.top_5, rating.pairwise))
        rows.append((evaluation.model, *numbers, str(rating.num_tasks), str(rating.num_missing_tasks)))
    parts = [table(rows), _by("network, top-1 / top-5", evaluations, [each.networks for each in evaluations])]
    if len(evaluations[0].devices) > 1:
        parts.append(_by("device, top-1 / top-5", evaluations, [each.devices for each in evaluations]))
    return "\n\n".join(parts)


def _by(what: str, evaluations: Sequence[Evaluation], ratings: Sequence[Mapping[str, Rating]]) -> str:
    rows = [(what, *(evaluation.model for evaluation in evaluations))]
    for name in ratings[0]:
        rows.append((name, *(f"{each[name].top_1:.3f} / {each[name].top_5:.3f}" for each in ratings)))
    return table(rows)
