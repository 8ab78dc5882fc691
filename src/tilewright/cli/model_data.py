"""What `tilewright model train` and `evaluate` have in common: datasets, held-out networks, training with a display."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tilewright.cli.dataset_collect import duration
from tilewright.cli.status_line import StatusLine
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.cost_model import CostModel, Dataset, Group
    from tilewright.cost_model.neural.training import Epoch
    from tilewright.features import Encoder
    from tilewright.records.dataset import Corpus


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """`--data`, `--hold-out` and `--seed`."""
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="FOLDER",
        help="datasets of `tilewright dataset collect` or `import`",
    )
    parser.add_argument(
        "--hold-out",
        action="append",
        default=[],
        metavar="NETWORK,...",
        help="networks of the datasets, in all their sizes, of whose tasks none is learned from, on any device; a * "
        "stands for any letters; =resnet50 for that size alone; or a share of all tasks, such as 20%%; may be repeated",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of models, and of the draw of labels (default: %(default)s)"
    )


def parse_hold_out(given: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """The names in arguments; one that has commas itself, as workloads have, is taken whole if it is known.

    >>> parse_hold_out(["resnet50,c2d:1x8x8x4,4,3x3,20%"], ["c2d:1x8x8x4,4,3x3"])
    ('resnet50', 'c2d:1x8x8x4,4,3x3', '20%')
    """
    names: list[str] = []
    for text in given:
        words = text.split(",")
        while words:
            num = next((n for n in range(len(words), 1, -1) if ",".join(words[:n]) in known), 1)
            names.append(",".join(words[:num]))
            words = words[num:]
    if "" in names:
        raise UsageError(f"--hold-out is {','.join(given)!r}; give names of networks with commas between them")
    return tuple(dict.fromkeys(names))


def names_of(corpus: Corpus) -> set[str]:
    """What the networks of a corpus may be called."""
    return {name for network in corpus.networks for name in (network.name, network.title)}


def check_trainable(model: CostModel, is_begun: bool = False) -> None:
    """Before the data is read: that there is something to learn, and the library to learn with."""
    from tilewright.cost_model import ResidualModel
    from tilewright.cost_model.neural import NeuralModel

    if is_begun and not model.goes_on and not isinstance(model, ResidualModel):
        raise UsageError(
            f"the cost model {model.name} learns all at once and cannot be fine-tuned; train it on old and new "
            f"programs together, or a {ResidualModel.name} over it"
        )
    if model.is_fitted and not is_begun:
        raise UsageError(f"the cost model {model.name} has nothing to learn; `tilewright model list` shows which have")
    if isinstance(model, NeuralModel) and find_spec("torch") is None:
        raise UsageError(
            f"the cost model {model.name} is trained with torch, which is not installed: pip install tilewright[train] "
            "(a trained model does not need it), or train boosted-trees"
        )


def train_shown(model: CostModel, dataset: Dataset, checkpoint: str | None = None, *, is_begun: bool = False) -> None:
    """Train, and show how far it is on stderr. A network goes on from the checkpoint if that is there.

    One that `is_begun` has learned before: it is fine-tuned, unless it is a residual, which learns over what is.
    """
    from tilewright.cost_model.neural import NeuralModel

    tasks = {group.task_hash for group in dataset.groups}
    devices = dict.fromkeys(group.device for group in dataset.groups)
    print(
        f"training {model.name} on {len(dataset)} programs of {len(tasks)} tasks on {', '.join(devices)}",
        file=sys.stderr,
    )
    encode_shown(dataset.groups, model.encoder)
    line = StatusLine()
    try:
        if isinstance(model, NeuralModel):
            if checkpoint is not None and os.path.exists(checkpoint):
                print(f"going on from {checkpoint}", file=sys.stderr)
            learn = model.fine_tune if is_begun else model.fit
            learn(dataset, checkpoint=checkpoint, on_epoch=lambda epoch: line.show(epoch_status(epoch)))
        elif is_begun and model.goes_on:
            model.fine_tune(dataset)
        else:
            model.fit(dataset)
    finally:
        line.finish()
    model.tasks_ = tuple(sorted(tasks | set(model.tasks_)))


def encode_shown(groups: Sequence[Group], encoder: Encoder) -> None:
    """Let the encoder read programs, which keep what it makes of them, and show how far it is."""
    line, num = StatusLine(), sum(map(len, groups))
    done = 0
    for group in groups:
        group.encoded(encoder)
        done += len(group)
        line.show(f"reading programs: {done} of {num}", is_last=done == num)
    line.finish()


def epoch_status(epoch: Epoch) -> str:
    """Where the training of a network stands."""
    held_out = "" if epoch.validation_loss is None else f"  held-out loss {epoch.validation_loss:.4g}"
    return (
        f"epoch {epoch.number}/{epoch.num_epochs}  loss {epoch.train_loss:.4g}{held_out}  "
        f"{epoch.programs_per_s:.0f} programs/s  left {duration(epoch.time_left_s)} at most"
    )
