"""Networks that read the structure of a program keep the promises of the interface, and say what they cannot read."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.cost_model import CostModel
from tilewright.cost_model.neural import Atformer, TreeGru
from tilewright.errors import UsageError
from tilewright.testing.cost_model_checks import EncodedCostModelChecks


class TestTreeGru(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return TreeGru(width=8, num_slots=2, max_nodes=24, epochs=2, seed=3)

    def test_a_larger_tree_is_refused(self) -> None:
        model = self.fitted()
        with pytest.raises(UsageError, match=r"at most max_nodes=24 nodes, got one of 25; fit it anew with"):
            model.score(np.zeros((1, 25, len(model.encoder.columns)), np.float32))
        small = TreeGru(max_nodes=5)
        with pytest.raises(UsageError, match="at most max_nodes=5 nodes"):
            small.fit_examples(self.examples(2))


class TestAtformer(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Atformer(width=8, num_heads=2, epochs=2, seed=3)


class TestAtformerWithTheDevice(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return Atformer(reads_hardware=True, width=8, num_heads=2, epochs=2, seed=3)
