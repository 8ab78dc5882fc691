"""Turns on cores, the pace of a machine, addresses and names."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewright.cli import main
from tilewright.errors import UsageError
from tilewright.measure.fleet import Address, DeviceInfo, DeviceSpec, devices, pace, simulated, turns
from tilewright.measure.fleet.cluster import _last_words, checked_device_name, ensure_token, find_address, no_cluster
from tilewright.measure.fleet.link import why_not
from tilewright.measure.fleet.pace import Clock, Contention
from tilewright.measure.fleet.simulated import SimulatedStation
from tilewright.measure.fleet.wire import read_measurement

HASWELL = "llvm -mcpu=haswell -l2=1M"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_FLEET", str(tmp_path / "state"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def in_thread(seen: list[str], name: str, turn: object) -> threading.Thread:
    def go() -> None:
        with turn:  # type: ignore[attr-defined]
            seen.append(name)

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def test_one_that_times_has_its_cores_alone_and_builders_share() -> None:
    seen: list[str] = []
    with turns.shared([0, 1]):
        in_thread(seen, "builds too", turns.shared([0])).join()
        timing = in_thread(seen, "times", turns.alone([1]))
        in_thread(seen, "times elsewhere", turns.alone([2])).join()
        assert seen == ["builds too", "times elsewhere"]
    timing.join()
    assert seen[-1] == "times"


def test_a_turn_ends_with_the_process_that_has_it() -> None:
    program = "import os, sys\nfrom tilewright.measure.fleet import turns\n"
    program += "with turns.alone([0]):\n print('has it', flush=True)\n sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"has it\n"
        seen: list[str] = []
        thread = in_thread(seen, "next", turns.alone([0]))
        assert seen == []
        child.kill()
    thread.join()
    assert seen == ["next"]


def test_nothing_is_timed_while_a_tuner_thinks_unless_it_is_not_heard_of() -> None:
    seen: list[str] = []
    thinking = turns.Thinking([0])
    thinking.begin()
    timing = in_thread(seen, "times", turns.alone([0]))
    assert seen == []
    thinking.end()
    timing.join()
    forgotten = turns.Thinking([0], longest_s=0.05)
    forgotten.begin()
    in_thread(seen, "times again", turns.alone([0])).join()
    assert seen == ["times", "times again"]
    forgotten.end()
    turns.Thinking([]).begin()


def test_neighbours_are_the_cores_of_the_same_last_cache(tmp_path: Path) -> None:
    for core, (second, third) in {0: ("0", "0-1"), 1: ("1", "0-1"), 2: ("2", "2,4-5")}.items():
        for index, shared in ((2, second), (3, third)):
            folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/cache/index{index}"
            folder.mkdir(parents=True)
            (folder / "shared_cpu_list").write_text(f"{shared}\n")
    assert turns.neighbours([0], tmp_path) == [0, 1]
    assert turns.neighbours([1, 2], tmp_path) == [0, 1, 2, 4, 5]
    assert turns.neighbours([7], tmp_path) == [7]  # of which nobody says anything


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="must be a folder that only you can write"):
        turns.state_folder()


def test_a_process_that_waits_for_its_core_is_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([(1.0, 5.0), (1.9, 5.1), (1.0, 5.0), (1.1, 5.1), (1.0, 5.0), (1.005, 5.0)])
    monkeypatch.setattr(pace, "_waited_and_ran_s", lambda pid: next(counts))
    assert Contention(1).reason() == "other work had its cores for 90 % of the time"
    assert Contention(1).reason() == ""
    assert Contention(1).reason() == ""  # a moment is nothing


def test_what_the_kernel_says_of_this_process_is_read() -> None:
    contention = Contention(os.getpid())
    until_s = time.process_time() + 0.02
    while time.process_time() < until_s:
        pass
    assert contention._before is not None
    assert contention.reason() == ""
    assert Contention(None).reason() == ""


def test_a_core_that_is_slower_than_it_was_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([1e-4, 1e-4, 9e-4])
    monkeypatch.setattr(pace, "_loop_s", lambda: next(seconds))
    clock = Clock()
    assert clock.reason() == ""
    clock._next_s = 0.0
    assert clock.reason() == "its core is 9.0 times slower than it was"


@pytest.mark.parametrize("text", ["", ":1", "a b", "host:99999", "host:0", "host:x", "ray://host", "a:1:2"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Address.parse(text)


def test_without_an_address_it_is_the_one_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(find_address(None)) == "127.0.0.1:6379"
    assert str(find_address("10.0.0.1")) == "10.0.0.1:6379"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.2:7000")
    assert str(find_address("auto")) == "10.0.0.2:7000"


def test_the_remedy_fits_the_address() -> None:
    assert "`tilewright fleet up`" in no_cluster(Address("127.0.0.1", 6379))
    assert "`tilewright fleet up --listen 127.0.0.1:1`" in no_cluster(Address("127.0.0.1", 1))
    assert "`tilewright fleet up --listen 10.0.0.1:1`" in no_cluster(Address("10.0.0.1", 1))


def test_what_a_node_said_many_times_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    path.write_text("starting\n" + "".join(f"[00:0{second} W 1 1] client.cc: no answer\n" for second in range(9)))
    assert _last_words(path) == "starting client.cc: no answer"
    assert _last_words(tmp_path / "nothing") == "it says nothing"


def test_a_head_makes_a_secret_that_only_the_user_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ray" / "token"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    with pytest.raises(UsageError, match="copy that file from the machine of the head"):
        ensure_token(is_head=False)
    ensure_token(is_head=True)
    token = path.read_text()
    assert len(token) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    ensure_token(is_head=True)
    assert path.read_text() == token


@dataclass
class Known:
    """The machines that answered."""

    devices: list[DeviceInfo]
    strangers: dict[str, str]


def info(name: str, target: str | None, num_cores: int = 2) -> DeviceInfo:
    return DeviceInfo(name, target, tuple(range(num_cores)), 1, "host", "boot", "", 0)


def test_wrong_names_targets_and_threads_are_errors_that_say_what_there_is() -> None:
    there, address = [info("a", HASWELL), info("b", "aarch64"), info("builder", None)], Address("h", 1)
    known = Known(there, {})
    assert [device.name for device in devices.chosen(known, None, None, address)] == ["a", "b"]
    assert [device.name for device in devices.chosen(known, None, "aarch64", address)] == ["b"]
    with pytest.raises(UsageError, match="the fleet at h:1 has no device 'omega'; it has: a "):
        devices.chosen(known, ["omega"], None, address)
    with pytest.raises(UsageError, match="has no device for riscv64 among those asked for; it has: a "):
        devices.chosen(known, ["a"], "riscv64", address)
    with pytest.raises(UsageError, match="the devices are of several kinds: a .*; name those of one kind, or a target"):
        devices.target_of(there[:2], None)
    with pytest.raises(UsageError, match="threads is 4, and a measures on 2 cores"):
        devices.check_threads(there[:1], 4)


def test_machines_of_another_version_are_named() -> None:
    strange = {"old": why_not({"protocol": 1, "version": "0.1"})}
    with pytest.raises(UsageError, match=r"it has: none; old is not used: it runs tilewright 0.1 with version 1 of"):
        devices.chosen(Known([], strange), None, None, Address("h", 1))


def test_devices_are_alike_with_the_same_code_and_as_many_cores() -> None:
    assert devices.are_alike(info("a", HASWELL), info("b", HASWELL))
    assert not devices.are_alike(info("a", HASWELL), info("b", HASWELL, num_cores=1))
    assert not devices.are_alike(info("a", HASWELL), info("b", "aarch64"))


def test_simulated_devices_answer_one_at_a_time_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        station = SimulatedStation(DeviceSpec("sims", HASWELL, (0,), 1, simulated=2).write())
        assert json.loads(await station.describe())["simulated"] == 2
        built = [outcome["built"] for outcome in await station.build("setup", ["a", "b", "c"])]
        calls = [station.run_on(device, "setup", built[:1], None, "") for device in (0, 1, 1)]
        answers = [answer for some in await asyncio.gather(*calls) for answer in some]
        answers += await station.compare("setup", built, 2)
        assert [read_measurement(answer["measurement"]).status for answer in answers] == ["OK"] * 6
        assert json.loads(await station.status())["num_trials"] == 6

    monkeypatch.setattr(simulated, "TRIAL_S", (0.001, 0.002))
    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["", "../x", "a b", "-a", "a/b", "x" * 65])
def test_a_name_that_fits_no_file_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a device is called"):
        checked_device_name(name)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--cores", "7777"], "--cores is '7777'; this machine has: "),
        (["--cores", "a"], "give numbers and ranges"),
        (["--builders", "-1"], "--builders is -1; it must be at least 0"),
        (["--as", "a b"], "a device is called 'a b'"),
        (["--target", "aarch64"], "name the program that can with --emulator, such as qemu-aarch64"),
        (["--address", "h:1", "--listen", "h:2"], "give one of them"),
        (["--address", "127.0.0.1:1"], "there is no fleet at 127.0.0.1:1"),
    ],
)
def test_wrong_usage_of_up_is_told_at_once(
    arguments: list[str],
    error: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert main(["fleet", "up", *arguments]) == 2
    assert error in capsys.readouterr().err


def test_down_without_a_device_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "down"]) == 2
    assert "no device of this machine is in such a fleet" in capsys.readouterr().err


def test_devices_without_a_fleet_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "gmm:32x32x32", "--devices", "a"]) == 2
    assert "name it with --fleet" in capsys.readouterr().err
