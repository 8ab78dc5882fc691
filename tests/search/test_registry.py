"""Strategies as a name, a class, an instance or a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.cli import main
from tilewright.errors import UsageError
from tilewright.search import EvolutionarySearch, RandomSearch, find_strategy, load_strategy
from tilewright.workloads import parse


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_file_has_the_name_and_the_options(tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", {"search": "evolutionary", "options": {"population": 64, "epsilon": 0}})
    for found in (find_strategy(path), find_strategy(str(path)), load_strategy(path)):
        assert isinstance(found, EvolutionarySearch)
        assert (found.population, found.epsilon, found.generations) == (64, 0, 3)


def test_options_may_be_left_out(tmp_path: Path) -> None:
    assert isinstance(find_strategy(written(tmp_path / "s.json", {"search": "random"})), RandomSearch)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not the file of a search strategy"),
        ("[" * 100_000, "is not the file of a search strategy"),
        ("[]", "is such as"),
        ({"options": {}}, "is such as"),
        ({"search": "random", "seed": 1}, "is such as"),
        ({"search": "tabu"}, "one of evolutionary, .*random, got 'tabu'"),
        ({"search": ["random"]}, "one of evolutionary, .*random"),
        ({"search": "random", "options": {"population": 8}}, "options of RandomSearch are none"),
        ({"search": "evolutionary", "options": {"sketches": []}}, "options of EvolutionarySearch are alpha, epsilon"),
        ({"search": "evolutionary", "options": [1]}, "options of EvolutionarySearch are alpha, epsilon"),
        ({"search": "evolutionary", "options": {"population": 0}}, "a whole number from 1 to 1000000, got 0"),
        ({"search": "evolutionary", "options": {"population": 2.5}}, "a whole number from 1 to 1000000, got 2.5"),
        ({"search": "evolutionary", "options": {"population": True}}, "a whole number from 1 to 1000000, got True"),
        ({"search": "evolutionary", "options": {"epsilon": "all"}}, "a number from 0 to 1, got 'all'"),
        ('{"search": "evolutionary", "options": {"epsilon": NaN}}', "a number from 0 to 1, got nan"),
        ({"search": "evolutionary", "options": {"epsilon": 1.5}}, "a number from 0 to 1, got 1.5"),
    ],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path: Path, content: object, message: str) -> None:
    path = written(tmp_path / "s.json", content)
    with pytest.raises(UsageError, match=message) as refused:
        find_strategy(str(path))
    assert "s.json" in str(refused.value)


def test_what_is_no_strategy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one of evolutionary, .*random, the path of a file"):
        find_strategy("tabu")
    with pytest.raises(UsageError, match="is not there"):
        find_strategy(tmp_path / "none.json")
    with pytest.raises(UsageError, match="is not the file of a search strategy"):
        find_strategy(tmp_path)


def test_tune_and_the_command_line_take_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "s.json", {"search": "evolutionary", "options": {"population": 32, "generations": 1}})
    assert main(["tune", "gmm:8x8x8", "--trials", "2", "--threads", "1", "--search", str(path)]) == 0
    assert main(["tune", "gmm:8x8x8", "--trials", "2", "--search", str(tmp_path / "none.json")]) == 2
    assert tw.tune(parse("gmm:8x8x8"), trials=2, threads=1, search=path).best.latency_s
