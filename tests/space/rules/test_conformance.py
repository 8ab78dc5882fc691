"""Every rule of the package keeps the promises of the interface."""

from __future__ import annotations

from tilewright import te
from tilewright.space import Rule
from tilewright.space.rules import (
    AddCacheWrite,
    AddRfactor,
    AlwaysInline,
    ComputeLocation,
    FuseColumns,
    FuseRows,
    InlinePadding,
    JoinTiles,
    MultiLevelTiling,
    MultiLevelTilingWithFusion,
    SkipStage,
    SumsInLanes,
)
from tilewright.te import Task
from tilewright.testing.rule_checks import RuleChecks


class TestAlwaysInline(RuleChecks):
    def make(self) -> Rule:
        return AlwaysInline()


class TestInlinePadding(RuleChecks):
    def make(self) -> Rule:
        return InlinePadding()


class TestComputeLocation(RuleChecks):
    def make(self) -> Rule:
        return ComputeLocation()


class TestAddRfactor(RuleChecks):
    def make(self) -> Rule:
        return AddRfactor()


class TestFuseRows(RuleChecks):
    def make(self) -> Rule:
        return FuseRows()


class TestFuseColumns(RuleChecks):
    def make(self) -> Rule:
        return FuseColumns()


class TestSumsInLanes(RuleChecks):
    def make(self) -> Rule:
        return SumsInLanes()

    def own_tasks(self) -> list[Task]:
        x = te.placeholder((6, 8, 64), name="X")
        w = te.placeholder((64, 3), name="W", constant=True)
        c = te.reduce_axis(64, name="c")
        colours = te.compute((6, 8, 3), lambda i, j, f: te.sum(x[i, j, c] * w[c, f], axis=c), name="Y")
        return [Task([x, w], colours)]


class TestJoinTiles(RuleChecks):
    def make(self) -> Rule:
        return JoinTiles()

    def own_tasks(self) -> list[Task]:
        x = te.placeholder((30, 32), name="X")
        v, w = (te.placeholder((32, 40), name=name, constant=True) for name in "VW")
        k, q = te.reduce_axis(32, name="k"), te.reduce_axis(32, name="q")
        a = te.compute((30, 40), lambda i, j: te.sum(x[i, k] * v[k, j], axis=k), name="A")
        b = te.compute((30, 40), lambda i, j: te.sum(x[i, q] * w[q, j], axis=q), name="B")
        return [Task([x, v, w], te.compute((30, 40), lambda i, j: a[i, j] * te.sigmoid(b[i, j]), name="Y"))]


class TestAddCacheWrite(RuleChecks):
    def make(self) -> Rule:
        return AddCacheWrite()


class TestMultiLevelTilingWithFusion(RuleChecks):
    def make(self) -> Rule:
        return MultiLevelTilingWithFusion()


class TestMultiLevelTiling(RuleChecks):
    def make(self) -> Rule:
        return MultiLevelTiling()


class TestSkipStage(RuleChecks):
    def make(self) -> Rule:
        return SkipStage()
