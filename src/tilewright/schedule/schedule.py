"""Schedule: the stages of a task, changed by steps. Start here, then read `steps.py` and `bounds.py`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import infer_extents
from tilewright.schedule.loop import Extent, Loop
from tilewright.schedule.stage import Stage
from tilewright.te import Task, Tensor

if TYPE_CHECKING:
    from tilewright.schedule.steps import Made, Step
    from tilewright.schedule.trace import Trace


# How many stages steps may add to those of the task.
_MAX_NEW_STAGES = 64


class Schedule:
    """How to compute a task: its stages with their loops. Primitives are methods of the stages.

    >>> import tilewright as tw
    >>> from tilewright import te
    >>> A = te.placeholder((8, 6), name="A")
    >>> B = te.compute((8, 6), lambda i, j: A[i, j] * 2.0, name="B")
    >>> s = tw.Schedule(tw.Task([A], [B]))
    >>> i, j = s["B"].loops
    >>> s["B"].vectorize(j)
    >>> print(s)
    for i in range(8):
      vectorize j in range(6):
        B[i, j] = A[i, j] * 2.0
    """

    def __init__(self, task: Task) -> None:
        if not isinstance(task, Task):
            raise ScheduleError(f"a Schedule is made from a tw.Task(inputs, outputs), got {type(task).__name__}")
        self.task = task
        self.stages: dict[str, Stage] = {}
        self.steps: tuple[Step, ...] = ()
        self._extents: dict[Loop, Extent] | None = None
        self._order: list[Stage] | None = None
        for tensor in (*task.inputs, *task.stages):
            self.add_stage(tensor)
        for tensor in task.outputs:
            self.stages[tensor.name].is_output = True

    def __getitem__(self, stage: str | Tensor | Stage) -> Stage:
        name = stage.name if isinstance(stage, Tensor | Stage) else stage
        if name not in self.stages:
            raise ScheduleError(f"there is no stage {name!r}; the stages are: {', '.join(self.stages)}")
        return self.stages[name]

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages.values())

    def __str__(self) -> str:
        from tilewright.schedule.printer import format_schedule

        return format_schedule(self)

    @property
    def trace(self) -> Trace:
        """The steps so far; it replays to this schedule."""
        from tilewright.schedule.trace import Trace

        return Trace(self.steps)

    # --- the graph of stages ---------------------------------------------------------------------------------------

    def add_stage(self, tensor: Tensor) -> Stage:
        num_new = len(self.stages) - len(self.task.inputs) - len(self.task.stages)
        if num_new >= _MAX_NEW_STAGES:
            raise ScheduleError(
                f"{tensor.name} would be one stage more than the {num_new} that steps may add to a task"
            )
        stage = self.stages[tensor.name] = Stage(self, tensor)
        return stage

    def unique_name(self, wanted: str) -> str:
        name, count = wanted, 0
        while name in self.stages:
            count += 1
            name = f"{wanted}{count}"
        return name

    @property
    def active_stages(self) -> list[Stage]:
        """The stages that are computed (neither inputs nor inlined), producers before consumers."""
        if self._order is None:
            self._order = self._topological()
        return self._order

    def _topological(self) -> list[Stage]:
        order: list[Stage] = []
        seen: set[str] = set()

        def visit(stage: Stage) -> None:
            if stage.name in seen or stage.is_placeholder:
                return
            seen.add(stage.name)
            for source in stage.sources:
                visit(self.stages[source.name])
            order.append(stage)

        for stage in self.stages.values():
            if stage.is_output:
                visit(stage)
        return order

    def consumers(self, stage: Stage) -> list[Stage]:
        """The stages that read `stage`."""
        return [s for s in self.active_stages if any(source is stage.tensor for source in s.sources)]

    def attached_at(self, loop: Loop) -> list[Stage]:
        """The stages computed inside `loop`, producers before consumers."""
        return [stage for stage in self.active_stages if stage.attach_loop is loop]

    def is_prepacked(self, stage: Stage) -> bool:
        """Whether the stage is made of a constant input once, by `kernel.bind`, and not whenever the kernel runs."""
        source = stage.packs
        if source is None or stage.attach_loop is not None:
            return False
        origin = self[source]
        return self.consumers(origin) == [stage] and (source.is_constant or self.is_prepacked(origin))

    def is_argument(self, stage: Stage) -> bool:
        """Whether the kernel takes the stage in the place of the constant that it is made of."""
        return self.is_prepacked(stage) and not any(map(self.is_prepacked, self.consumers(stage)))

    @property
    def extents(self) -> dict[Loop, Extent]:
        """The extent of every loop, inferred from the consumers to the producers."""
        if self._extents is None:
            self._extents = infer_extents(self)
        return self._extents

    # --- steps -----------------------------------------------------------------------------------------------------

    def apply(self, step: Step) -> Made:
        """Apply a step and record it. An illegal step raises ScheduleError and changes nothing."""
        from tilewright.schedule.legality import check_legal

        before = self._snapshot()
        try:
            made = self.decided(step).apply(self)
            self._changed()
            check_legal(self)
        except ScheduleError as error:
            self._restore(before)
            raise ScheduleError(f"{step}: {error}\nThe loop nest as it stands:\n{self}") from None
        self.steps = (*self.steps, step)
        return made

    def decided(self, step: Step) -> Step:
        """The step as it is applied; a schedule that leaves decisions open, as that of a template, has numbers here."""
        return step

    def replay(self, steps: Iterable[Step]) -> None:
        """Apply many steps, checked once at the end: faster than one by one. On an error the schedule is of no use."""
        from tilewright.schedule.legality import check_legal

        for step in steps:
            try:
                step.apply(self)
            except ScheduleError as error:
                raise ScheduleError(f"{step}: {error}") from None
            self._changed()
            self.steps = (*self.steps, step)
        check_legal(self)

    def _changed(self) -> None:
        self._extents = None
        self._order = None

    def _snapshot(self) -> dict[str, tuple[Stage, dict[str, object]]]:
        return {name: (stage, _copy_state(stage)) for name, stage in self.stages.items()}

    def _restore(self, snapshot: dict[str, tuple[Stage, dict[str, object]]]) -> None:
        self.stages = {}
        for name, (stage, state) in snapshot.items():
            stage.__dict__.update(state)
            self.stages[name] = stage
        self._changed()


def _copy_state(stage: Stage) -> dict[str, object]:
    return {key: copy.copy(value) if isinstance(value, dict) else value for key, value in stage.__dict__.items()}
