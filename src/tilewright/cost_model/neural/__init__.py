"""Cost models that are networks: trained with torch, run without it.

`model.py` is the base, with what all of them do. `training.py` trains, on `batches.py` with `losses.py`; `export.py`
makes ONNX of the result, `trained.py` holds and runs it, with what is plugged into `inference.py`. A model is a class
with options here and a network in `modules/`, both in files of one name.
"""

from tilewright.cost_model.neural.atformer import Atformer
from tilewright.cost_model.neural.hierarchical import Hierarchical
from tilewright.cost_model.neural.lstm import Lstm
from tilewright.cost_model.neural.mlp import Mlp, PublishedMlp
from tilewright.cost_model.neural.model import NeuralModel
from tilewright.cost_model.neural.mtl_tlp import MtlTlp
from tilewright.cost_model.neural.tlp import PublishedTlp, Tlp
from tilewright.cost_model.neural.tree_gru import TreeGru

__all__ = [
    "Atformer",
    "Hierarchical",
    "Lstm",
    "Mlp",
    "MtlTlp",
    "NeuralModel",
    "PublishedMlp",
    "PublishedTlp",
    "Tlp",
    "TreeGru",
]
