"""Every network among the cost models keeps the promises of the interface."""

from __future__ import annotations

from tilewright.cost_model import CostModel
from tilewright.cost_model.neural import Mlp
from tilewright.testing.cost_model_checks import CostModelChecks


class TestMlp(CostModelChecks):
    def make(self) -> CostModel:
        return Mlp(width=8, epochs=2, seed=3)
