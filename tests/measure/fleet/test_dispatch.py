"""Programs are told once each, whatever machines do: fakes of machines that fail at any moment."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from tilewright.measure.fleet import dispatch
from tilewright.measure.fleet.dispatch import Dispatcher, StationLostError
from tilewright.measure.fleet.jobs import Best, Form, Job, jobs_of
from tilewright.measure.fleet.wire import write_measurement
from tilewright.measure.measurement import INVALID, OK, RUN_ERROR, Measurement


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_LOOK_S": 0.02, "_ANSWER_S": 0.02, "_FIRST_PAUSE_S": 0.002, "_LONGEST_PAUSE_S": 0.01}.items():
        monkeypatch.setattr(dispatch, name, value)


class FakeStation:
    """Answers after a moment. `trouble` is called before each answer, and may raise, wait or answer instead."""

    def __init__(self, name: str, trouble: Callable[[], Coroutine[Any, Any, Form | None]] | None = None) -> None:
        self.name = name
        self.num_ran = 0
        self.is_reachable = True
        self.bests: list[float | None] = []
        self.calls: list[list[str]] = []
        self._trouble = trouble

    async def status(self) -> Form:
        if not self.is_reachable:
            await asyncio.sleep(60)
        return {}

    async def build(self, setup: str, traces: Sequence[str]) -> list[Form]:
        await asyncio.sleep(0.001)
        wrong = write_measurement(Measurement(INVALID, error="no schedule"))
        return [{"measurement": wrong} if "wrong" in trace else {"built": {"code": trace}} for trace in traces]

    async def run(self, setup: str, built: Sequence[Form], best: Best) -> list[Form]:
        self.bests.append(best.latency_s)
        self.calls.append([form["code"] for form in built])
        return [await self._run() for _ in built]

    async def _run(self) -> Form:
        if self._trouble is not None and (answer := await self._trouble()) is not None:
            return answer
        await asyncio.sleep(0.001)
        self.num_ran += 1
        return {"measurement": write_measurement(Measurement(OK, 1e-3, (1e-3,)))}

    async def compare(self, setup: str, built: Sequence[Form], turns: int) -> list[Form]:
        return [await self._run() for _ in built]


class Told:
    """What a dispatcher said."""

    def __init__(self, patience_s: float = 5.0) -> None:
        self.results: list[tuple[int, Form, str]] = []
        self.events: list[str] = []
        self.failures: list[str] = []
        self.dispatcher = Dispatcher(
            lambda *result: self.results.append(result), self.events.append, self.failures.append, patience_s
        )

    @property
    def statuses(self) -> Counter[str]:
        return Counter(form["status"] for _, form, _ in self.results)

    async def wait_for(self, number: int) -> None:
        watching = asyncio.ensure_future(self.dispatcher.watch())
        for _ in range(5000):
            if len(self.results) >= number or self.failures:
                break
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.01)  # for one that would be told twice
        watching.cancel()


def jobs(number: int, setup: str = "setup") -> list[Job]:
    best = Best(None)
    return [Job((ticket,), setup, (f"trace {ticket}",), best) for ticket in range(number)]


def lost(probability: float, seed: int) -> Callable[[], Coroutine[Any, Any, None]]:
    generator = random.Random(seed)

    async def trouble() -> None:
        if generator.random() < probability:
            raise StationLostError("the node is dead")

    return trouble


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def test_every_program_is_told_once_and_all_devices_work() -> None:
    async def scenario() -> None:
        told, stations = Told(), [FakeStation(f"d{n}") for n in range(4)]
        for station in stations:
            told.dispatcher.join(station, "build", 1)
            told.dispatcher.join(station, "run", 2)
        told.dispatcher.submit(jobs(100))
        await told.wait_for(100)
        assert sorted(ticket for ticket, _, _ in told.results) == list(range(100))
        assert all(station.num_ran >= 10 for station in stations)
        assert {device for _, _, device in told.results} == {"d0", "d1", "d2", "d3"}

    run(scenario())


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_or_told_twice_when_a_device_is_lost_again_and_again(seed: int) -> None:
    async def scenario() -> None:
        told = Told()
        told.dispatcher.join(FakeStation("steady"), "build", 1)
        told.dispatcher.join(FakeStation("steady"), "run", 2)
        told.dispatcher.join(FakeStation("shaky", lost(0.2, seed)), "run", 2)
        told.dispatcher.submit(jobs(60))
        await told.wait_for(60)
        assert sorted(ticket for ticket, _, _ in told.results) == list(range(60))
        assert told.statuses == {"OK": 60}

    run(scenario())


def test_a_device_that_hangs_is_given_up_and_its_late_answer_not_listened_to() -> None:
    async def scenario() -> None:
        told = Told()
        hanging = FakeStation("hanging")

        async def hang() -> None:
            if hanging.is_reachable:
                hanging.is_reachable = False
                await asyncio.sleep(0.3)

        hanging._trouble = hang
        told.dispatcher.join(hanging, "build", 1)
        told.dispatcher.join(hanging, "run", 1)
        told.dispatcher.submit(jobs(3))
        await asyncio.sleep(0.03)
        told.dispatcher.join(FakeStation("late"), "run", 2)
        await told.wait_for(3)
        await asyncio.sleep(0.35)
        assert sorted(ticket for ticket, _, _ in told.results) == [0, 1, 2]
        assert {device for _, _, device in told.results} == {"late"}
        assert any("hanging has failed (it does not answer" in event for event in told.events)

    run(scenario())


def test_a_device_that_answers_slowly_but_lives_is_waited_for() -> None:
    async def scenario() -> None:
        async def slow() -> None:
            await asyncio.sleep(0.1)

        told, station = Told(), FakeStation("slow", slow)
        told.dispatcher.join(station, "build", 1)
        told.dispatcher.join(station, "run", 2)
        told.dispatcher.submit(jobs(2))
        await told.wait_for(2)
        assert told.statuses == {"OK": 2}
        assert told.events == []

    run(scenario())


def test_a_device_that_comes_back_goes_on() -> None:
    async def scenario() -> None:
        told = Told()
        failures = iter([True, True, False])

        async def twice() -> None:
            if next(failures, False):
                raise StationLostError("the node is dead")

        told.dispatcher.join(FakeStation("only", twice), "build", 1)
        told.dispatcher.join(FakeStation("only", twice), "run", 1)
        told.dispatcher.submit(jobs(5))
        await told.wait_for(5)
        assert told.statuses == {"OK": 5}
        assert told.events[-1] == "only is back, and measures"

    run(scenario())


def test_a_device_that_fails_again_and_again_is_set_aside_with_the_reason() -> None:
    async def scenario() -> None:
        told = Told()
        told.dispatcher.join(FakeStation("good"), "build", 1)
        told.dispatcher.join(FakeStation("bad", lost(1.0, 0)), "run", 2)
        told.dispatcher.submit(jobs(3))
        while not told.dispatcher._places["run", "bad"].is_aside:
            await asyncio.sleep(0.005)
        told.dispatcher.join(FakeStation("good"), "run", 2)
        told.dispatcher.submit([Job((9,), "setup", ("trace 9",), Best(None))])
        await told.wait_for(4)
        assert "bad is set aside, it failed 4 times: the node is dead" in told.events
        assert (9, "good") in [(ticket, device) for ticket, _, device in told.results]

    run(scenario())


def test_a_fault_of_the_machine_is_not_the_programs() -> None:
    async def scenario() -> None:
        told = Told()
        busy = iter([True])

        async def disturbed() -> Form | None:
            return {"fault": "other work had its cores for 95 % of the time"} if next(busy, False) else None

        told.dispatcher.join(FakeStation("shared", disturbed), "build", 1)
        told.dispatcher.join(FakeStation("shared", disturbed), "run", 1)
        told.dispatcher.submit(jobs(2))
        await told.wait_for(2)
        assert told.statuses == {"OK": 2}
        assert "other work had its cores" in told.events[0]

    run(scenario())


def test_a_program_has_no_part_in_what_disturbs_machines_however_often() -> None:
    async def scenario() -> None:
        told = Told()
        disturbed = {"fault": "other work had its cores for 95 % of the time", "is_disturbed": True}
        answers = iter([disturbed] * (dispatch.MAX_DISTURBANCES - 1))

        async def busy() -> Form | None:
            return next(answers, None)

        told.dispatcher.join(FakeStation("only", busy), "build", 1)
        told.dispatcher.join(FakeStation("only", busy), "run", 1)  # it is back before it would be set aside
        told.dispatcher.submit(jobs(1))
        await told.wait_for(1)
        assert told.statuses == {"OK": 1}
        assert sum("has failed" in event for event in told.events) > dispatch.MAX_FAULTS

    run(scenario())


def test_a_machine_that_is_always_disturbed_is_set_aside_and_the_run_ends() -> None:
    async def scenario() -> None:
        told = Told()

        async def busy() -> Form | None:
            return {"fault": "other work had its cores", "is_disturbed": True}

        told.dispatcher.join(FakeStation("only", busy), "build", 1)
        told.dispatcher.join(FakeStation("only", busy), "run", 1)
        told.dispatcher.submit(jobs(1))
        watching = asyncio.ensure_future(told.dispatcher.watch())
        while not told.failures:
            await asyncio.sleep(0.01)
        watching.cancel()
        assert told.events[-1] == "only is set aside, it failed 12 times: other work had its cores"
        assert told.results == []

    run(scenario())


def test_what_brings_down_every_machine_is_told_as_the_programs_error() -> None:
    async def scenario() -> None:
        told = Told()
        told.dispatcher.join(FakeStation("builder"), "build", 1)
        for number in range(4):
            told.dispatcher.join(FakeStation(f"d{number}", lost(1.0, 0)), "run", 1)
        told.dispatcher.submit(jobs(1))
        await told.wait_for(1)
        ((_, form, _),) = told.results
        assert form["status"] == RUN_ERROR
        assert "given to machines 4 times and none answered; the last time: the node is dead" in form["error"]

    run(scenario())


def test_it_fails_with_the_reasons_when_nobody_is_left() -> None:
    async def scenario() -> None:
        told = Told(patience_s=0.1)
        told.dispatcher.join(FakeStation("builder"), "build", 1)
        told.dispatcher.submit(jobs(2))
        await told.wait_for(2)
        assert told.failures[0].startswith("no device measures any more (all have left)")

    run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"measurement": None},
        {"measurement": {"status": "OK"}},
        {"measurement": write_measurement(Measurement(OK, -1.0))},
        {"measurement": write_measurement(Measurement(OK, float("nan")))},
        {"measurement": write_measurement(Measurement(OK))},
        {"measurement": write_measurement(Measurement("FINE", 1.0))},
    ],
)
def test_an_answer_that_is_no_measurement_is_a_fault_of_the_machine(answer: Form) -> None:
    async def scenario() -> None:
        first = iter([answer])

        async def once() -> Form | None:
            return next(first, None)

        told = Told()
        told.dispatcher.join(FakeStation("liar", once), "build", 1)
        told.dispatcher.join(FakeStation("liar", once), "run", 1)
        told.dispatcher.submit(jobs(1))
        await told.wait_for(1)
        assert told.statuses == {"OK": 1}
        assert "it sent what is no measurement" in told.events[0]

    run(scenario())


def test_a_comparison_is_of_one_device_and_leaves_out_what_does_not_compile() -> None:
    async def scenario() -> None:
        told = Told()
        for name in ("a", "b"):
            told.dispatcher.join(FakeStation(name), "build", 1)
            told.dispatcher.join(FakeStation(name), "run", 1)
        traces: list[list[Any]] = [[], ["wrong"], []]
        message = {"setup": "s", "tickets": [4, 5, 6], "traces": traces, "best_latency_s": None, "turns": 3}
        told.dispatcher.submit(jobs_of(message))
        await told.wait_for(3)
        assert {ticket: form["status"] for ticket, form, _ in told.results} == {4: "OK", 5: "INVALID", 6: "OK"}
        assert len({device for _, form, device in told.results if form["status"] == "OK"}) == 1

    run(scenario())


def test_programs_are_timed_beside_the_best_so_far() -> None:
    async def scenario() -> None:
        told, station = Told(), FakeStation("one")
        told.dispatcher.join(station, "build", 1)
        told.dispatcher.join(station, "run", 1)
        told.dispatcher.submit(jobs(3))
        await told.wait_for(3)
        assert station.bests == [None]
        told.dispatcher.submit([Job((9,), "setup", ("trace 9",), Best(1e-3))])
        await told.wait_for(4)
        assert station.bests == [None, 1e-3]

    run(scenario())


def test_a_device_is_given_several_programs_at_once_where_there_are_many() -> None:
    async def scenario() -> None:
        told, station = Told(), FakeStation("one")
        told.dispatcher.join(station, "build", 1)
        told.dispatcher.join(station, "run", 2)
        told.dispatcher.submit(jobs(20))
        await told.wait_for(20)
        assert sorted(ticket for ticket, _, _ in told.results) == list(range(20))
        assert max(map(len, station.calls)) == dispatch.RUN_TOGETHER
        assert len(station.calls) < 10

    run(scenario())


def test_what_brings_a_machine_down_takes_no_other_program_with_it() -> None:
    """It is given alone after the first time, and so are those that were beside it."""

    async def scenario() -> None:
        told, station = Told(), FakeStation("one")

        async def killed() -> None:
            if "trace 2" in station.calls[-1]:
                raise StationLostError("the node is dead")

        station._trouble = killed
        told.dispatcher.join(station, "build", 1)
        told.dispatcher.join(station, "run", 1)
        told.dispatcher.submit(jobs(4))
        await told.wait_for(4)
        assert station.calls[0] == [f"trace {number}" for number in range(4)]
        assert sorted(ticket for ticket, form, _ in told.results if form["status"] == OK) == [0, 1, 3]

    run(scenario())


def test_what_was_measured_before_a_fault_counts() -> None:
    async def scenario() -> None:
        told, station = Told(), FakeStation("one")
        faults = iter([False, False, True])

        async def third() -> Form | None:
            return {"fault": "its core is slow"} if next(faults, False) else None

        station._trouble = third
        told.dispatcher.join(station, "build", 1)
        told.dispatcher.join(station, "run", 1)
        told.dispatcher.submit(jobs(4))
        await told.wait_for(4)
        assert station.calls == [[f"trace {number}" for number in range(4)], ["trace 2"]]

    run(scenario())


def test_what_is_cancelled_is_not_told() -> None:
    async def scenario() -> None:
        told, station = Told(), FakeStation("one")
        told.dispatcher.join(station, "build", 1)
        told.dispatcher.join(station, "run", 1)
        told.dispatcher.submit(jobs(20))
        await told.wait_for(2)
        told.dispatcher.cancel()
        number = len(told.results)
        await asyncio.sleep(0.05)
        assert len(told.results) == number < 20

    run(scenario())


def test_a_machine_that_leaves_gives_its_work_to_others() -> None:
    async def scenario() -> None:
        async def for_ever() -> None:
            await asyncio.sleep(60)

        told = Told()
        told.dispatcher.join(FakeStation("builder"), "build", 1)
        told.dispatcher.join(FakeStation("leaving", for_ever), "run", 2)
        told.dispatcher.submit(jobs(4))
        await asyncio.sleep(0.02)
        told.dispatcher.leave("leaving")
        told.dispatcher.join(FakeStation("other"), "run", 2)
        await told.wait_for(4)
        assert sorted(ticket for ticket, _, _ in told.results) == [0, 1, 2, 3]

    run(scenario())
