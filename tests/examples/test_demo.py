"""`make demo` with a small network and a small budget: what it shows, what it needs, and that it leaves nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo
from tests.cli.tiny_model import NUM_TASKS, write_tiny_model

ROOT = Path(__file__).parents[2]
# What a development environment has and a fresh installation has not.
NOT_INSTALLED = ("hypothesis", "onnxruntime", "openvino", "PIL", "threadpoolctl", "torch")

FRESH_MACHINE = """
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {missing!r} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
from examples.demo import main
sys.exit(main({arguments!r}))
"""


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(demo, "ROUNDS", 1)
    return ["--model", write_tiny_model(tmp_path), "--budget", "2s"]


def test_before_after_and_onnxruntime_are_shown(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(arguments) == 0
    printed = capsys.readouterr()
    title, tuning, _, header, before, after, library, _, verdict, next_step = printed.out.splitlines()
    assert f"in {NUM_TASKS} different tasks" in title
    assert tuning.startswith("tuning for 2s")
    assert header.split() == ["latency", "speed"]
    assert before.startswith("before, with zero trials")
    assert before.endswith("1.00x")
    assert after.startswith("after ")
    assert library.startswith("onnxruntime ")
    assert verdict == "All outputs agree."
    assert next_step.endswith(f"tilewright tune {arguments[1]} --budget 5m -o tiny.tw")
    assert "  trial 1  " in printed.err
    assert "\r" not in printed.err, "nobody watches"
    assert list((tmp_path / "temporary").glob("tilewright*")) == []


def test_it_runs_where_only_the_dependencies_are_installed(arguments: list[str], tmp_path: Path) -> None:
    code = FRESH_MACHINE.format(missing=NOT_INSTALLED, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}/src:{ROOT}", "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith(("before", "after", "onnxruntime"))] == lines[4:6] + lines[7:8]
    assert lines[7] == "onnxruntime is not installed; pip install onnxruntime"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["temporary", "tiny.onnx"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_interrupt_leaves_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("examples.demo.Display.show", interrupted)
    assert demo.main(arguments) == 130
    assert capsys.readouterr().err.endswith("demo: interrupted; nothing is left behind\n")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_another_answer_fails(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong:
        name = "onnxruntime"

        def run(self, inputs: object) -> list[object]:
            return [[[1.0, 2.0, 3.0, 4.0]]]

    monkeypatch.setattr(demo, "network_peer", lambda *_: Wrong())
    assert demo.main(arguments) == 1
    assert "tilewright and onnxruntime must compute the same" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [(["--model", "missing.onnx"], "No such file"), (["--budget", "5"], "give a number")],
)
def test_wrong_arguments_are_named(option: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(option) == 1
    assert message in capsys.readouterr().err
