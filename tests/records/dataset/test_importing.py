"""Logs in a dataset: what is kept of them, what pairs up, and what broken lines and files cost."""

from __future__ import annotations

import bz2
import json
import lzma
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.records.test_foreign_log import AUTOTVM
from tilewright.cost_model import Logged
from tilewright.errors import RecordFormatError, UsageError
from tilewright.features import PrimitiveEncoder, StatementEncoder
from tilewright.records.dataset import DatasetFolder, Device, Imported, LoggedPrograms, import_logs, read_folder
from tilewright.records.dataset.files import read_arrays, write_arrays


def ansor_line(factors: list[int], cost_s: float = 1e-3, error: int = 0, key: str = '["8f2c", 64]') -> str:
    steps = [["SP", 2, 0, 64, factors, 1], ["AN", 2, 0, 3], ["PR", 5, 0, "auto_unroll_max_step$16"]]
    return json.dumps({"i": [[key, "cuda"], [[], steps]], "r": [[cost_s], error, 0.5, 1.6e9], "v": "v0.6"})


def autotvm_line(tile: int, cost_s: float = 1e-3, error: int = 0, ann: str = "unroll") -> str:
    entity = [["tile_y", "sp", [-1, tile]], ["ann", "an", [ann]]]
    return json.dumps(AUTOTVM | {"config": {"entity": entity}, "result": [[cost_s], error, 0.9, 1.6e9]})


def imported(folder: Path, device: str, *lines: str) -> Imported:
    path = folder.parent / f"{device}.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return import_logs([path], DatasetFolder.create(folder), device)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def logged(folder: Path, **filters: Any) -> list[Logged]:
    return [group for group in read_folder(folder, **filters).groups if isinstance(group, Logged)]


def test_programs_of_one_form_are_rows_of_numbers(data: Path) -> None:
    found = imported(data, "v100", ansor_line([2, 4], 1e-3), ansor_line([8, 4], 2e-3), ansor_line([1], 1e10, error=4))
    assert (found.num_records, found.num_added, found.num_failed, found.num_broken) == (3, 3, 1, 0)
    first, second = logged(data)
    assert [primitive.kind for primitive in first.primitives] == ["SP", "AN", "PR"]
    assert [primitive.names for primitive in first.primitives] == [(), ("parallel",), ("auto_unroll_max_step",)]
    split = first.primitives[0].numbers
    assert split[:3] == (2, 0, 64)
    np.testing.assert_array_equal(split[3], [2, 8])
    assert split[4:] == (4, 1)
    np.testing.assert_allclose(first.latencies_s, [1e-3, 2e-3], rtol=1e-6)
    assert second.latencies_s.tolist() == [np.inf]
    assert first.subject == second.subject
    assert (first.context, first.device) == ("log", "v100")


def test_a_log_that_is_there_adds_nothing_and_new_lines_are_added(data: Path) -> None:
    lines = [autotvm_line(4), autotvm_line(8), autotvm_line(4, 2e-3), autotvm_line(2, ann="none")]
    assert imported(data, "i5", *lines, lines[0]).num_added == 4
    assert imported(data, "i5", *lines).num_added == 0
    assert imported(data, "i5", *lines, autotvm_line(16)).num_added == 1
    assert len(read_folder(data)) == 5


def test_the_same_workload_on_two_devices_pairs_up(data: Path) -> None:
    imported(data, "amd", autotvm_line(4), autotvm_line(8))
    imported(data, "intel", autotvm_line(8, 5e-3), autotvm_line(32))
    (amd,), (intel,) = logged(data, devices=["amd"]), logged(data, devices=["intel"])
    assert amd.task == intel.task
    assert amd.subject != intel.subject
    folder = DatasetFolder(data)
    assert folder.workload(amd.task) == ["dense.x86", AUTOTVM["input"][2]]
    assert {device.name: device.tool for device in folder.devices()} == {"amd": "autotvm", "intel": "autotvm"}


def test_models_of_primitives_read_them_and_others_say_why_not(data: Path) -> None:
    imported(data, "v100", ansor_line([2, 4], 1e-3), ansor_line([8, 4], 2e-3))
    examples = read_folder(data).encoded(PrimitiveEncoder())
    assert examples.labels.tolist() == pytest.approx([1.0, 0.5])
    (group,) = logged(data)
    assert group.encoded(PrimitiveEncoder()) is group.encoded(PrimitiveEncoder())
    with pytest.raises(UsageError, match="the encoder statements reads more"):
        read_folder(data).encoded(StatementEncoder())


def test_broken_lines_are_counted_and_named_and_cost_themselves_alone(data: Path) -> None:
    hostile = [
        "{",
        "[]",
        "7",
        '"i"',
        "null",
        "[" * 100_000,
        '{"i": 1}',
        ansor_line([10**30]),
        ansor_line([2], cost_s=0.0),
        ansor_line([2], error=10**9),
        ansor_line([2], error=-1),
        ansor_line([2]).replace("0.001", "NaN"),
        ansor_line([2], key="[NaN]"),
        ansor_line([2]).replace(json.dumps('["8f2c", 64]'), "7"),
        autotvm_line(4).replace("0.001", "-1"),
        ansor_line([2], cost_s=5e8),
        ansor_line([2] * 10_001),
        ansor_line([2]).replace('["AN", 2, 0, 3]', '"AN"'),
        ansor_line([2]).replace("[[], [", '[[], [["CI", 1], ' + '["CI", 1], ' * 10_000),
    ]
    found = imported(data, "v100", ansor_line([4]), *hostile, ansor_line([8]))
    assert (found.num_records, found.num_broken) == (2, len(hostile))
    assert "v100.log:2: not a record of Ansor or AutoTVM" in found.broken[0]
    assert len(found.broken) == 10
    assert len(read_folder(data)) == 2


@pytest.mark.parametrize("costs", ["[Infinity]", "[NaN]", "[0]", "[-1]", "[]", "null", '["Traceback"]'])
@pytest.mark.parametrize("line", [ansor_line([2], error=4), autotvm_line(2, error=4)], ids=["ansor", "autotvm"])
def test_a_failure_is_one_whatever_it_has_in_the_place_of_costs(line: str, costs: str, data: Path) -> None:
    found = imported(data, "v100", line.replace("[0.001]", costs))
    assert (found.num_records, found.num_failed, found.num_broken) == (1, 1, 0)
    (group,) = logged(data)
    assert np.isinf(group.latencies_s).all()


def test_records_of_two_tools_in_a_file_cost_those_of_the_second(data: Path) -> None:
    found = imported(data, "mine", ansor_line([4]), autotvm_line(4), autotvm_line(8), ansor_line([8]))
    assert (found.num_records, found.num_added, found.num_broken) == (2, 2, 2)
    assert "mine.log:2: a record of autotvm among those of ansor" in found.broken[0]
    assert "give another --device" in found.broken[0]


@pytest.mark.parametrize("depth", [100, 900, *range(940, 1000, 4)])
def test_what_is_nested_as_deeply_as_can_just_be_read_is_written_or_refused(depth: int, data: Path) -> None:
    found = imported(data, "v100", ansor_line([2], key="[" * depth + "]" * depth), ansor_line([4]))
    assert found.num_records + found.num_broken == 2
    assert len(read_folder(data)) == found.num_records == len(found.workloads)


def test_a_later_version_may_have_more_to_say_of_a_result(data: Path) -> None:
    assert imported(data, "v100", ansor_line([2]).replace("1600000000.0]", '1600000000.0, "more"]')).num_records == 1


def test_a_device_that_cannot_be_read_is_named(data: Path) -> None:
    imported(data, "v100", ansor_line([2]))
    (data / "devices" / "v100" / "device.json").write_text("{")
    with pytest.raises(RecordFormatError, match="device.json: it is not JSON"):
        imported(data, "v100", ansor_line([4]))


@pytest.mark.parametrize(
    "packed", [bz2.compress(b"what"), lzma.compress(b"what", lzma.FORMAT_ALONE), b"PK\x03\x04 what"]
)
def test_a_log_that_is_packed_otherwise_says_so(packed: bytes, data: Path, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_bytes(packed)
    found = import_logs([tmp_path / "log.json"], DatasetFolder.create(data), "v100")
    assert found.num_broken == 1
    assert "log.json:1: the file is packed by" in found.broken[0]


def test_the_least_and_the_most_that_is_imported_comes_back(data: Path) -> None:
    lines = [ansor_line([-(2**63)], cost_s=1e-12), ansor_line([2**63 - 1], cost_s=1e8), ansor_line([2], cost_s=1.0)]
    assert imported(data, "v100", *lines).num_added == 3
    (group,) = logged(data)
    np.testing.assert_array_equal(group.primitives[0].numbers[3], [-(2**63), 2**63 - 1, 2])
    assert imported(data, "v100", *lines).num_added == 0


def test_a_file_that_ends_early_gives_what_comes_before(data: Path, tmp_path: Path) -> None:
    import gzip

    lines = "".join(f"{ansor_line([n, 7])}\n" for n in range(1, 20_000)).encode()
    (tmp_path / "log.gz").write_bytes(gzip.compress(lines)[:20_000])
    found = import_logs([tmp_path / "log.gz"], DatasetFolder.create(data), "v100")
    assert found.num_broken == 1
    assert found.num_added == found.num_records > 100


def test_what_waits_is_written_before_it_is_too_much(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.records.dataset.importing._MAX_BUFFERED", 50)
    lines = [ansor_line([n, 3]) for n in range(1, 40)]
    assert imported(data, "v100", *lines).num_added == 39
    (group,) = logged(data)
    np.testing.assert_array_equal(group.primitives[0].numbers[3], np.arange(1, 40))


def test_an_interrupt_keeps_what_was_read(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.records.dataset import importing

    parse = importing._parse

    def interrupting(line: bytes) -> Any:
        if b"[9, 1]" in line:
            raise KeyboardInterrupt
        return parse(line)

    monkeypatch.setattr(importing, "_parse", interrupting)
    with pytest.raises(KeyboardInterrupt):
        imported(data, "v100", *(ansor_line([n, 1]) for n in range(1, 20)))
    assert len(read_folder(data)) == 8


@pytest.mark.parametrize("place", ["_numbers", "_times", "_errors"])
def test_an_interrupt_in_the_middle_of_a_program_costs_that_alone(
    place: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilewright.records.dataset import importing

    class Interrupting(array):  # type: ignore[type-arg]
        def _check(self) -> None:
            if len(self) >= (5 * 8 if place == "_numbers" else 5):
                raise KeyboardInterrupt

        def extend(self, values: Any) -> None:
            self._check()
            super().extend(values)

        def append(self, value: Any) -> None:
            self._check()
            super().append(value)

    class Rows(importing._Rows):
        def __init__(self) -> None:
            super().__init__()
            setattr(self, place, Interrupting(getattr(self, place).typecode))

    monkeypatch.setattr(importing, "_Rows", Rows)
    with pytest.raises(KeyboardInterrupt):
        imported(data, "v100", *(ansor_line([n, 1]) for n in range(1, 20)), ansor_line([2], key='["other", 1]'))
    assert 4 <= len(read_folder(data)) <= 5


def test_a_device_has_programs_of_one_tool(data: Path) -> None:
    imported(data, "mine", ansor_line([4]))
    with pytest.raises(UsageError, match="has programs of logs of ansor, and a log of autotvm"):
        imported(data, "mine", autotvm_line(4))
    target = "llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu -num-cores=1 -l1d=32K -l2=256K -l3=8M -line=64"
    DatasetFolder(data).add_device(Device("here", target, 1))
    with pytest.raises(UsageError, match="has programs that were measured"):
        imported(data, "here", ansor_line([4]))
    with pytest.raises(UsageError, match="a name has up to 64 letters"):
        imported(data, "a b", ansor_line([4]))


def rewritten(path: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    old_header, old_arrays = read_arrays(path, "log")
    write_arrays(path, "log", old_header | header, old_arrays | arrays)


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"task": "0" * 32}, {}, "should be of the workload"),
        ({"forms": 1}, {}, "forms must be a list"),
        ({"forms": [[["SP", [], 10**9]]]}, {}, "a form has a kind"),
        ({"forms": [[["SP", [1], 1]]]}, {}, "a form has a kind"),
        ({"forms": [[["SP", [], True]]]}, {}, "a form has a kind"),
        ({"forms": [[["SP", []]]]}, {}, "a form has a kind"),
        ({"forms": []}, {}, "a number for each of 0 forms"),
        ({"num_programs": [-2]}, {}, "num_programs has a number"),
        ({"num_programs": [10**6]}, {}, "numbers has"),
        (
            {"num_programs": [0]},
            {name: np.zeros(0, kind) for name, kind in (("numbers", "i2"), ("latencies_s", "f4"), ("errors", "i2"))},
            "num_programs has a number for each of 1 forms, from 1",
        ),
        ({}, {"numbers": np.zeros(3, np.int64)}, "numbers has 22 numbers, got int64"),
        ({}, {"numbers": np.zeros(22)}, "numbers has 22 numbers, got float64"),
        ({}, {"latencies_s": np.array([0.0, 1.0], np.float32)}, "got 0.0"),
        ({}, {"latencies_s": np.array([np.inf, 1.0], np.float32)}, "got inf"),
        ({}, {"latencies_s": np.array([-1.0, 1.0], np.float32)}, "got -1.0"),
        ({}, {"errors": np.zeros(1, np.int16)}, "errors has 2 numbers"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]], message: str, data: Path
) -> None:
    imported(data, "v100", ansor_line([2, 4]), ansor_line([8, 4]))
    (part,) = DatasetFolder(data).parts(Device("v100", "", 0, tool="ansor"))
    rewritten(part.path, header, arrays)
    with pytest.raises(RecordFormatError, match=message):
        LoggedPrograms.read(part.path, part.task)
    with pytest.warns(UserWarning, match="left out"):
        assert len(read_folder(data)) == 0
