"""`tilewright dataset import` and `info`: what they print, and what they refuse."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.records.dataset.samples import GEMM, HASWELL, write_sample
from tests.records.dataset.test_importing import ansor_line, autotvm_line
from tilewright.cli import main
from tilewright.records.dataset import DatasetFolder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def import_(*arguments: str) -> int:
    return main(["dataset", "import", *arguments, "-o", "data"])


def test_logs_are_imported_and_broken_lines_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.json").write_text(f"{ansor_line([4])}\nwhat\n{ansor_line([8], 1e10, error=6)}\n")
    assert import_("a.json", "--device", "v100") == 0
    out = capsys.readouterr().out
    assert "records: 2 of 1 workloads, 1 of them failures" in out
    assert "added: 2 programs" in out
    assert "broken lines: 1\n  a.json:2: not a record of Ansor or AutoTVM" in out


def test_a_folder_of_logs_is_imported(capsys: pytest.CaptureFixture[str]) -> None:
    Path("logs/v100").mkdir(parents=True)
    for number in range(3):
        Path(f"logs/v100/([hash,{number}],cuda).json").write_text(
            ansor_line([number + 1], key=f'["h", {number}]') + "\n"
        )
    Path("logs/v100/README").write_text("what")
    assert import_("logs", "--device", "v100") == 0
    assert "records: 3 of 3 workloads" in capsys.readouterr().out


def test_a_dataset_among_its_logs_is_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.json").write_text(ansor_line([4]))
    for _ in range(2):
        assert import_(".", "--device", "v100") == 0
        assert "broken lines: 0\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.json", "--device", "x"], "there is no such file"),
        (["empty", "--device", "x"], "has no file that ends in"),
        (["a.json", "--device", "../x"], "a name has up to 64"),
        (["", "--device", "x"], "LOG is empty"),
        (["a.json", "--device", ""], "a name has up to 64"),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    Path("a.json").write_text(ansor_line([4]))
    assert import_(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not Path("data").exists()


def test_a_file_without_records_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.json").write_text("what\n")
    assert import_("a.json", "--device", "x") == 1
    out, err = capsys.readouterr()
    assert "broken lines: 1" in out
    assert "no line is a record" in err


def test_a_second_latency_of_a_failure_is_no_noise(capsys: pytest.CaptureFixture[str]) -> None:
    sample = write_sample(Path("data"))
    part = sample.part(HASWELL, GEMM, "warm")
    sample.programs(HASWELL, part).with_again([0, 4], [1.1e-3, 2e-3]).write(part.path, GEMM, "warm")
    assert main(["dataset", "info", "data", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [device["noise"] and device["noise"]["num_programs"] for device in found["devices"]] == [None, 1]


def test_info_shows_devices_networks_and_noise(capsys: pytest.CaptureFixture[str]) -> None:
    sample = write_sample(Path("data"))
    part = sample.part(HASWELL, GEMM, "warm")
    programs = sample.programs(HASWELL, part)
    programs.with_again([0, 1], [1.1e-3, 2e-3]).write(part.path, GEMM, "warm")
    Path("a.json").write_text("\n".join([autotvm_line(4), autotvm_line(8, 2e-3), autotvm_line(2, 1e9, error=1)]))
    assert import_("a.json", "--device", "i5") == 0
    capsys.readouterr()
    assert main(["dataset", "info", "data"]) == 0
    out = capsys.readouterr().out
    assert "data: 51 programs of 3 tasks" in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert lines["haswell-2t"].split()[1:4] == ["2", "24", "4"]
    assert "5.0% (90 %: 9.0%) of 2" in lines["haswell-2t"]
    assert lines["i5"].split()[1:4] == ["1", "3", "1"]
    assert "log of autotvm" in lines["i5"]
    assert lines["both"].split()[1:] == ["4", "2", "cold-8M", "2", "2", "0"]
    assert lines["one[batch=4]"].split()[2] == "1"


def test_info_as_json_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    write_sample(Path("data"))
    assert main(["dataset", "info", "data", "data", "--format", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first == second
    assert first["num_programs"] == 48
    assert first["devices"][1]["statuses"] == {"OK": 20, "RUN_ERROR": 4}
    assert first["devices"][1]["labels"][-1] <= 1
    assert first["devices"][1]["noise"] is None
    assert first["networks"][0]["measured"] == {"a72": 2, "haswell-2t": 2}
    assert first["broken"] == []


def test_info_names_what_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    sample = write_sample(Path("data"))
    sample.part(HASWELL, GEMM, "warm").path.write_bytes(b"what")
    Path("data/devices/a72/device.json").unlink()
    assert main(["dataset", "info", "data"]) == 0
    out = capsys.readouterr().out
    assert "data: 12 programs of 1 tasks" in out
    assert "2 parts cannot be read:" in out
    assert "a72/device.json: it is not there" in out
    assert f"{GEMM.hash}.warm.npz: it is no .npz" in out


def test_info_of_an_empty_dataset_and_of_none(capsys: pytest.CaptureFixture[str]) -> None:
    DatasetFolder.create("data")
    assert main(["dataset", "info", "data"]) == 0
    assert "no devices" in capsys.readouterr().out
    assert main(["dataset", "info", "none"]) == 2


def test_a_log_that_is_given_twice_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("logs").mkdir()
    Path("logs/a.JSON").write_text(ansor_line([4]) + "\n")
    Path("logs/b.json").symlink_to("a.JSON")
    assert import_("logs", "./logs/a.JSON", "logs/b.json", "--device", "v100") == 0
    assert "records: 1 of 1 workloads" in capsys.readouterr().out


def test_links_to_folders_are_named_and_not_followed(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("logs/inside", "elsewhere"):
        Path(name).mkdir(parents=True)
        Path(name, "a.json").write_text(ansor_line([len(name)]) + "\n")
    Path("logs/circle").symlink_to("..")
    Path("logs/inside/link").symlink_to("../../elsewhere")
    Path("logs/loop.json").symlink_to("loop.json")
    assert import_("logs", "--device", "v100") == 0
    out, err = capsys.readouterr()
    assert "records: 1 of 1 workloads" in out
    assert "left out: logs/circle is a link to a folder" in err
    assert "left out: logs/inside/link is a link to a folder" in err


def test_what_must_not_be_read_is_said_before_anything_is_imported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("logs/inside").mkdir(parents=True)
    Path("logs/a.json").write_text(ansor_line([4]) + "\n")
    Path("logs/b.json").write_text(ansor_line([8]) + "\n")
    access, scandir = os.access, os.scandir

    def list_(path: str) -> Any:
        if path.endswith("inside"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "b.json" and access(path, mode))
    assert import_("logs", "--device", "v100") == 2
    assert "LOG is 'logs/b.json', which must not be read" in capsys.readouterr().err
    monkeypatch.setattr(os, "scandir", list_)
    assert import_("logs", "--device", "v100") == 2
    assert "its folder 'logs/inside' must not be read (Permission denied)" in capsys.readouterr().err
    assert not Path("data").exists()


def test_a_dataset_may_be_in_a_folder_that_must_not_be_written_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.json").write_text(ansor_line([4]) + "\n")
    outer, denied = Path().resolve(), [Path().resolve()]
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).resolve() not in denied and access(path, mode))
    assert import_("a.json", "--device", "v100") == 2
    assert f"the folder {outer} must not be written to" in capsys.readouterr().err
    Path("data").mkdir()  # as one that is mounted there
    assert import_("a.json", "--device", "v100") == 0
    denied[0] = outer / "data"
    assert import_("a.json", "--device", "v100") == 2
    assert "data must not be written to" in capsys.readouterr().err


def test_a_name_with_an_end_of_a_line_stays_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a\nb 100%.json").write_text("what\n" + ansor_line([4]) + "\n")
    assert import_("a\nb 100%.json", "--device", "v100") == 0
    out, err = capsys.readouterr()
    assert "  a\\nb 100%.json:1: not a record" in out
    assert "1 broken lines  a\\nb 100%.json\n" in err


def test_files_that_are_replaced_while_info_looks_are_no_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(Path("data"))
    Path("data/tasks/.new.json").write_text("{}")
    is_file = Path.is_file

    def replaced(path: Path) -> bool:
        found = is_file(path)
        if path.name == ".new.json":
            path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", replaced)
    assert main(["dataset", "info", "data"]) == 0
    assert "48 programs" in capsys.readouterr().out
