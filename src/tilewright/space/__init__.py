"""The space of programs: knobs, sketches, the rules that derive them, and populations of candidates."""

from tilewright.space.derivation import derive
from tilewright.space.knob import Decision, Knob, TileKnob, UnrollKnob, VectorKnob
from tilewright.space.observed import observed_candidates
from tilewright.space.options import SpaceOptions
from tilewright.space.plain import plain_schedule
from tilewright.space.population import Candidate, Population
from tilewright.space.recognition import OPERATORS, operator_of
from tilewright.space.rules import DEFAULT_RULES, Rule
from tilewright.space.same_programs import as_programs, least_unrolled
from tilewright.space.sketch import Sketch
from tilewright.space.sketch_json import sketches_from_json, sketches_to_json
from tilewright.space.sketch_state import SketchState, open_pragma, open_split
from tilewright.space.templates import (
    Knobs,
    Template,
    find_template,
    register_template,
    space_of,
    template,
    unregister_template,
)

__all__ = [
    "DEFAULT_RULES",
    "OPERATORS",
    "Candidate",
    "Decision",
    "Knob",
    "Knobs",
    "Population",
    "Rule",
    "Sketch",
    "SketchState",
    "SpaceOptions",
    "Template",
    "TileKnob",
    "UnrollKnob",
    "VectorKnob",
    "as_programs",
    "derive",
    "find_template",
    "least_unrolled",
    "observed_candidates",
    "open_pragma",
    "open_split",
    "operator_of",
    "plain_schedule",
    "register_template",
    "sketches_from_json",
    "sketches_to_json",
    "space_of",
    "template",
    "unregister_template",
]
