"""Networks of cost models run compiled, and what was compiled is kept; a cache that cannot be used costs time alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright import model_engine, sockets
from tilewright.cost_model.neural import Mlp
from tilewright.model_engine import CACHE_VARIABLE, cache_folder, run_compiled
from tilewright.testing.cost_model_checks import sum_structured, sum_structured_examples


@pytest.fixture(autouse=True)
def nothing_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_engine, "_in_memory", {})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def trained() -> Mlp:
    model = Mlp(width=4, epochs=1)
    model.fit_examples(sum_structured_examples(8))
    return model


def score(model: Mlp) -> list[float]:
    """As in a new process: nothing is known of what ran before."""
    assert model.network_ is not None
    model.network_._runners.clear()
    model_engine._in_memory.clear()
    return [float(each) for each in model.score(sum_structured(5, 2, seed=1)[0])]


def forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network was compiled")

    monkeypatch.setattr(model_engine, "_compiled", refuse)


def test_what_was_compiled_is_read_from_the_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained()
    scores = score(model)
    (file,) = (cache / "networks").iterdir()
    assert file.suffix == ".tw"
    forbid_compiling(monkeypatch)
    assert score(model) == scores


def test_other_weights_of_the_same_network_find_it_compiled(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained()
    score(model)
    forbid_compiling(monkeypatch)
    model.update_examples(sum_structured_examples(16))
    updated = score(model)
    other = Mlp(width=4, epochs=1, seed=9)
    other.fit_examples(sum_structured_examples(8))
    assert score(other) != updated
    assert len(list((cache / "networks").iterdir())) == 1


def test_another_network_shape_and_version_is_another_file(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained()
    score(model)
    model.score(sum_structured(3, 3, seed=0)[0])
    wide = Mlp(width=8, epochs=1)
    wide.fit_examples(sum_structured_examples(8))
    score(wide)
    monkeypatch.setattr(model_engine, "__version__", "99")
    score(model)
    assert len(list((cache / "networks").iterdir())) == 4


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x89tilewright\r\n\x1a\n\0 torn"])
def test_a_broken_file_is_compiled_anew(content: bytes, cache: Path) -> None:
    model = trained()
    scores = score(model)
    (file,) = (cache / "networks").iterdir()
    whole = file.read_bytes()
    file.write_bytes(content or whole[:-64])
    assert score(model) == scores
    assert len(file.read_bytes()) == len(whole)


def test_a_folder_that_cannot_be_written_costs_time_alone(cache: Path) -> None:
    cache.write_text("a file is in the place of the folder")
    assert all(np.isfinite(score(trained())))
    assert cache.is_file()


def test_a_folder_in_the_place_of_a_file_costs_time_alone(cache: Path) -> None:
    model = trained()
    scores = score(model)
    (file,) = (cache / "networks").iterdir()
    file.unlink()
    file.mkdir()
    assert score(model) == scores
    assert file.is_dir()


def test_a_folder_that_cannot_be_looked_into_costs_time_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As one of somebody else; here one whose name is too long, which not even root may ask for."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / ("x" * 300)))
    assert all(np.isfinite(score(trained())))


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() is None
    assert all(np.isfinite(score(trained())))
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/tilewright")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_folder() == Path("/home/somebody/.cache/tilewright")
    monkeypatch.setenv(CACHE_VARIABLE, "/mine")
    assert cache_folder() == Path("/mine")


def test_one_network_is_made_ready_once() -> None:
    model = trained()
    assert model.network_ is not None
    shapes = model.network_._shapes(2)
    assert run_compiled(model.network_.onnx, shapes) is run_compiled(model.network_.onnx, shapes)


def test_the_package_plugs_it_in_without_loading_it() -> None:
    program = "import sys, tilewright; assert 'tilewright.model_engine' not in sys.modules; "
    program += "from tilewright.cost_model.neural.inference import engine; print(engine().__module__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "tilewright.model_engine\n"


def test_an_empty_socket_gives_nothing() -> None:
    assert sockets.plugged("a socket without a plug") is None
