"""Who builds and runs what: programs go to the machines that are free, and again elsewhere when one is lost.

Knows nothing of how machines are reached: a `Station` is all it sees of one. A program is told once, by the first
answer to it; what a machine says after it was given up is not listened to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from tilewright.measure.fleet.jobs import Best, Form, Job, go_together
from tilewright.measure.fleet.line import Line
from tilewright.measure.fleet.wire import WireError, read_measurement, write_measurement
from tilewright.measure.measurement import RUN_ERROR, Measurement

BUILD_TOGETHER = 16  # programs that one machine builds before any of them is timed there
RUN_TOGETHER = 4  # programs that a device is given at once, where there are so many for each: a call costs time, too
DEPTH = 2  # calls under way at a device: one runs, one waits, so that the way there costs nothing
MAX_ATTEMPTS = 4  # of a program; what brings down so many machines is told as its error
MAX_FAULTS = 4  # of a machine, one after the other; then it is set aside
MAX_DISTURBANCES = 12  # the same where others' work is to blame, which ends after a while: more than a minute of it
_LOOK_S = 5.0  # how long an answer may take before the machine is asked whether it lives
_ANSWER_S = 5.0
_LONGEST_S = 900.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0


class StationLostError(Exception):
    """A machine is gone, or does not answer. Never leaves the fleet."""


class Station(Protocol):
    """One machine of the fleet; each call may raise StationLostError."""

    @property
    def name(self) -> str: ...

    async def status(self) -> Form:
        """What it is doing; answers while it measures, too."""

    async def build(self, setup: str, traces: Sequence[str]) -> list[Form]:
        """For each trace {"built": ...}, {"measurement": ...} or {"fault": why the machine could not}."""

    async def run(self, setup: str, built: Sequence[Form], best: Best) -> list[Form]:
        """For each program {"measurement": ...}, or {"fault": ...}, of the machine and not of the program.

        With "is_disturbed" beside the fault it is others' work on the machine: nothing that a program could have done.
        """

    async def compare(self, setup: str, built: Sequence[Form], turns: int) -> list[Form]:
        """The same for programs that are timed in turns."""


@dataclass(slots=True, eq=False)
class Workplace:
    """A machine in one of its roles, to build or to run."""

    station: Station
    role: str
    num_slots: int
    is_up: asyncio.Event = field(default_factory=asyncio.Event)
    is_aside: bool = False
    reason: str = ""
    num_faults: int = 0  # one after the other
    num_disturbances: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Dispatcher:
    """Keeps all machines busy with what is submitted. `post` is given results and events, `fail` why it cannot go on.

    When all machines of a role are gone for `patience_s` seconds, or set aside, it fails.
    """

    def __init__(
        self,
        post: Callable[[int, Form, str], None],
        say: Callable[[str], None],
        fail: Callable[[str], None],
        patience_s: float = 60.0,
    ) -> None:
        self._post = post
        self._say = say
        self._fail = fail
        self._patience_s = patience_s
        self._to_build: Line[Job] = Line()
        self._to_run: Line[Job] = Line()
        self._open: set[Job] = set()
        self._places: dict[tuple[str, str], Workplace] = {}
        self._errands: set[asyncio.Task[None]] = set()
        self._idle_since: dict[str, float] = {}

    def join(self, station: Station, role: str, num_slots: int) -> None:
        """A machine is there, new or again."""
        known = self._places.get((role, station.name))
        if known is not None:
            known.station = station
            return
        place = Workplace(station, role, num_slots)
        place.is_up.set()
        self._places[role, station.name] = place
        serve = self._build_at if role == "build" else self._run_at
        place.tasks = [asyncio.ensure_future(serve(place)) for _ in range(num_slots)]

    def leave(self, name: str) -> None:
        """A machine was taken away on purpose; what it has under way is measured elsewhere."""
        for role in ("build", "run"):
            place = self._places.pop((role, name), None)
            for task in place.tasks if place else ():
                task.cancel()

    def names_of(self, role: str) -> set[str]:
        """The machines that are known in a role."""
        return {name for kind, name in self._places if kind == role}

    @property
    def names(self) -> set[str]:
        """The machines that are known."""
        return self.names_of("build") | self.names_of("run")

    def submit(self, jobs: Sequence[Job]) -> None:
        self._open.update(jobs)
        for job in jobs:
            self._to_build.put(job)

    def cancel(self) -> None:
        """What is under way at a machine ends there, and nobody listens."""
        for job in self._open:
            job.is_open = False
        self._open.clear()
        self._to_build.items.clear()
        self._to_run.items.clear()

    async def watch(self) -> None:
        """Fail when nobody is left who could do what is to be done; runs as long as the dispatcher does."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, self._patience_s / 4))
            for role in ("build", "run"):
                places = [place for (kind, _), place in self._places.items() if kind == role]
                if not self._open or any(place.is_up.is_set() for place in places):
                    self._idle_since.pop(role, None)
                    continue
                waited_s = loop.time() - self._idle_since.setdefault(role, loop.time())
                if waited_s > self._patience_s or (places and all(place.is_aside for place in places)):
                    self.cancel()
                    self._fail(_nobody_left(role, places))

    async def _build_at(self, place: Workplace) -> None:
        while True:
            first = await _next(self._to_build, place)
            chunk = self._with_others(first, self._to_build, place, BUILD_TOGETHER)
            try:
                traces = [trace for job in chunk for trace in job.traces]
                answers = await self._answer(place, place.station.build(chunk[0].setup, traces))
                outcomes = [_built_or_measured(answer) for answer in _all_of(answers, len(traces))]
            except (StationLostError, _FaultError, WireError) as error:
                self._lost(place, chunk, str(error), self._to_build)
                continue
            except asyncio.CancelledError:
                self._give_back(chunk, self._to_build)
                raise
            place.num_faults = place.num_disturbances = 0
            self._take_built(chunk, outcomes)

    def _take_built(self, chunk: Sequence[Job], outcomes: list[Form]) -> None:
        position = 0
        for job in chunk:
            mine = outcomes[position : position + len(job.traces)]
            position += len(job.traces)
            if not job.is_open:
                continue
            job.built = [outcome.get("built") for outcome in mine]
            for index, outcome in enumerate(mine):
                if "measurement" in outcome:
                    self._tell(job, index, outcome["measurement"], "")
            if job.is_open:
                self._to_run.put(job)

    async def _run_at(self, place: Workplace) -> None:
        while True:
            first = await _next(self._to_run, place)
            jobs = self._with_others(first, self._to_run, place, RUN_TOGETHER)
            built = [form for job in jobs for form in job.built if form is not None]
            try:
                answers = _all_of(await self._answer(place, _run(place.station, jobs, built)), len(built))
            except (StationLostError, WireError) as error:
                self._lost(place, jobs, str(error), self._to_run)
                continue
            except asyncio.CancelledError:
                self._give_back(jobs, self._to_run)
                raise
            self._take_ran(place, jobs, answers)

    def _take_ran(self, place: Workplace, jobs: Sequence[Job], answers: list[Form]) -> None:
        """Tell what was measured; what the machine could not measure is made again."""
        reason, left = "", []
        is_disturbed = False
        remaining = iter(answers)
        for job in jobs:
            indices = [index for index, built in enumerate(job.built) if built is not None]
            mine = list(islice(remaining, len(indices)))
            try:
                forms = [_measured(answer) for answer in mine]
            except (_FaultError, WireError) as error:
                reason = str(error)
                is_disturbed = any(answer.get("is_disturbed") is True for answer in mine)
                left.append(job)
                continue
            place.num_faults = place.num_disturbances = 0
            for index, form in zip(indices, forms, strict=True):
                self._tell(job, index, form, place.station.name)
        if left:
            self._lost(place, left, reason, self._to_run, is_disturbed)

    def _with_others(self, first: Job, line: Line[Job], place: Workplace, most: int) -> list[Job]:
        """What goes to a machine at once: of one setup, at most so many, and no more than the machine's share.

        What came back from one that failed goes alone, so that no other suffers for what it does.
        """
        alike = [other for (role, _), other in self._places.items() if role == place.role and other.is_up.is_set()]
        num_slots = max(1, sum(other.num_slots for other in alike))
        share = min(most, -(-(len(line.items) + 1) // num_slots))
        chunk = [first]
        while len(chunk) < share and line.items and go_together(first, line.items[0]):
            chunk.append(line.items.popleft())
        return chunk

    async def _answer(self, place: Workplace, call: Coroutine[Any, Any, Any]) -> Any:
        """What a machine answers. One that takes long is asked now and then whether it is still there."""
        task = asyncio.ensure_future(call)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        try:
            while True:
                done, _ = await asyncio.wait([task], timeout=_LOOK_S)
                if done:
                    return task.result()
                if loop.time() - started_s > _LONGEST_S:
                    raise StationLostError(f"no answer for {_LONGEST_S:.0f} s")
                try:
                    await asyncio.wait_for(place.station.status(), _ANSWER_S)
                except asyncio.TimeoutError:
                    raise StationLostError(f"it does not answer for {_ANSWER_S:.0f} s") from None
        finally:
            task.cancel()

    def _lost(
        self, place: Workplace, jobs: Sequence[Job], reason: str, line: Line[Job], is_disturbed: bool = False
    ) -> None:
        """Have the jobs done elsewhere, and come back when the machine does; what disturbed it is no job's attempt."""
        self._give_back(jobs, line, "" if is_disturbed else reason)
        is_news = place.is_up.is_set()
        place.is_up.clear()
        place.reason = _first_line(reason)
        place.num_faults += is_news and not is_disturbed
        place.num_disturbances += is_news and is_disturbed
        if place.num_faults >= MAX_FAULTS or place.num_disturbances >= MAX_DISTURBANCES:
            if not place.is_aside:
                place.is_aside = True
                times = place.num_disturbances if is_disturbed else place.num_faults
                self._say(f"{place.station.name} is set aside, it failed {times} times: {place.reason}")
            return
        if is_news:
            again = "measured" if place.role == "run" else "built"
            self._say(f"{place.station.name} has failed ({place.reason}); what it had is {again} again")
            errand = asyncio.ensure_future(self._wait_for(place))
            self._errands.add(errand)
            errand.add_done_callback(self._errands.discard)

    async def _wait_for(self, place: Workplace) -> None:
        pause_s = min(_FIRST_PAUSE_S * 2 ** (place.num_faults + place.num_disturbances - 1), _LONGEST_PAUSE_S)
        while True:
            await asyncio.sleep(pause_s)
            if self._places.get((place.role, place.station.name)) is not place:
                return
            try:
                await asyncio.wait_for(place.station.status(), _ANSWER_S)
                break
            except (asyncio.TimeoutError, StationLostError):
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        place.is_up.set()
        self._say(f"{place.station.name} is back, and {'measures' if place.role == 'run' else 'builds'}")

    def _give_back(self, jobs: Sequence[Job], line: Line[Job], reason: str = "") -> None:
        """With a reason it is an attempt that failed."""
        for job in reversed(jobs):
            if not job.is_open:
                continue
            job.num_attempts += bool(reason)
            if job.num_attempts < MAX_ATTEMPTS:
                line.put_back(job)
                continue
            error = f"it was given to machines {MAX_ATTEMPTS} times and none answered; the last time: {reason}"
            for index in range(len(job.traces)):
                self._tell(job, index, write_measurement(Measurement(RUN_ERROR, error=error)), "")

    def _tell(self, job: Job, index: int, form: Form, device: str) -> None:
        ticket = job.tickets[index]
        if not job.is_open or ticket in job.told:
            return
        job.told.add(ticket)
        latency_s = form["latency_s"]
        if latency_s is not None and (job.best.latency_s is None or latency_s < job.best.latency_s):
            job.best.latency_s = latency_s
        if len(job.told) == len(job.tickets):
            job.is_open = False
            self._open.discard(job)
        self._post(ticket, form, device)


class _FaultError(Exception):
    """A machine says that it could not measure; the program has no part in it."""


async def _next(line: Line[Job], place: Workplace) -> Job:
    while True:
        await place.is_up.wait()
        job = await line.get()
        if place.is_up.is_set():
            return job
        line.put_back(job)  # the machine went while it waited; somebody else's


async def _run(station: Station, jobs: Sequence[Job], built: list[Form]) -> list[Form]:
    first = jobs[0]
    if first.turns is not None:
        return await station.compare(first.setup, built, first.turns)
    return await station.run(first.setup, built, first.best)


def _all_of(answers: object, number: int) -> list[Form]:
    if not isinstance(answers, list) or len(answers) != number or not all(isinstance(a, dict) for a in answers):
        raise WireError(f"it did not send {number} answers")
    return answers


def _built_or_measured(answer: Form) -> Form:
    return {"built": answer["built"]} if isinstance(answer.get("built"), dict) else {"measurement": _measured(answer)}


def _measured(answer: Form) -> Form:
    """The measurement, read and written again: nothing else gets to the tuner."""
    if "fault" in answer:
        raise _FaultError(str(answer["fault"]))
    return write_measurement(read_measurement(answer.get("measurement")))


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0][:200]


def _nobody_left(role: str, places: Sequence[Workplace]) -> str:
    reasons = "; ".join(f"{place.station.name}: {place.reason or 'gone'}" for place in places)
    what = "device measures" if role == "run" else "machine builds"
    return f"no {what} any more ({reasons or 'all have left'}); look at `tilewright fleet status`"
