"""The folder of a dataset: what is in it, what of it a model reads, and what a lost or broken part costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.records.dataset.samples import ARM, GEMM, HASWELL, SMALL, some_programs, write_sample
from tests.records.dataset.test_importing import ansor_line
from tilewright.cost_model import AnalyticalModel
from tilewright.errors import RecordFormatError, UsageError
from tilewright.features import StatementEncoder
from tilewright.records.dataset import DatasetFolder, Device, NetworkTasks, import_logs, read_folder
from tilewright.records.dataset.files import read_arrays, write_arrays
from tilewright.records.dataset.summary import summarize
from tilewright.target import Target
from tilewright.te import Task, names_in, renamed
from tilewright.te.tensor import Tensor


def test_a_dataset_is_read_by_device_and_network(tmp_path: Path) -> None:
    write_sample(tmp_path)
    assert len(read_folder(tmp_path)) == 48
    assert {group.device for group in read_folder(tmp_path, devices=["a72"]).groups} == {"a72"}
    one = read_folder(tmp_path, networks=["one"])
    assert len(one) == 24
    assert {group.population.sketch.task.hash for group in one.measured} == {GEMM.hash}
    assert len(read_folder(tmp_path, devices=["a72"], networks=["one[batch=4]"])) == 12
    assert len({group.subject for group in read_folder(tmp_path).groups}) == 4


def test_networks_whose_files_would_be_called_alike_are_all_kept(tmp_path: Path) -> None:
    folder = DatasetFolder.create(tmp_path)
    inputs = ",".join(f"a_long_name_of_input_{n}=1x128x768" for n in range(8))
    titles = [("my net", ""), ("my_net", ""), ("net", f"{inputs},last=1"), ("net", f"{inputs},last=2")]
    networks = [NetworkTasks(name, {GEMM.hash: n + 1}, "warm", sizes) for n, (name, sizes) in enumerate(titles)]
    for network in [*networks, *networks]:
        folder.add_network(network)
    assert sorted(found.weights[GEMM.hash] for found in folder.networks()) == [1, 2, 3, 4]


def test_what_was_measured_on_a_foreign_machine_is_scored_here(tmp_path: Path) -> None:
    write_sample(tmp_path)
    dataset = read_folder(tmp_path, devices=["a72"])
    assert {str(group.population.sketch.options.target) for group in dataset.measured} == {ARM.target}
    examples = dataset.encoded(StatementEncoder())
    assert len(examples) == 24
    assert examples.labels.max() == 1.0
    assert (examples.labels == 0).sum() == 4  # failures
    assert all(np.isfinite(AnalyticalModel().predict(group.population)).all() for group in dataset.measured)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [({"devices": ["z80"]}, "it has a72, haswell-2t"), ({"networks": ["vgg"]}, "it has both, one")],
)
def test_an_unknown_device_or_network_is_an_error(wanted: dict[str, list[str]], message: str, tmp_path: Path) -> None:
    write_sample(tmp_path)
    with pytest.raises(UsageError, match=message):
        read_folder(tmp_path, **wanted)


def test_a_text_in_the_place_of_names_or_paths_is_refused(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "data")
    for given in ({"devices": "a72"}, {"networks": "one"}):
        with pytest.raises(UsageError, match=f"it must be a list, such as .'{next(iter(given.values()))}'."):
            read_folder(folder.path, **given)
    with pytest.raises(UsageError, match="paths is '/a.log'; it must be a list"):
        import_logs("/a.log", folder, "v100")
    with pytest.raises(UsageError, match="the path of a dataset is empty; name a folder"):
        DatasetFolder.create("")


def test_what_is_no_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is none; check the path"):
        read_folder(tmp_path / "none")
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="no dataset, since it has no dataset.json"):
        DatasetFolder(tmp_path)
    with pytest.raises(UsageError, match="something else in it"):
        DatasetFolder.create(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_what_a_process_left_that_was_killed_does_not_stop_the_next(tmp_path: Path) -> None:
    (tmp_path / ".dataset.json.a1b2c3d4").write_text("{")
    assert DatasetFolder.create(tmp_path).devices() == []


def test_a_dataset_that_has_lost_its_own_file_goes_on(tmp_path: Path) -> None:
    write_sample(tmp_path)
    (tmp_path / "dataset.json").unlink()
    assert [device.name for device in DatasetFolder.create(tmp_path).devices()] == [ARM.name, HASWELL.name]
    (tmp_path / "dataset.json").unlink()
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="something else in it"):
        DatasetFolder.create(tmp_path)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_something_else_in_the_place_of_a_part_costs_that_alone(make: Callable[[Path], None], tmp_path: Path) -> None:
    write_sample(tmp_path)
    path = tmp_path / f"devices/a72/{GEMM.hash}.warm.npz"
    path.unlink()
    make(path)
    with pytest.warns(UserWarning, match=f"a part of the dataset is left out: .*{path.name}"):
        assert len(read_folder(tmp_path)) == 36
    assert len(summarize(tmp_path).broken) == 1


@pytest.mark.parametrize(
    ("broken", "num_left"),
    [
        (f"devices/a72/{GEMM.hash}.warm.npz", 36),
        ("devices/a72/device.json", 24),
        (f"tasks/{GEMM.hash}.json", 24),
        ("networks/both.json", 48),
    ],
)
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_part_that_is_broken_or_gone_costs_itself_alone(
    broken: str, num_left: int, is_removed: bool, tmp_path: Path
) -> None:
    folder = write_sample(tmp_path)
    path = tmp_path / broken
    if is_removed:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-40])
    if is_removed and path.suffix == ".npz":
        assert len(read_folder(tmp_path)) == num_left
        return
    if path.parent.name == "networks":
        assert len(read_folder(tmp_path)) == num_left
        if not is_removed:
            with pytest.warns(UserWarning, match="left out: .*both.json"):
                assert [network.name for network in folder.networks()] == ["one"]
        return
    with pytest.warns(UserWarning, match=f"a part of the dataset is left out: .*{path.name}"):
        assert len(read_folder(tmp_path)) == num_left


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "llvm -mcpu=native"}, "target must say all"),
        ({"target": "z80"}, "target: "),
        ({"target": 3}, "target must be a string"),
        ({"threads": 0}, "threads must be a whole number from 1"),
        ({"threads": True}, "threads must be a whole number"),
        ({"processor": None}, "processor must be a string"),
    ],
)
def test_a_device_that_is_none_is_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    write_sample(tmp_path)
    path = tmp_path / "devices" / "a72" / "device.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(RecordFormatError, match=message):
        Device.read(path.parent)


@pytest.mark.parametrize("weights", [None, {"a": 0}, {"a": 1.5}, {"a": True}, [1]])
def test_weights_are_whole_numbers(weights: object, tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    path = tmp_path / "networks" / "both.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"weights": weights}))
    with pytest.warns(UserWarning, match="weights are whole numbers"):
        folder.networks()


def test_a_task_under_other_names_is_the_same_task(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    made: dict[Tensor, Tensor] = {}
    for tensor in (*GEMM.inputs, *GEMM.stages):
        made[tensor] = renamed(tensor, tuple(f"other_{name}" for name in names_in(tensor)), made)
    other = Task([made[t] for t in GEMM.inputs], [made[t] for t in GEMM.outputs], "other")
    assert other.hash == GEMM.hash
    stored = DatasetFolder(tmp_path).add_task(other)
    assert [stage.name for stage in stored.stages] == [stage.name for stage in GEMM.stages]
    assert len(folder.programs(HASWELL, folder.part(HASWELL, other, "warm"))) == 12


def test_a_file_under_the_hash_of_another_task_is_refused(tmp_path: Path) -> None:
    write_sample(tmp_path)
    tasks = tmp_path / "tasks"
    (tasks / f"{GEMM.hash}.json").write_bytes((tasks / f"{SMALL.hash}.json").read_bytes())
    with pytest.raises(RecordFormatError, match=f"called after the task {GEMM.hash}, and holds {SMALL.hash}"):
        DatasetFolder(tmp_path).task(GEMM.hash)


def test_devices_are_known_by_what_they_are(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    target = Target.parse(HASWELL.target)
    calibrated = replace(target, core=target.core.with_values({"clock_hz": 3.1e9}))
    assert str(calibrated) != HASWELL.target
    assert folder.add_device(replace(HASWELL, name="mine", target=str(calibrated))) == HASWELL
    other = folder.add_device(replace(HASWELL, processor="A Faster One"))
    assert other.name == "haswell-2t-2"
    assert folder.add_device(replace(HASWELL, threads=1, name="haswell-1t")).name == "haswell-1t"
    assert len(folder.devices()) == 4
    with pytest.raises(UsageError, match="a name has up to 64 letters"):
        folder.add_device(replace(HASWELL, name="../up", threads=3))


def test_a_device_may_be_renamed_with_its_folder(tmp_path: Path) -> None:
    write_sample(tmp_path)
    (tmp_path / "devices" / "a72").rename(tmp_path / "devices" / "pi4")
    assert {group.device for group in read_folder(tmp_path).groups} == {"pi4", "haswell-2t"}


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    code = (
        f"from tilewright.records.dataset import DatasetFolder\nwith DatasetFolder({str(tmp_path)!r}).writing(): pass"
    )
    with folder.writing():
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "another process is writing" in second.stderr
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_who_makes_a_dataset_a_second_time_does_not_write_beside_the_first(tmp_path: Path) -> None:
    with write_sample(tmp_path).writing():
        (tmp_path / "dataset.json").unlink()  # as if the second had looked before the first wrote it
        second = DatasetFolder.create(tmp_path)
        with pytest.raises(UsageError, match="another process is writing"), second.writing():
            pass


def test_a_dataset_that_another_makes_meanwhile_is_no_folder_of_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = DatasetFolder.create(tmp_path)
    first.add_task(GEMM)
    monkeypatch.setattr(Path, "exists", lambda path: False)  # as it was when the second looked
    assert DatasetFolder.create(tmp_path).path == tmp_path


def test_unknown_files_are_passed_over(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    some_programs(GEMM).write(tmp_path / "devices" / "a72" / "notes.npz", GEMM, "warm")
    (tmp_path / "devices" / "README").write_text("mine")
    assert len(folder.parts(ARM)) == 2
    assert len(folder.devices()) == 2


@pytest.mark.parametrize("copy", [".warm.old.", ".log."])
def test_a_copy_of_a_part_that_is_called_otherwise_does_not_count_twice(copy: str, tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    path = folder.part(HASWELL, GEMM, "warm").path
    path.with_name(path.name.replace(".warm.", copy)).write_bytes(path.read_bytes())
    assert len(read_folder(tmp_path)) == 48
    assert summarize(tmp_path).num_programs == 48


def test_a_copy_of_programs_of_a_log_does_not_count_twice(tmp_path: Path) -> None:
    folder = DatasetFolder.create(tmp_path / "data")
    (tmp_path / "log.json").write_text(ansor_line([4]))
    device = import_logs([tmp_path / "log.json"], folder, "v100").device
    assert device is not None
    (part,) = folder.parts(device)
    for copy in (".log.old.", ".warm."):
        part.path.with_name(part.path.name.replace(".log.", copy)).write_bytes(part.path.read_bytes())
    assert len(read_folder(folder.path)) == 1
    assert summarize(folder.path).num_programs == 1


@pytest.mark.parametrize("is_named", [False, True])
def test_a_device_that_cannot_be_read_may_be_the_one_that_is_added(is_named: bool, tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    path = tmp_path / "devices" / HASWELL.name / "device.json"
    path.write_text("{")
    with pytest.warns(UserWarning, match="left out"), pytest.raises(RecordFormatError, match="device.json: it is not"):
        folder.add_device(HASWELL, is_named)
    with pytest.warns(UserWarning, match="left out"):
        assert folder.add_device(ARM) == ARM
    assert len(list(path.parent.parent.iterdir())) == 2


def test_a_number_of_a_core_that_its_processor_begins_with_by_now_is_still_read(tmp_path: Path) -> None:
    write_sample(tmp_path)
    path = tmp_path / "devices" / HASWELL.name / "device.json"
    core = Target.parse(HASWELL.target).core
    target = f"{HASWELL.target} -core=clock_hz:3.1e9,mad_latency:{core.mad_latency:g}"
    assert str(Target.parse(target)) != target
    path.write_text(json.dumps(json.loads(path.read_text()) | {"target": target}))
    assert len(read_folder(tmp_path)) == 48
    assert DatasetFolder(tmp_path).add_device(HASWELL).target == target


@pytest.mark.parametrize("arguments", [["nowhere", [2]], ["i", [10**30]]])
def test_a_part_whose_steps_cannot_be_applied_costs_itself_alone(arguments: list[Any], tmp_path: Path) -> None:
    path = write_sample(tmp_path).part(HASWELL, GEMM, "warm").path
    header, arrays = read_arrays(path, "programs")
    for sketch in header["sketches"]:
        sketch["steps"].insert(0, {"step": "split", "stage": GEMM.outputs[0].name, "arguments": arguments})
    write_arrays(path, "programs", header, arrays)
    with pytest.warns(UserWarning, match=f"left out: .*{path.name}: the steps of Sketch.* cannot be applied"):
        assert len(read_folder(tmp_path)) == 36
