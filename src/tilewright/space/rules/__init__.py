"""The derivation rules, one a file: `derivation.py` applies them to the stages of a task, from the last to the first.

A rule is a class with `matches` and `apply`. Where a rule matches it gives the states that go on from there; a rule
that is exclusive keeps those below it from being tried. User rules come first:

    class FuseAll(Rule):
        name = "fuse_all"
        is_exclusive = True
        def matches(self, state, stage): return stage.name == "special"
        def apply(self, state, stage): return [state.add(ComputeInlineStep(stage.name))]

    derive(task, options, rules=[FuseAll(), *DEFAULT_RULES])

`tilewright.testing.rule_checks` has the tests that every rule passes.
"""

from tilewright.space.rules.add_cache_write import AddCacheWrite
from tilewright.space.rules.add_rfactor import AddRfactor
from tilewright.space.rules.always_inline import AlwaysInline
from tilewright.space.rules.bands_of_rows import BandsOfRows
from tilewright.space.rules.compute_location import ComputeLocation
from tilewright.space.rules.fuse_columns import FuseColumns
from tilewright.space.rules.fuse_rows import FuseRows
from tilewright.space.rules.inline_padding import InlinePadding
from tilewright.space.rules.join_tiles import JoinTiles
from tilewright.space.rules.multi_level_tiling import MultiLevelTiling
from tilewright.space.rules.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from tilewright.space.rules.rule import Rule
from tilewright.space.rules.skip_stage import SkipStage
from tilewright.space.rules.sums_in_lanes import SumsInLanes
from tilewright.space.rules.transform_bands import TransformBands
from tilewright.space.rules.transform_tiles import InlineTiles, StorePadding, TransformTiles

__all__ = [
    "DEFAULT_RULES",
    "AddCacheWrite",
    "AddRfactor",
    "AlwaysInline",
    "BandsOfRows",
    "ComputeLocation",
    "FuseColumns",
    "FuseRows",
    "InlinePadding",
    "InlineTiles",
    "JoinTiles",
    "MultiLevelTiling",
    "MultiLevelTilingWithFusion",
    "Rule",
    "SkipStage",
    "StorePadding",
    "SumsInLanes",
    "TransformBands",
    "TransformTiles",
]

DEFAULT_RULES: tuple[Rule, ...] = (
    TransformBands(),
    TransformTiles(),
    InlineTiles(),
    StorePadding(),
    BandsOfRows(),
    AlwaysInline(),
    InlinePadding(),
    ComputeLocation(),
    AddRfactor(),
    FuseRows(),
    FuseColumns(),
    SumsInLanes(),
    JoinTiles(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    SkipStage(),
)
