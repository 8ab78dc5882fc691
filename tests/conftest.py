"""What holds in every test."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator

import pytest

from tilewright.graph.verify import verifying

# What somebody measured of this machine changes no test, nor the processes that tests start.
os.environ["TILEWRIGHT_CALIBRATION"] = ""
# Networks of cost models are compiled once for all processes of a test run, and nothing of them is left behind.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="tilewright-tests-")
    os.environ["TILEWRIGHT_CACHE"] = _cache.name

_TOLERANT = ("tilewright.space.derivation", "tilewright.deploy.kernel_workers")


@pytest.fixture(autouse=True)
def graphs_are_verified() -> Iterator[None]:
    """After the import of a network, and after each pass."""
    with verifying():
        yield


@pytest.fixture(autouse=True)
def nothing_is_dropped(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Sketches and programs that give way to plainer ones hide bugs: a test that means it calls `caplog.clear()`."""
    for name in _TOLERANT:
        caplog.set_level(logging.DEBUG, logger=name)
    yield
    dropped = [record.getMessage() for record in caplog.get_records("call") if record.name in _TOLERANT]
    assert not dropped
