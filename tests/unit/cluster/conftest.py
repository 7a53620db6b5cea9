"""Two clusters of two workers for all files: their start costs most. One stays as it is found; of one workers die."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import leakcap as lc


@pytest.fixture(scope="package")
def pair() -> Iterator[lc.cluster.Cluster]:
    """For tests that leave it as they found it."""
    pytest.importorskip("distributed")
    with lc.cluster.connect(workers=2) as found:
        yield found


@pytest.fixture(scope="package")
def _of_all() -> Iterator[lc.cluster.Cluster]:
    pytest.importorskip("distributed")
    with lc.cluster.connect(workers=2) as found:
        yield found


@pytest.fixture
def mortal(_of_all: lc.cluster.Cluster) -> lc.cluster.Cluster:
    """For tests that kill workers, whose places are taken anew."""
    deadline = time.monotonic() + 60
    while _of_all.threads < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    return _of_all
