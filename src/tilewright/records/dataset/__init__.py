"""Datasets on disk: measured programs of many tasks on many devices, compact and readable anywhere.

`folder.py` says what is where; `read_folder` gives what cost models learn from.
"""

from tilewright.records.dataset.device import Device, checked_name
from tilewright.records.dataset.folder import DatasetFolder, Part
from tilewright.records.dataset.importing import Imported, import_logs
from tilewright.records.dataset.logged import LoggedForm, LoggedPrograms
from tilewright.records.dataset.networks import NetworkTasks
from tilewright.records.dataset.programs import TaskPrograms
from tilewright.records.dataset.reading import read_folder

__all__ = [
    "DatasetFolder",
    "Device",
    "Imported",
    "LoggedForm",
    "LoggedPrograms",
    "NetworkTasks",
    "Part",
    "TaskPrograms",
    "checked_name",
    "import_logs",
    "read_folder",
]
