"""Worlds on workers of a cluster: the same answers, whoever is lost; nothing of the data in what a cluster writes."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.cluster import connecting
from leakcap.errors import InputError, OutputError

distributed = pytest.importorskip("distributed", reason="clusters need Dask")

SECRET = 987654321.125  # of a row; nothing that a cluster writes may hold it
HEIGHTS = np.append(np.random.default_rng(0).normal(170, 10, 199), SECRET)


@pytest.fixture(scope="module")
def two() -> Iterator[lc.cluster.Cluster]:
    with lc.cluster.connect(workers=2) as found:
        yield found


def middle(x: np.ndarray) -> np.ndarray:
    return np.array([np.median(x), np.quantile(x, 0.25)])


def planned(fn: Any, worlds: int = 64, **how: Any) -> Any:
    return lc.plan(fn, HEIGHTS, cap=0.6, worlds=worlds, seed=1, **how)


def test_certificates_are_those_of_one_process(two: lc.cluster.Cluster) -> None:
    alone = planned(middle)
    for backend in (two, two.client):
        assert planned(middle, backend=backend).certificate.to_json() == alone.certificate.to_json()
    assert planned(middle, settings=lc.Settings(backend=two)).certificate.to_json() == alone.certificate.to_json()


def test_given_inputs_run_there_too(two: lc.cluster.Cluster) -> None:
    inputs = list(np.random.default_rng(1).normal(size=(24, 5)))
    here, there = (
        lc.plan(middle, inputs=inputs, cap=lc.caps.identification(0.2), seed=1, backend=backend).certificate.to_json()
        for backend in (None, two)
    )
    assert here == there


def test_a_lost_workers_tasks_run_again_with_the_same_result(two: lc.cluster.Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "died"

    def dies_once(x: np.ndarray) -> float:
        if multiprocessing.parent_process() is not None and not mark.exists():  # in a worker, once
            mark.write_text("")
            os._exit(1)
        return float(np.median(x))

    found = planned(dies_once, backend=two)
    assert mark.exists()
    assert found.certificate.to_json() == planned(lambda x: float(np.median(x))).certificate.to_json()


def test_what_kills_every_worker_ends_the_run_and_names_its_batch(two: lc.cluster.Cluster) -> None:
    def deadly(x: np.ndarray) -> float:
        if len(x) == 100 and x.max() < SECRET:  # the half without the outlier
            os._exit(1)
        return float(np.median(x))

    with pytest.raises(OutputError, match=r"workers were lost while they worked on batch \d+ of \d+"):
        planned(deadly, backend=two)
    deadline = time.monotonic() + 60
    while two.threads < 2 and time.monotonic() < deadline:  # they are started again
        time.sleep(0.1)
    assert planned(middle, backend=two).certificate is not None


def test_what_hangs_ends_the_run_and_names_its_batch(two: lc.cluster.Cluster) -> None:
    def hangs(x: np.ndarray) -> float:
        time.sleep(8 if x.max() < SECRET else 0)
        return float(np.median(x))

    with pytest.raises(OutputError, match=r"no batch ended for 2 s, .* batch 1 of 1"):
        planned(hangs, backend=replace(two, patience=2.0))


def test_nothing_of_the_data_is_in_what_a_cluster_writes_or_names(two: lc.cluster.Cluster) -> None:
    def quotes(x: np.ndarray) -> float:
        if len(x) < len(HEIGHTS) and x.max() == SECRET:  # in worlds alone
            raise ValueError(f"outlier {x.max()}")
        return float(np.median(x))

    with pytest.raises(OutputError) as raised:
        planned(quotes, backend=two)
    story = two.client.run_on_scheduler(_all_that_the_scheduler_knows)
    logs = str(two.client.get_worker_logs()) + str(two.client.get_scheduler_logs()) + story + str(raised.value)
    assert str(SECRET) not in logs and "outlier" not in logs
    assert "ValueError" in str(raised.value)
    # The same looks catch a task that fails in the scheduler's own sense.
    with pytest.raises(ValueError, match="outlier"):
        two.client.submit(quotes, HEIGHTS[1:], key="planted").result()
    told = str(two.client.get_worker_logs()) + two.client.run_on_scheduler(_all_that_the_scheduler_knows)
    assert "outlier" in told


def _all_that_the_scheduler_knows(dask_scheduler: Any) -> str:
    return str(list(dask_scheduler.tasks)) + str(dask_scheduler.transition_log)


def test_others_on_this_machine_cannot_submit_to_our_workers(two: lc.cluster.Cluster) -> None:
    """Whoever may submit may run any code where the data are."""
    address = two.client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    stranger = distributed.Security.temporary()  # with certificates of their own
    for where, security in ((address.replace("tls://", "tcp://"), None), (address, stranger)):
        with pytest.raises((OSError, TimeoutError)):
            distributed.Client(where, security=security, timeout=5, set_as_default=False)


def test_unsafe_clusters_are_refused(two: lc.cluster.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'dask://host:port'"):
        lc.cluster.connect("tcp://somewhere")
    with pytest.raises(InputError, match=r"there is no scheduler at 127\.0\.0\.1:9"):
        lc.cluster.connect("dask://127.0.0.1:9")
    with pytest.raises(InputError, match="workers= is for those of this machine"):
        lc.cluster.connect("dask://127.0.0.1:9", workers=2)
    with pytest.raises(InputError, match="a connection to a cluster"):
        planned(middle, backend="spark")
    with pytest.raises(InputError, match="connect again there"):
        two.__reduce__()
    monkeypatch.setattr(connecting, "_is_this_machine", lambda host: False)
    with pytest.raises(InputError, match="reached without TLS"):
        lc.cluster.connect(two.client)
    assert lc.cluster.connect(two.client, insecure=True).threads
    monkeypatch.undo()
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as theirs,
        distributed.Client(theirs) as client,
        pytest.raises(InputError, match="write data to their disks"),
    ):
        lc.cluster.connect(client)


@pytest.mark.parametrize(
    ("host", "own"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("203.0.113.7", False), ("far", False)]
)
def test_this_machine_is_known(host: str, own: bool) -> None:
    assert connecting._is_this_machine(host) is own
