"""The space of a template, for a workload: its sketches, each with its size, knobs, and a program of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.space import Knob, Sketch, Template

# To say which share is legal, and to find a program to show.
_NUM_SAMPLES = 1024


def describe_template(template: Template, sketches: Sequence[Sketch]) -> str:
    """How large its space is, and each sketch of it."""
    total = sum(sketch.cardinality for sketch in sketches)
    number = f"{len(sketches)} sketches" if len(sketches) > 1 else "1 sketch"
    head = f"template {template.name} of {template.place}: {number}, {total:.4g} candidates"
    return "\n\n".join([head, *map(_describe, sketches)])


def _describe(sketch: Sketch) -> str:
    import numpy as np

    population = sketch.sample(np.random.default_rng(0), _NUM_SAMPLES)
    legal = population[population.legal(sketch.options.target)]
    lines = [f"{sketch.name}: {sketch.cardinality:.4g} candidates, {len(legal) / _NUM_SAMPLES:.0%} legal", "  knobs"]
    width = max((len(knob.name) for knob in sketch.knobs), default=0)
    lines += [f"    {knob.name:<{width}}  {describe_knob(knob)}" for knob in sketch.knobs] or ["    none"]
    if len(legal):
        lines.append(f"  one of them{_choices(sketch, legal.rows[0].tolist())}")
        lines += [f"    {line}" for line in str(legal[0].trace.apply(sketch.task)).splitlines()]
    return "\n".join(lines)


def _choices(sketch: Sketch, row: Sequence[int]) -> str:
    chosen = [f"{knob.name} {_numbers(knob, choice)}" for knob, choice in zip(sketch.knobs, row, strict=True)]
    return f", with {', '.join(chosen)}" if chosen else ""


def describe_knob(knob: Knob) -> str:
    """Its kind, how many choices it has, and one of them."""
    return f"{knob.kind}, {knob.cardinality} choices, such as {_numbers(knob, knob.cardinality // 2)}"


def _numbers(knob: Knob, choice: int) -> str:
    return " x ".join(map(str, knob.table[choice]))
