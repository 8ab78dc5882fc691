"""`tilewright model train`: learn from datasets, and write what was learned."""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tilewright.cli.dataset_collect import duration
from tilewright.cli.model_data import add_data_arguments, check_trainable, names_of, parse_hold_out, train_shown
from tilewright.cli.network import check_place
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.cost_model import CostModel, Dataset

_CHECKPOINT = ".checkpoint"
_NONE = "none"


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to the parser of `tilewright model`."""
    parser = actions.add_parser(
        "train",
        help="learn from datasets",
        description="Train a cost model on datasets, and write it to a file that `tune --cost-model` takes. The "
        "training of a network that was interrupted goes on with the same command. With --prior it goes on from a "
        "model that is trained.",
    )
    parser.add_argument("model", metavar="NAME", help="one of `tilewright model list`")
    add_data_arguments(parser)
    parser.add_argument("--device", metavar="D", help="the device that the model is for, of which --labels are known")
    parser.add_argument(
        "--labels",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="how many of the programs of the device are learned from, from 0 to 1 (default: all)",
    )
    parser.add_argument(
        "--labels-of",
        choices=("programs", "tasks"),
        default="programs",
        help="whether --labels is a share of programs, drawn among those of all tasks (default), or of tasks, with all "
        "their programs",
    )
    parser.add_argument(
        "--others",
        metavar="DEVICE,...",
        help="the devices to learn from beside --device, with all their labels, or none (default: all)",
    )
    parser.add_argument(
        "--programs", type=int, metavar="N", help="learn from no more than N programs of a task on a device"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the model, such as epochs=20 or loss=mse; may be repeated",
    )
    parser.add_argument(
        "--prior",
        metavar="MODEL.npz",
        help="a trained model, or default for the one that ships: a residual learns what it gets wrong and leaves it "
        "as it is; another one has to be of its kind, and is fine-tuned from it, best with --others none",
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL.npz", help="where to write the model")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Train, save, and print what was learned from."""
    from tilewright.cost_model.neural import NeuralModel
    from tilewright.records.dataset import Corpus, Split

    check_place("-o", arguments.output)
    device = arguments.device if arguments.labels else None
    if arguments.prior is None:
        model = make(arguments.model, arguments.option, arguments.seed, device)
    else:
        model = make_over(arguments.prior, arguments.model, arguments.option, arguments.seed, device)
    check_trainable(model, is_begun=arguments.prior is not None)
    checkpoint = f"{arguments.output}{_CHECKPOINT}" if isinstance(model, NeuralModel) else None
    if checkpoint is not None:
        check_place("-o", checkpoint)
    corpus = Corpus.open(arguments.data)
    split = Split(
        hold_out=parse_hold_out(arguments.hold_out, names_of(corpus)),
        device=arguments.device,
        labels=arguments.labels,
        labels_of=arguments.labels_of,
        others=parse_others(arguments.others),
        programs=arguments.programs,
        seed=arguments.seed,
    )
    dataset = split.training(corpus)
    begun_s = time.monotonic()
    try:
        train_shown(model, dataset, checkpoint, is_begun=arguments.prior is not None)
    except KeyboardInterrupt:
        print(_interrupted(checkpoint), file=sys.stderr)
        raise
    model.save(arguments.output)
    if checkpoint is not None:
        with suppress(OSError):
            os.unlink(checkpoint)
    print(summary(model, dataset, len(split.held_out(corpus)), time.monotonic() - begun_s, arguments.output))


def make(name: str, given: Sequence[str], seed: int, device: str | None = None) -> CostModel:
    """The model with its options."""
    from tilewright.cost_model import DEFAULT, create

    if seed < 0:
        raise UsageError(f"--seed is {seed}; it must be at least 0")
    if name == DEFAULT:
        raise UsageError(f"{DEFAULT} is what ships, and trained; `tilewright model list` shows what can be trained")
    return create(name, **options_of(create(name), given, seed, device))


def make_over(prior: str, name: str, given: Sequence[str], seed: int, device: str | None = None) -> CostModel:
    """A residual over the trained model, or that model with other options, to be fine-tuned."""
    from tilewright.cost_model import DEFAULT, ResidualModel, create, load, shipped

    if seed < 0:
        raise UsageError(f"--seed is {seed}; it must be at least 0")
    trained = copy.deepcopy(shipped()) if prior == DEFAULT else load(prior)
    if not trained.is_fitted or isinstance(trained, ResidualModel):
        raise UsageError(
            f"--prior is {prior}, a {trained.name} that others cannot begin with; give a model that learned"
        )
    if name == ResidualModel.name:
        return over(trained, options_of(create(name), given, seed, device))
    if name != trained.name:
        raise UsageError(
            f"--prior is a {trained.name}, and {create(name).name} does not begin with that; train {trained.name}, "
            f"which is then fine-tuned, or {ResidualModel.name}, which learns what it gets wrong"
        )
    encoder = trained.encoder
    for key, value in trained.checked_options(options_of(trained, given, seed, device)).items():
        setattr(trained, key, value)
    if trained.encoder != encoder:
        raise UsageError(f"the model of {prior} reads {encoder}, and by --option it would read {trained.encoder}")
    return trained


def over(trained: CostModel, options: Mapping[str, Any]) -> CostModel:
    """A residual of many tasks over the trained model; its local trees read what trees that are trained read."""
    from tilewright.cost_model import BoostedTrees, ResidualModel, options_of_many_tasks

    fixed = [name for name in ("global_model", "global_options") if name in options]
    if fixed:
        raise UsageError(f"--prior says what the global model is; leave out {' and '.join(fixed)}")
    features = trained.features if isinstance(trained, BoostedTrees) else BoostedTrees().features
    return ResidualModel.over(trained, **options_of_many_tasks(features) | ResidualModel.checked_options(options))


def options_of(model: CostModel, given: Sequence[str], seed: int, device: str | None) -> dict[str, Any]:
    """Those of `--option`; `--seed` and `--device` are among them, if it has a seed and a target."""
    from tilewright.cost_model import parse_options

    wanted = {"seed": seed, "target": device}
    implied = {key: value for key, value in wanted.items() if key in model.options and value is not None}
    return implied | parse_options(given, "--option")


def parse_others(text: str | None) -> tuple[str, ...] | None:
    """The names of devices; None for all.

    >>> parse_others("a72,v100"), parse_others("none"), parse_others(None)
    (('a72', 'v100'), (), None)
    """
    if text is None:
        return None
    return () if text == _NONE else tuple(text.split(","))


def summary(model: CostModel, dataset: Dataset, num_held_out: int, time_s: float, path: str) -> str:
    """What was learned from, and where it is."""
    lines = [
        f"learned: {len(dataset)} programs of {len(model.tasks_)} tasks, {num_held_out} tasks held out",
        f"took: {duration(time_s)}",
        f"model: {path}, {os.path.getsize(path) / 1e6:.2f} MB",
    ]
    return "\n".join(lines)


def _interrupted(checkpoint: str | None) -> str:
    if checkpoint is not None and os.path.exists(checkpoint):
        return f"interrupted; all epochs so far are in {checkpoint}: the same command goes on"
    return "interrupted; nothing is written yet"
