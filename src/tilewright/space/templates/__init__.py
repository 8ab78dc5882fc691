"""Spaces that a person writes. Read `definition.py` first; `x86.py` has examples."""

from tilewright.space.templates.definition import MAX_STRUCTURES, Template, template
from tilewright.space.templates.knobs import Knobs
from tilewright.space.templates.loading import find_template, load_template
from tilewright.space.templates.registry import (
    register_template,
    registered_sketches,
    space_of,
    unregister_template,
)
from tilewright.space.templates.stages import (
    PADDINGS,
    inline_cheap,
    main_stage,
    pack_constants,
    pack_operand,
    pad,
    padding_of,
    tile_loops,
    vector_width,
    with_result,
)

__all__ = [
    "MAX_STRUCTURES",
    "PADDINGS",
    "Knobs",
    "Template",
    "find_template",
    "inline_cheap",
    "load_template",
    "main_stage",
    "pack_constants",
    "pack_operand",
    "pad",
    "padding_of",
    "register_template",
    "registered_sketches",
    "space_of",
    "template",
    "tile_loops",
    "unregister_template",
    "vector_width",
    "with_result",
]
