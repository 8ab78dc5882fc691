"""What cost models see of programs: encoders of populations, and the loop analysis behind them."""

from tilewright.features.accesses import READ, READ_WRITE, WRITE, Access
from tilewright.features.analysis import Statement, Traffic, analyze, traffic
from tilewright.features.curves import CURVE_COLUMNS, CurveEncoder
from tilewright.features.encoders import (
    ChoicesEncoder,
    Encoder,
    EstimateEncoder,
    HardwareEncoder,
    JoinedEncoder,
    PublishedStatementEncoder,
    StatementEncoder,
    hardware_of,
)
from tilewright.features.hardware import HARDWARE_NAMES, Hardware
from tilewright.features.hierarchy import HIERARCHY_COLUMNS, PROGRAM_COLUMNS, HierarchyEncoder, ProgramEncoder
from tilewright.features.knobs import KnobsEncoder
from tilewright.features.loop_context import LoopContextEncoder
from tilewright.features.loop_tree import TREE_COLUMNS, LoopTreeEncoder
from tilewright.features.primitive_encoders import (
    NUM_TOKENS,
    FlatPrimitiveEncoder,
    PrimitiveEncoder,
    PublishedPrimitiveEncoder,
    token,
)
from tilewright.features.primitives import Primitive, PrimitiveReader, PrimitiveSequence, primitives_of
from tilewright.features.registry import create_encoder, encoder_from_json, encoder_names, encoder_to_json
from tilewright.features.roofline import Bounds, bounds_of, estimate_cycles, roofline
from tilewright.features.statements import (
    BUFFER_FEATURES,
    ESTIMATE,
    FEATURE_NAMES,
    FeatureTable,
    access_features,
    raw_features,
    statement_features,
    table_of,
)

__all__ = [
    "BUFFER_FEATURES",
    "CURVE_COLUMNS",
    "ESTIMATE",
    "FEATURE_NAMES",
    "HARDWARE_NAMES",
    "HIERARCHY_COLUMNS",
    "NUM_TOKENS",
    "PROGRAM_COLUMNS",
    "READ",
    "READ_WRITE",
    "TREE_COLUMNS",
    "WRITE",
    "Access",
    "Bounds",
    "ChoicesEncoder",
    "CurveEncoder",
    "Encoder",
    "EstimateEncoder",
    "FeatureTable",
    "FlatPrimitiveEncoder",
    "Hardware",
    "HardwareEncoder",
    "HierarchyEncoder",
    "JoinedEncoder",
    "KnobsEncoder",
    "LoopContextEncoder",
    "LoopTreeEncoder",
    "Primitive",
    "PrimitiveEncoder",
    "PrimitiveReader",
    "PrimitiveSequence",
    "ProgramEncoder",
    "PublishedPrimitiveEncoder",
    "PublishedStatementEncoder",
    "Statement",
    "StatementEncoder",
    "Traffic",
    "access_features",
    "analyze",
    "bounds_of",
    "create_encoder",
    "encoder_from_json",
    "encoder_names",
    "encoder_to_json",
    "estimate_cycles",
    "hardware_of",
    "primitives_of",
    "raw_features",
    "roofline",
    "statement_features",
    "table_of",
    "token",
    "traffic",
]
