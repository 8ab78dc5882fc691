"""Datasets on disk: measured programs of many tasks on many devices, compact and readable anywhere.

`folder.py` says what is where; `read_folder` gives what cost models learn from. `Corpus` has the parts of several
folders, `Split` says what of them is learned from and what is held out, and `evaluate` rates a model on that.
"""

from tilewright.records.dataset.corpus import Corpus, Source
from tilewright.records.dataset.device import Device, checked_name
from tilewright.records.dataset.evaluation import (
    Evaluation,
    EvaluationData,
    NetworkLists,
    RankingList,
    Rating,
    evaluate,
    rate,
)
from tilewright.records.dataset.folder import DatasetFolder, Part
from tilewright.records.dataset.importing import Imported, import_logs
from tilewright.records.dataset.logged import LoggedForm, LoggedPrograms
from tilewright.records.dataset.networks import NetworkTasks
from tilewright.records.dataset.programs import TaskPrograms
from tilewright.records.dataset.reading import read_folder
from tilewright.records.dataset.split import Split

__all__ = [
    "Corpus",
    "DatasetFolder",
    "Device",
    "Evaluation",
    "EvaluationData",
    "Imported",
    "LoggedForm",
    "LoggedPrograms",
    "NetworkLists",
    "NetworkTasks",
    "Part",
    "RankingList",
    "Rating",
    "Source",
    "Split",
    "TaskPrograms",
    "checked_name",
    "evaluate",
    "import_logs",
    "rate",
    "read_folder",
]
