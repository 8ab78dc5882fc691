"""The space of programs: knobs, sketches, the rules that derive them, and populations of candidates."""

from tilewright.space.derivation import derive
from tilewright.space.knob import Decision, Knob, TileKnob, UnrollKnob, VectorKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.plain import plain_schedule
from tilewright.space.population import Candidate, Population
from tilewright.space.rules import DEFAULT_RULES, Rule
from tilewright.space.sketch import Sketch
from tilewright.space.sketch_json import sketches_from_json, sketches_to_json
from tilewright.space.sketch_state import SketchState, open_pragma, open_split

__all__ = [
    "DEFAULT_RULES",
    "Candidate",
    "Decision",
    "Knob",
    "Population",
    "Rule",
    "Sketch",
    "SketchState",
    "SpaceOptions",
    "TileKnob",
    "UnrollKnob",
    "VectorKnob",
    "derive",
    "open_pragma",
    "open_split",
    "plain_schedule",
    "sketches_from_json",
    "sketches_to_json",
]
