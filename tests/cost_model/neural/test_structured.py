"""Networks that read the structure of a program keep the promises of the interface."""

from __future__ import annotations

from tilewright.cost_model import CostModel
from tilewright.cost_model.neural import Atformer, MtlTlp, TreeGru
from tilewright.testing.cost_model_checks import EncodedCostModelChecks


class TestTreeGru(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return TreeGru(width=8, num_slots=2, epochs=2, seed=3)


class TestAtformer(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Atformer(width=8, num_heads=2, epochs=2, seed=3)


class TestAtformerWithTheDevice(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Atformer(reads_hardware=True, width=8, num_heads=2, epochs=2, seed=3)


class TestMtlTlp(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return MtlTlp(width=8, num_heads=2, epochs=2, seed=3)
