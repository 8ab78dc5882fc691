"""Every network among the cost models keeps the promises of the interface."""

from __future__ import annotations

from tilewright.cost_model import CostModel
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
from tilewright.testing.cost_model_checks import CostModelChecks, EncodedCostModelChecks


class TestMlp(CostModelChecks):
    def make(self) -> CostModel:
        return Mlp(width=8, epochs=2, seed=3)


class TestPublishedMlp(CostModelChecks):
    def make(self) -> CostModel:
        return PublishedMlp(width=8, epochs=2, seed=3)


class TestPublishedTlp(CostModelChecks):
    def make(self) -> CostModel:
        return PublishedTlp(width=16, num_heads=2, epochs=2, seed=3)


class TestTlp(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Tlp(width=16, num_heads=2, epochs=2, seed=3)


class TestLstm(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Lstm(width=8, length=8, epochs=2, seed=3)


class TestMtlTlp(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return MtlTlp(width=16, num_heads=2, epochs=2, seed=3)


class TestTreeGru(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return TreeGru(width=8, num_slots=2, epochs=2, seed=3)


class TestAtformer(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Atformer(width=8, num_heads=2, epochs=2, seed=3)


class TestAtformerWithTheDevice(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Atformer(reads_hardware=True, width=8, num_heads=2, epochs=2, seed=3)


class TestHierarchical(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Hierarchical(width=8, num_heads=2, num_members=2, epochs=2, seed=3)
