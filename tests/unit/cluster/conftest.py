"""Two clusters of two workers for all files: their start costs most. One stays as it is found; of one workers die."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import leakcap as lc
from tests.cost import count_seconds

# What workers load, however they are started, before they do what these tests ask of them.
LOADED = (
    "distributed",
    "leakcap.cluster.sealed",
    "leakcap.cluster.tasks",
    "leakcap.sql.parted",
    "sklearn.linear_model",
)


@pytest.fixture(scope="package", autouse=True)
def _workers_are_copies() -> Iterator[None]:
    """Of a process that has loaded their libraries, and knows nothing of this one: that takes seconds, each time."""
    dask, utils = pytest.importorskip("dask"), pytest.importorskip("distributed.utils")
    multiprocessing.set_forkserver_preload([*LOADED])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "_forkserver_preload_set", True)
        with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
            yield


@contextmanager
def connected() -> Iterator[lc.cluster.Cluster]:
    """Two workers, whose CPU seconds are counted here: they are no children of this process."""
    with lc.cluster.connect(workers=2) as found:
        yield found
        for used in found.client.run(os.times).values():
            count_seconds(used.user + used.system)


@pytest.fixture(scope="package")
def pair(_workers_are_copies: None) -> Iterator[lc.cluster.Cluster]:
    """For tests that leave it as they found it."""
    with connected() as found:
        yield found


@pytest.fixture(scope="package")
def _of_all(_workers_are_copies: None) -> Iterator[lc.cluster.Cluster]:
    with connected() as found:
        yield found


@pytest.fixture
def mortal(_of_all: lc.cluster.Cluster) -> lc.cluster.Cluster:
    """For tests that kill workers, whose places are taken anew."""
    deadline = time.monotonic() + 60
    while _of_all.threads < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    return _of_all
