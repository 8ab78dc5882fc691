"""From a network in torch to one in ONNX, whose weights are inputs like the programs.

So the same network, compiled once, runs with any weights: those of another training, or after an update.
"""

from __future__ import annotations

import io
import warnings

import torch

from tilewright.cost_model.neural.inference import MASK, SCORES, VALUES
from tilewright.cost_model.neural.modules.program_module import ProgramModule

OPSET = 18


def export(module: ProgramModule, num_columns: int, num_rows: int | None = None) -> bytes:
    """The ONNX model, for any number of programs, and of rows unless `num_rows` says how many."""
    rows = 8 if num_rows is None else num_rows
    programs = torch.zeros(2, rows, num_columns), torch.ones(2, rows)
    axes = {0: "programs"} if num_rows is not None else {0: "programs", 1: "rows"}
    file = io.BytesIO()
    module.eval()
    with warnings.catch_warnings():
        # The exporter that traces is the one that leaves plain operators; torch tells of a newer one.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            programs,
            file,
            dynamo=False,
            export_params=False,
            do_constant_folding=False,
            opset_version=OPSET,
            input_names=[VALUES, MASK],
            output_names=[SCORES],
            dynamic_axes={VALUES: axes, MASK: axes, SCORES: {0: "programs"}},
        )
    return file.getvalue()
