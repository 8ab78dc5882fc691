"""The space of programs: knobs, sketches, the rules that derive them, and candidates as rows."""

from tilewright.space.builder import SketchState, SpaceOptions
from tilewright.space.derivation import derive
from tilewright.space.knob import Decision, Knob, TileKnob, UnrollKnob, VectorKnob
from tilewright.space.legality import is_legal
from tilewright.space.plain import plain_schedule
from tilewright.space.rules import DEFAULT_RULES, Rule
from tilewright.space.sketch import Candidate, Sketch

__all__ = [
    "DEFAULT_RULES",
    "Candidate",
    "Decision",
    "Knob",
    "Rule",
    "Sketch",
    "SketchState",
    "SpaceOptions",
    "TileKnob",
    "UnrollKnob",
    "VectorKnob",
    "derive",
    "is_legal",
    "plain_schedule",
]
