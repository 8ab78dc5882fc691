"""Cost models by name, from files, or as they are given."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from reprlib import repr as shown
from typing import Any

from tilewright.cost_model.analytical import AnalyticalModel
from tilewright.cost_model.base import CostModel, read_file
from tilewright.cost_model.boosted_trees import BoostedTrees
from tilewright.cost_model.ensemble import Ensemble
from tilewright.cost_model.factor_trees import FactorTrees
from tilewright.cost_model.neural import (
    Atformer,
    Hierarchical,
    Lstm,
    Mlp,
    MtlTlp,
    PublishedMlp,
    PublishedTlp,
    Tlp,
    TreeGru,
)
from tilewright.cost_model.random import RandomModel
from tilewright.cost_model.transfer import ResidualModel
from tilewright.errors import UsageError

DEFAULT = "default"
"""The name of what tuning uses: the model that ships, whichever that is, as it adapts to a task."""
_SHIPPED = Path(__file__).parent / "pretrained" / "default.npz"

_MODELS: dict[str, type[CostModel]] = {
    model.name: model
    for model in (
        BoostedTrees,
        AnalyticalModel,
        RandomModel,
        ResidualModel,
        Mlp,
        PublishedMlp,
        Lstm,
        TreeGru,
        PublishedTlp,
        Tlp,
        MtlTlp,
        Atformer,
        Hierarchical,
        FactorTrees,
        Ensemble,
    )
}


@cache
def shipped() -> CostModel:
    """The trained model that comes with the package. All share it: whoever learns from programs does so over it."""
    return load(_SHIPPED)


def default(seed: int = 0) -> CostModel:
    """What tuning uses: the model that ships, and a local one on what that gets wrong of the task."""
    return adapting(shipped(), seed)


def adapting(model: CostModel, seed: int = 0) -> CostModel:
    """A trained model as it adapts to a task that is tuned: it stays as it is, and a local one learns over it.

    To `update` it with a few programs would make it forget the many others. A residual whose local model has learned of
    other tasks is such a model, too.
    """
    adapts = isinstance(model, ResidualModel) and model.local_ is None
    has_learned = model.is_fitted and not adapts and not isinstance(model, AnalyticalModel | RandomModel)
    return ResidualModel.over(model, seed=seed) if has_learned else model


def names() -> list[str]:
    """The names that `create` takes."""
    return list(_MODELS)


def create(name: str, /, **options: Any) -> CostModel:
    """A new model by name.

    >>> create("random", seed=1)
    RandomModel(seed=1)
    """
    model = _model(name)
    return model(**model.checked_options(options))


def create_from_text(text: str, **implied: Any) -> CostModel:
    """A new model by name, with the options behind it; and with the implied ones, where it has such options.

    >>> create_from_text("random:seed=2", seed=1), create_from_text("analytical", seed=1)
    (RandomModel(seed=2), AnalyticalModel())
    >>> create_from_text('ensemble:members=["analytical", "boosted-trees:objective=rank,num_trees=9"],seed=3').options
    {'members': ['analytical', 'boosted-trees:objective=rank,num_trees=9'], 'num_threads': 1, 'seed': 3}
    """
    name, separator, given = text.partition(":")
    known = create(name).options
    options = {key: value for key, value in implied.items() if key in known}
    return create(name, **options | parse_options(_separated(given) if separator else []))


def load(path: str | os.PathLike[str]) -> CostModel:
    """The model in a file, of whichever class it is."""
    header, _ = read_file(path)
    if header["model"] not in _MODELS:
        raise UsageError(
            f"{os.fspath(path)} holds the cost model {shown(header['model'])}, and a cost model is one of "
            f"{', '.join(_MODELS)}; use the version that wrote it, or a newer one"
        )
    return _MODELS[header["model"]].load(path)


def find(model: object, seed: int = 0) -> CostModel:
    """What a caller of `tune` means: a model, the name of one, which is made with `seed`, or the path of a saved one.

    The name "default" is that of the model that ships. It, and one from a file that was trained, adapt to the task. A
    name may have options behind it, as in "boosted-trees:features=curves,objective=rank".

    >>> find("random", seed=1)
    RandomModel(seed=1)
    >>> find("random:seed=2")
    RandomModel(seed=2)
    """
    found = _found(model, seed)
    if isinstance(found, ResidualModel):
        found.check_parts()  # now, and not when the first programs are measured
    return found


def _found(model: object, seed: int) -> CostModel:
    if isinstance(model, CostModel):
        return model
    if model == DEFAULT:
        return default(seed)
    if isinstance(model, str) and model.partition(":")[0] in _MODELS:
        return create_from_text(model, seed=seed)
    if isinstance(model, os.PathLike) or (isinstance(model, str) and os.path.exists(model)):
        return adapting(load(model), seed)
    remedy = f"; make it: {model.__name__}()" if isinstance(model, type) else ""
    raise UsageError(
        f"cost_model is {model!r}; it must be one of {', '.join([DEFAULT, *_MODELS])}, the path of a saved model, "
        f"or an instance of CostModel{remedy}"
    )


def parse_options(given: Sequence[str], what: str = "an option of a cost model") -> dict[str, Any]:
    """Options as text; values are JSON, and what is none is a word.

    >>> parse_options(["epochs=20", "loss=mse", "residual=true"])
    {'epochs': 20, 'loss': 'mse', 'residual': True}
    """
    options: dict[str, Any] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key.isidentifier():
            raise UsageError(f"{what} is {text!r}; give a name and a value, such as epochs=20")
        if key in options:
            raise UsageError(f"{what} gives {key} twice; give it once")
        try:
            options[key] = json.loads(value)
        except (ValueError, RecursionError):
            options[key] = value
    return options


def _separated(given: str) -> list[str]:
    """Options with commas between them; one inside a value that is JSON, such as a list, separates nothing."""
    texts: list[str] = []
    begin = 0
    while begin <= len(given):
        end = given.find(",", _end_of_value(given, begin))
        end = len(given) if end < 0 else end
        texts.append(given[begin:end])
        begin = end + 1
    return texts


def _end_of_value(given: str, begin: int) -> int:
    """Where the JSON of the option from `begin` on ends; `begin` itself where there is none."""
    key, separator, _ = given[begin:].partition("=")
    if not separator or "," in key:
        return begin
    try:
        return json.JSONDecoder().raw_decode(given, begin + len(key) + 1)[1]
    except (ValueError, RecursionError):
        return begin


def _model(name: str) -> type[CostModel]:
    if name not in _MODELS:
        raise UsageError(f"a cost model is one of {', '.join(_MODELS)}, got {name!r}")
    return _MODELS[name]
