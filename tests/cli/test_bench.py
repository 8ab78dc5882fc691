"""`tilewright bench`: the program and its peers in one table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tilewright import peers
from tilewright.cli import main

SHORT = ["--threads", "1", "--rounds", "1"]


def test_the_program_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "c2d:1x6x6x4,16,3x3,s1,p1", *SHORT]) == 0
    first, header, row = capsys.readouterr().out.splitlines()
    assert first == "c2d:1x6x6x4,16,3x3,s1,p1 on 1 threads: the best by the cost model that ships; nothing was measured"
    assert header.split() == ["latency", "GFLOP/s", "time", "by", "ours"]
    assert row.split()[0] == "tilewright"
    assert row.split()[-1] == "1.00"


def test_next_to_numpy_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gmm:16x16x16", "--against", "numpy", "--format", "json", *SHORT]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["workload"] == "gmm:16x16x16"
    assert [row["name"] for row in printed["rows"]] == ["tilewright", "numpy"]
    assert all(row["latency_ms"] > 0 for row in printed["rows"])


def test_next_to_torch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dep:1x6x6x16,3x3,s1,p1", "--against", "torch,numpy", *SHORT]) == 0
    assert "torch channels last" in capsys.readouterr().out


def test_a_difference_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    zeros = np.zeros((16, 16), np.float32)
    monkeypatch.setattr(peers, "peers_of", lambda *_: {"numpy": peers.Peer(lambda: zeros, lambda: zeros)})
    assert main(["bench", "gmm:16x16x16", "--against", "numpy", *SHORT]) == 1
    printed = capsys.readouterr()
    assert "tilewright and numpy must compute the same, but their outputs C differ by" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "tvm"], "is one of numpy, torch, got 'tvm'"),
        (["--rounds", "0"], "--rounds is 0"),
        (["--threads", "0"], "--threads is 0"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gmm:8x8x8", "--threads", "1", *arguments]) == 2
    assert message in capsys.readouterr().err
