"""Cost models: scores by which to rank the programs of a population.

`base.py` has the interface, `dataset.py` what a model learns from, `examples.py` the same as arrays, `metrics.py` how
good a ranking is. A model is one class in a file of its own; those that are networks are in `neural/`. `create` makes
one by name, `load` reads one from a file, whichever it is, and `find` takes either, or a model.
"""

from tilewright.cost_model.analytical import AnalyticalModel
from tilewright.cost_model.base import CostModel
from tilewright.cost_model.boosted_trees import BoostedTrees
from tilewright.cost_model.dataset import Dataset, Group, Logged, Measured
from tilewright.cost_model.ensemble import Ensemble
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.factor_trees import FactorTrees
from tilewright.cost_model.metrics import (
    average_peak_score,
    mean_over_tasks,
    pairwise_accuracy,
    peak_score,
    top_k_latency_s,
    top_k_recall,
)
from tilewright.cost_model.neural import (
    Atformer,
    Hierarchical,
    Lstm,
    Mlp,
    MtlTlp,
    NeuralModel,
    PublishedMlp,
    PublishedTlp,
    Tlp,
    TreeGru,
)
from tilewright.cost_model.random import RandomModel
from tilewright.cost_model.registry import (
    DEFAULT,
    adapting,
    create,
    create_from_text,
    default,
    find,
    load,
    names,
    parse_options,
    shipped,
)
from tilewright.cost_model.transfer import ResidualModel, options_of_many_tasks

__all__ = [
    "DEFAULT",
    "AnalyticalModel",
    "Atformer",
    "BoostedTrees",
    "CostModel",
    "Dataset",
    "Ensemble",
    "Examples",
    "FactorTrees",
    "Group",
    "Hierarchical",
    "Logged",
    "Lstm",
    "Measured",
    "Mlp",
    "MtlTlp",
    "NeuralModel",
    "PublishedMlp",
    "PublishedTlp",
    "RandomModel",
    "ResidualModel",
    "Tlp",
    "TreeGru",
    "adapting",
    "average_peak_score",
    "create",
    "create_from_text",
    "default",
    "find",
    "load",
    "mean_over_tasks",
    "names",
    "options_of_many_tasks",
    "pairwise_accuracy",
    "parse_options",
    "peak_score",
    "shipped",
    "top_k_latency_s",
    "top_k_recall",
]
