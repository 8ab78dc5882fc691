"""What cost models see of a schedule: features of its statements, for one candidate or a whole population."""

from tilewright.features.accesses import READ, READ_WRITE, WRITE, Access
from tilewright.features.analysis import Statement, Traffic, analyze, traffic
from tilewright.features.hardware import Hardware
from tilewright.features.roofline import Bounds, bounds_of, estimate_cycles, roofline
from tilewright.features.statements import (
    BUFFER_FEATURES,
    ESTIMATE,
    FEATURE_NAMES,
    FeatureTable,
    access_features,
    population_features,
    raw_features,
    statement_features,
    table_of,
)

__all__ = [
    "BUFFER_FEATURES",
    "ESTIMATE",
    "FEATURE_NAMES",
    "READ",
    "READ_WRITE",
    "WRITE",
    "Access",
    "Bounds",
    "FeatureTable",
    "Hardware",
    "Statement",
    "Traffic",
    "access_features",
    "analyze",
    "bounds_of",
    "estimate_cycles",
    "population_features",
    "raw_features",
    "roofline",
    "statement_features",
    "table_of",
    "traffic",
]
