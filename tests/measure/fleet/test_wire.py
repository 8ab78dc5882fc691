"""What travels between machines comes out as it went in, and what no machine of ours sends is refused."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any

import pytest

from tilewright.measure import Context, Measurement, MeasureOptions
from tilewright.measure.compiler import compile_trace
from tilewright.measure.fleet.station import DeviceSpec, Station
from tilewright.measure.fleet.wire import (
    WireError,
    read_built,
    read_measurement,
    read_setup,
    write_built,
    write_measurement,
    write_setup,
)
from tilewright.measure.local.messages import Setup
from tilewright.measure.protocols import Built
from tilewright.target import Target
from tilewright.testing.measurer_checks import product, split_program

TARGET = Target.parse("llvm -mcpu=haswell")


def setup() -> Setup:
    options = MeasureOptions(seed=3, contender_factor=math.inf)
    return Setup(product(), TARGET, 2, options, Context.parse("cold-1M"))


def built() -> Built:
    task = product()
    return Built(compile_trace(task, split_program(task, 2), TARGET, 1), 0.25, error_growth=8.0)


def test_a_setup_survives_as_text_and_is_one_object_for_one_text() -> None:
    found = read_setup(write_setup(setup()))
    assert found.task.hash == product().hash
    assert (found.target, found.threads, found.options, found.context) == (
        TARGET,
        2,
        setup().options,
        setup().context,
    )
    assert read_setup(write_setup(setup())).task is found.task


def test_a_setup_of_another_protocol_is_refused() -> None:
    content = json.loads(write_setup(setup())) | {"protocol": 99}
    with pytest.raises(WireError, match="install the same version of tilewright on all of them"):
        read_setup(json.dumps(content))


def test_a_kernel_survives_with_its_packed_constants() -> None:
    assert built().binary.packs
    assert read_built(write_built(built()), product(), TARGET) == built()


def test_a_kernel_in_several_object_files_survives_and_each_is_looked_at() -> None:
    built()
    whole = built()  # what came before is a file of its own
    assert whole.binary.parts
    assert read_built(write_built(whole), product(), TARGET) == whole
    with pytest.raises(WireError, match="no kernel"):
        read_built(write_built(whole) | {"parts": [b"\x7fELF"]}, product(), TARGET)


def test_a_kernel_for_another_architecture_is_refused() -> None:
    with pytest.raises(WireError, match="it is for machine 62 of the ELF list, not for aarch64"):
        read_built(write_built(built()), product(), Target.parse("aarch64"))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"object_code": b""}, "no kernel"),
        ({"object_code": b"\x7fELF" + bytes(100)}, "no kernel"),
        ({"object_code": None}, "no kernel"),
        ({"entry": ["missing", 0, 0]}, "it has no function 'missing'"),
        ({"entry": ["tw_run", -1, 0]}, "-1 is no size"),
        ({"entry": ["tw_run", 2**60, 0]}, "is no size"),
        ({"entry": ["tw_run", True, 0]}, "True is no size"),
        ({"entry": []}, "no kernel"),
        ({"build_s": "1"}, "'1' is no time"),
        ({"packs": [[0, ["tw_run", 0, 0], [4], "float32", 16]]}, "it packs input 0, which is no constant"),
        ({"packs": [[1, ["tw_run", 0, 0], [4], "float32", 99]]}, "it packs input 1"),
        ({"packs": [[1, ["tw_run", 0, 0], [4], "float31", 16]]}, "it packs input 1"),
        ({"packs": 3}, "no kernel"),
    ],
)
def test_a_kernel_that_is_not_in_order_is_refused(change: dict[str, Any], error: str) -> None:
    with pytest.raises(WireError, match=error):
        read_built(write_built(built()) | change, product(), TARGET)


def test_a_truncated_kernel_is_refused() -> None:
    form = write_built(built())
    with pytest.raises(WireError):
        read_built(form | {"object_code": form["object_code"][:-64]}, product(), TARGET)


@pytest.mark.parametrize(
    "measurement",
    [Measurement("OK", 1e-3, (1e-3, 2e-3), build_s=0.1), Measurement("RUN_ERROR", error="it died", build_s=0.1)],
)
def test_a_measurement_survives(measurement: Measurement) -> None:
    assert read_measurement(json.loads(json.dumps(write_measurement(measurement)))) == measurement


def test_long_errors_are_cut() -> None:
    found = read_measurement(write_measurement(Measurement("RUN_ERROR", error="x" * 10**6)))
    assert len(found.error) == 20_000


def test_a_device_refuses_code_for_another_machine_and_for_more_cores_than_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: None)
    for spec, why in (
        (DeviceSpec("other", "llvm -mcpu=haswell -l2=3M", (0, 1), 1), "other is for llvm .*, and the program for llvm"),
        (DeviceSpec("small", str(TARGET), (0,), 1), "small measures on 1 cores, and the program uses 2 threads"),
        (DeviceSpec("builder", None, (0, 1), 1), "builder is for None"),
    ):
        (answer,) = Station(spec.write()).run(write_setup(setup()), [write_built(built())], None, "batch")
        assert re.match(why, answer["fault"])
