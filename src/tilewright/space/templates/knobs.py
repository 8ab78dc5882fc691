"""What a template asks for: choices that stay open, and choices of structure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations
from reprlib import repr as shown
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from tilewright.arguments import whole_number
from tilewright.errors import ScheduleError, UsageError
from tilewright.schedule import PARALLEL, UNROLL, VECTORIZE, Extent, Loop, Stage
from tilewright.schedule.steps import ParallelStep, ReorderStep, UnrollStep, VectorizeStep
from tilewright.space.knob import Decision, TileKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.templates.choices import Choices
from tilewright.space.templates.open_schedule import OpenSchedule
from tilewright.space.tile_tables import any_tilings, exact_tilings
from tilewright.target import Target

_Value = TypeVar("_Value")
_MAX_PARTS = 10
_POLICIES = ("factors", "any")
_NONE = "none"
_ANNOTATIONS: dict[str, type[UnrollStep | VectorizeStep | ParallelStep]] = {
    UNROLL: UnrollStep,
    VECTORIZE: VectorizeStep,
    PARALLEL: ParallelStep,
}
# Of a single knob, before any other multiplies them.
MAX_VALUES = 128


class Knobs:
    """The choices of a template, each with a name of its own.

    `split` is left open: it is a knob of the sketch. `choice`, `reorder` and `annotate` are of structure: the template
    is run once for each of their values.
    """

    def __init__(self, schedule: OpenSchedule, options: SpaceOptions, choices: Choices) -> None:
        self._schedule = schedule
        self._options = options
        self._choices = choices
        self._names: set[str] = set()

    @property
    def target(self) -> Target:
        """What the space is for: `target.lanes("float32")`, `target.num_vector_registers` and so on are numbers."""
        return self._options.target

    @overload
    def split(  # type: ignore[overload-overlap]  # 2 is the number that is told apart
        self, name: str, loop: Loop, num_parts: Literal[2], *, max_inner: int | None = None, policy: str = "factors"
    ) -> Extent: ...
    @overload
    def split(
        self, name: str, loop: Loop, num_parts: int, *, max_inner: int | None = None, policy: str = "factors"
    ) -> tuple[Extent, ...]: ...
    def split(
        self, name: str, loop: Loop, num_parts: int, *, max_inner: int | None = None, policy: str = "factors"
    ) -> Extent | tuple[Extent, ...]:
        """How a loop is cut into `num_parts` nested loops: the extents of the inner ones, as `Stage.split` takes them.

        Of two parts that is one number, of more a tuple, outermost first. They can be multiplied: (a, b) cut one loop
        into three, and a * b the same loop of another stage into two. The innermost is at most `max_inner`. With the
        policy "factors" they divide the loop; with "any" they need not, and waste little.
        """
        self._take(name)
        extent = self._extent(name, loop)
        parts = whole_number(f"num_parts of the knob {name}", num_parts, least=2)
        if parts > _MAX_PARTS:
            raise UsageError(f"num_parts of the knob {name} is {parts}; it must be at most {_MAX_PARTS}")
        if policy not in _POLICIES:
            raise UsageError(f"policy of the knob {name} is {policy!r}; it must be one of {', '.join(_POLICIES)}")
        largest = None if max_inner is None else whole_number(f"max_inner of the knob {name}", max_inner, least=1)
        table = _table(extent, parts - 1, largest, policy, self._options.max_waste)
        knob = self._choices.knob(TileKnob(name, table))
        decisions = tuple(Decision(knob, (column,)) for column in range(parts - 1))
        factors = cast("tuple[Extent, ...]", decisions)  # a step takes them where it takes numbers
        return factors[0] if parts == 2 else factors

    def choice(self, name: str, values: Sequence[_Value]) -> _Value:
        """One of the values, such as `knobs.choice("unroll", [False, True])`: what follows may depend on it."""
        self._take(name)
        known: list[_Value] = _listed(f"values of the knob {name}", values)
        return known[self._structure(name, len(known), lambda n: shown(known[n]))]

    def reorder(
        self, name: str, loops: Sequence[Loop], among: Sequence[Sequence[Loop | str]] | None = None
    ) -> tuple[Loop, ...]:
        """Put the loops, which are of one stage, into one of the orders `among`, any by default; returns that order."""
        self._take(name)
        stage, mine = self._loops(name, loops)
        if among is None:
            self._check_number(name, math.factorial(len(mine)))
            orders = list(permutations(mine))
        else:
            orders = [self._order(name, mine, order) for order in _listed(f"among of the knob {name}", among)]
        chosen = orders[self._structure(name, len(orders), lambda n: " ".join(loop.name for loop in orders[n]))]
        self._schedule.apply(ReorderStep(stage.name, tuple(loop.name for loop in chosen)))
        return chosen

    def annotate(
        self, name: str, loops: Sequence[Loop], among: Sequence[str] = (_NONE, UNROLL, VECTORIZE)
    ) -> tuple[str, ...]:
        """Annotate each of the loops as one of `among`: none, unroll, vectorize or parallel; returns what each got.

        Structures that are illegal, such as two vectorized loops in a nest, are left out.
        """
        self._take(name)
        stage, mine = self._loops(name, loops)
        kinds = [str(kind) for kind in _listed(f"among of the knob {name}", among)]
        unknown = next((kind for kind in kinds if kind not in (_NONE, *_ANNOTATIONS)), None)
        if unknown is not None:
            raise UsageError(
                f"among of the knob {name} has {unknown!r}; annotations are {', '.join((_NONE, *_ANNOTATIONS))}"
            )
        found = []
        for loop in mine:
            found.append(kinds[self._structure(f"{name}.{loop.name}", len(kinds), kinds.__getitem__)])
            if found[-1] != _NONE:
                self._schedule.apply(_ANNOTATIONS[found[-1]](stage.name, loop.name))
        return tuple(found)

    # --- checks ------------------------------------------------------------------------------------------------------

    def _take(self, name: object) -> None:
        if not isinstance(name, str) or not name:
            raise UsageError(f"the name of a knob is {name!r}; it must be a string with something in it")
        if name in self._names:
            raise UsageError(f"two knobs are called {name!r}; give each a name of its own")
        self._names.add(name)

    def _structure(self, name: str, num_values: int, text_of: Callable[[int], str]) -> int:
        self._check_number(name, num_values)
        return self._choices.structure(name, num_values, text_of)

    def _check_number(self, name: str, num_values: int) -> None:
        if num_values > MAX_VALUES:
            raise UsageError(
                f"the knob {name} has {num_values} structures to choose from; it may have {MAX_VALUES}: give fewer"
            )

    def _leaf(self, name: str, loop: object) -> Loop:
        """The loop, which must be one of this schedule as it stands."""
        if not isinstance(loop, Loop) or loop.stage.schedule is not self._schedule:
            raise UsageError(f"the knob {name} takes loops of the schedule, as s[stage].loops has them, got {loop!r}")
        if loop.stage.find_loop(loop.name) is not loop:
            raise ScheduleError(f"the knob {name} takes loop {loop.name} of {loop.stage.name}, which is gone")
        return loop

    def _extent(self, name: str, loop: Loop) -> int:
        extent = self._leaf(name, loop).extent
        if not isinstance(extent, int):
            raise UsageError(
                f"the knob {name} cuts loop {loop.name} of {loop.stage.name}, whose extent another knob decides; cut "
                "the whole loop into more parts, before it is split or its stage is attached"
            )
        return extent

    def _loops(self, name: str, loops: Sequence[Loop]) -> tuple[Stage, list[Loop]]:
        found = [self._leaf(name, loop) for loop in _listed(f"the loops of the knob {name}", loops)]
        if len({loop.stage for loop in found}) > 1 or len(set(found)) < len(found):
            names = ", ".join(f"{loop.stage.name}.{loop.name}" for loop in found)
            raise UsageError(f"the knob {name} takes different loops of one stage, got {names}")
        return found[0].stage, found

    def _order(self, name: str, loops: Sequence[Loop], order: Sequence[Loop | str]) -> tuple[Loop, ...]:
        by_name = {loop.name: loop for loop in loops}
        wanted = [loop.name if isinstance(loop, Loop) else loop for loop in _listed(f"an order of {name}", order)]
        if sorted(map(str, wanted)) != sorted(by_name):
            raise UsageError(f"an order of the knob {name} has each of {', '.join(by_name)} once, got {shown(wanted)}")
        return tuple(by_name[loop] for loop in wanted)


@cache
def _table(extent: int, levels: int, max_inner: int | None, policy: str, max_waste: float) -> npt.NDArray[np.int64]:
    if policy == "factors":
        return exact_tilings(extent, levels, max_inner)
    return any_tilings(extent, levels, max_inner, max_waste)


def _listed(what: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
        raise UsageError(f"{what} is {shown(given)}; it must be a list of at least one")
    return list(given)
