"""The collector of cycles runs rarely while a network is imported, and as before afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tilewright.graph.collecting import rare_collections


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("before", [(700, 10, 10), (10**6, 5, 5), (0, 10, 10)])
def test_only_a_lower_threshold_is_raised(before: tuple[int, int, int]) -> None:
    gc.set_threshold(*before)
    with rare_collections():
        inside = gc.get_threshold()
        assert inside[0] >= before[0]
        assert (inside[0] == 0) == (before[0] == 0)
    assert gc.get_threshold() == before


def test_the_last_to_leave_restores_it() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > 700
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_an_error_restores_it() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(KeyError), rare_collections():
        raise KeyError
    assert gc.get_threshold() == (700, 10, 10)
