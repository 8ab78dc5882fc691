"""Templates: spaces that a person writes, as a function that schedules with choices left open.

A template is run once for each of its structures (`choices.py`), on a schedule whose decisions stay open
(`open_schedule.py`): what is left are sketches, as derived ones are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import update_wrapper
from reprlib import repr as shown
from traceback import walk_tb

import numpy as np

from tilewright.arguments import instance
from tilewright.errors import ScheduleError, UsageError
from tilewright.schedule import Schedule, Step
from tilewright.space.derivation import MISFITS
from tilewright.space.knob import TileKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.population import Population
from tilewright.space.sketch import Sketch
from tilewright.space.templates.choices import Choices
from tilewright.space.templates.knobs import Knobs
from tilewright.space.templates.open_schedule import OpenSchedule
from tilewright.te import Task

# Each is a sketch, which costs a search some time of its own; and each is a run of the template, as those are that
# turn out to be illegal.
MAX_STRUCTURES = 128
_MAX_RUNS = 1024
# To find a legal candidate: so many are drawn at first, and so many are looked at in the end; all if there are no more.
_NUM_FIRST = 256
_NUM_AT_ONCE, _NUM_LOOKED_AT = 1 << 12, 1 << 14

Function = Callable[[Schedule, Knobs], object]


def template(function: Function) -> Template:
    """`@tw.template`: a function of a schedule and its knobs as a space to tune in.

    >>> import tilewright as tw
    >>> from tilewright import te
    >>> @tw.template
    ... def tiled(s, knobs):
    ...     i, j = s["B"].loops
    ...     i0, i1 = s["B"].split(i, knobs.split("rows", i, 2))
    ...     if knobs.choice("in_vectors", [False, True]):
    ...         s["B"].vectorize(j)
    >>> A = te.placeholder((12, 8), name="A")
    >>> task = tw.Task([A], [te.compute((12, 8), lambda i, j: A[i, j] * 2.0, name="B")])
    >>> for sketch in tiled.sketches(task, SpaceOptions(tw.Target.parse("llvm -mcpu=haswell"))):
    ...     print(sketch.name, sketch.cardinality)
    tiled in_vectors=False 6
    tiled in_vectors=True 6
    """
    return Template(function)


class Template:
    """A space that a person has written: `sketches` makes those of a task. To call it is to call its function."""

    def __init__(self, function: Function) -> None:
        if not callable(function):
            raise UsageError(f"a template is a function of a schedule and its knobs, got {shown(function)}")
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)
        try:
            inspect.signature(function).bind(None, None)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"a template is a function of two arguments, as in def {self.name}(s, knobs); this one is not: {error}"
            ) from None
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise UsageError(
                f"a template is a function that is run when it is called, and {self.name} has a yield in it or is "
                f"async: nothing of it would happen; write def {self.name}(s, knobs) without either"
            )
        update_wrapper(self, function)

    def __call__(self, s: Schedule, knobs: Knobs) -> object:
        return self.function(s, knobs)

    def __repr__(self) -> str:
        return f"<Template {self.name} of {self.place}>"

    @property
    def place(self) -> str:
        """The file and the line of its function."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return "?" if code is None else f"{code.co_filename}:{code.co_firstlineno}"

    def sketches(self, task: Task, options: SpaceOptions) -> list[Sketch]:
        """A sketch for each structure that is legal, for some rows at least.

        ScheduleError says why there is none. UsageError says where the template is wrong: knobs that it must not ask
        for, too many structures, an exception of its own.
        """
        found: list[Sketch] = []
        reasons: list[str] = []
        seen: set[object] = set()
        first: _Run | None = None
        for run in self._runs(instance("task", task, Task), options):
            if run.error:
                reasons.append(run.error)
                continue
            sketch = Sketch(task, run.steps, options, f"{self.name} {run.choices}".strip())
            if (content := _content(sketch)) in seen:
                continue
            seen.add(content)
            if error := _why_illegal(sketch):
                reasons.append(f"{sketch.name}: {error}")
                continue
            first = first or run
            found.append(sketch)
            if len(found) > MAX_STRUCTURES:
                raise self._too_many(run.choices, MAX_STRUCTURES)
        if first is None:
            raise ScheduleError(self._nothing_legal(task, reasons))
        self._check_repeats(first, task, options)
        return found

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _runs(self, task: Task, options: SpaceOptions) -> Iterator[_Run]:
        """A run for each structure."""
        knobs: dict[tuple[object, ...], TileKnob] = {}
        run = self._run(task, options, Choices((), knobs))
        yield run
        for _ in range(_MAX_RUNS):
            before, path = run.choices, run.choices.next_path
            if path is None:
                return
            run = self._run(task, options, Choices(path, knobs))
            if run.choices.asked_until(len(path)) != before.asked_until(len(path)):
                raise self._not_repeatable()
            yield run
        raise self._too_many(run.choices, _MAX_RUNS)

    def _run(self, task: Task, options: SpaceOptions, choices: Choices) -> _Run:
        schedule = OpenSchedule(task)
        try:
            self.function(schedule, Knobs(schedule, options, choices))
        except ScheduleError as error:
            return _Run(choices, (), f"{self._line(error)}: {error}")
        except UsageError as error:
            raise UsageError(f"template {self.name}, {self._line(error)}: {error}") from error
        except Exception as error:  # it is the template's own, whatever it is
            raise UsageError(
                f"template {self.name} raised {type(error).__name__} at {self._line(error)}: {error}"
                + _hint(error, schedule)
            ) from error
        return _Run(choices, schedule.steps)

    def _check_repeats(self, first: _Run, task: Task, options: SpaceOptions) -> None:
        """The same choices make the same program, which records and later runs rely on."""
        path = tuple(point.taken for point in first.choices.points)
        again = self._run(task, options, Choices(path, {}))
        if again.choices.asked != first.choices.asked or again.steps != first.steps:
            raise self._not_repeatable()

    def _line(self, error: BaseException) -> str:
        """The file and the line, of the template's file if the error came through it, where it was raised."""
        places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        own_file = self.place.rpartition(":")[0]
        file, line = next((place for place in reversed(places) if place[0] == own_file), places[-1])
        return f"{file}:{line}"

    # --- errors -------------------------------------------------------------------------------------------------------

    def _too_many(self, choices: Choices, most: int) -> UsageError:
        listing = ", ".join(f"{point.name} has {point.num_values}" for point in choices.points)
        return UsageError(
            f"template {self.name} ({self.place}) has more than {most} structures ({listing}); leave fewer values to "
            "knobs.choice, reorder and annotate"
        )

    def _not_repeatable(self) -> UsageError:
        return UsageError(
            f"template {self.name} ({self.place}) asks for other knobs when it is run again with the same choices; "
            "what it does must depend on the task and on its knobs alone"
        )

    def _nothing_legal(self, task: Task, reasons: list[str]) -> str:
        others = f"\nand {len(reasons) - 1} more structures are not" if len(reasons) > 1 else ""
        return f"no program of template {self.name} is legal for task {task.name}; {reasons[0]}{others}"


@dataclass(frozen=True, slots=True)
class _Run:
    """What a template made of a schedule; `error` says why that is illegal."""

    choices: Choices
    steps: tuple[Step, ...]
    error: str = ""


def _content(sketch: Sketch) -> object:
    """Equal for sketches of the same programs."""
    return sketch.steps, tuple((knob.name, knob.table.shape, knob.table.tobytes()) for knob in sketch.knobs)


def _hint(error: Exception, schedule: Schedule) -> str:
    """What to do where the template used the extent of a loop as if it were one number."""
    is_open = any(isinstance(extent, np.ndarray) for extent in schedule.extents.values())
    if not is_open or not isinstance(error, ValueError | TypeError) or "array" not in str(error):
        return ""
    return (
        "\nThe extent of a loop that a knob decides is open while the template runs: let a knobs.choice decide what "
        "depends on it"
    )


def _why_illegal(sketch: Sketch) -> str:
    """Why none of its candidates can be built; empty where some can."""
    num_seen = 0
    try:
        for population in _looked_at(sketch):
            num_seen += len(population)
            if population.legal(sketch.options.target).any():
                return ""
    except MISFITS as error:
        return f"it cannot be applied: {type(error).__name__}: {error}"
    number = f"its {sketch.cardinality}" if sketch.cardinality <= _NUM_LOOKED_AT else f"{num_seen} random"
    return (
        f"none of {number} candidates is worth building: register tiles do not fit the target, tiles waste too much, "
        "or too much is unrolled; give a smaller max_inner, or unroll less"
    )


def _looked_at(sketch: Sketch) -> Iterator[Population]:
    """Some random candidates; then all, or many more."""
    rng = np.random.default_rng(0)
    yield Population.concatenate([sketch.sample(rng, _NUM_FIRST), sketch.sample_plain(rng, _NUM_FIRST)])
    if sketch.cardinality > _NUM_LOOKED_AT:
        for _ in range(_NUM_LOOKED_AT // _NUM_AT_ONCE):
            yield sketch.sample(rng, _NUM_AT_ONCE)
        return
    sizes = [knob.cardinality for knob in sketch.knobs]
    for begin in range(0, sketch.cardinality if sizes else 0, _NUM_AT_ONCE):
        numbers = np.arange(begin, min(begin + _NUM_AT_ONCE, sketch.cardinality))
        yield Population(sketch, np.stack(np.unravel_index(numbers, sizes), axis=1))
