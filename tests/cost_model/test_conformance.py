"""Every cost model of the package keeps the promises of the interface."""

from __future__ import annotations

from tilewright.cost_model import BoostedTrees, CostModel, Ensemble, FactorTrees, RandomModel
from tilewright.testing.cost_model_checks import CostModelChecks, EncodedCostModelChecks


class TestBoostedTrees(CostModelChecks):
    def make(self) -> CostModel:
        return BoostedTrees(seed=3)


class TestRankingTrees(CostModelChecks):
    def make(self) -> CostModel:
        return BoostedTrees(objective="rank", seed=3)


class TestTreesOnCurves(CostModelChecks):
    def make(self) -> CostModel:
        return BoostedTrees(features="curves", objective="rank", seed=3)


class TestResidualTrees(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return BoostedTrees(residual=True, seed=3)


class TestRankingResidualTrees(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return BoostedTrees(objective="rank", residual=True, seed=3)


class TestFactorTrees(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return FactorTrees(num_rounds=10, trees_in_round=2, min_child_weight=0.1, seed=3)


class TestEnsemble(EncodedCostModelChecks):
    def make(self) -> CostModel:
        few = "num_rounds=5,trees_in_round=2,min_child_weight=0.1"
        return Ensemble(members=[f"factor-trees:{few}", "boosted-trees:objective=rank", "analytical"], seed=3)


class TestRandomModel(CostModelChecks):
    def make(self) -> CostModel:
        return RandomModel(seed=3)
