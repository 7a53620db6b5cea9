"""Worlds on workers of a cluster: the same answers, whoever is lost; nothing of the data in what a cluster writes."""

from __future__ import annotations

import multiprocessing
import os
import time
import urllib.error
import urllib.request
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

import leakcap as lc
from leakcap.audit.trials import knowledge, releases
from leakcap.cli import app
from leakcap.cli.workers import backend_of
from leakcap.cluster import connecting
from leakcap.cluster.tasks import ClusterWorkers
from leakcap.errors import InputError, OutputError
from leakcap.leakage import Sampled, lending, observe_units
from leakcap.leakage.confidence import upper
from leakcap.leakage.measures import thresholds
from leakcap.leakage.membership import UnitWagers
from leakcap.worlds import draw_worlds

auditing = import_module("leakcap.audit.run")  # the name is also a function's
distributed = pytest.importorskip("distributed", reason="clusters need Dask")
dask = pytest.importorskip("dask")

SECRET = 987654321.125  # of a row; nothing that a cluster writes may hold it
HEIGHTS = np.append(np.random.default_rng(0).normal(170, 10, 199), SECRET)


@pytest.fixture
def two(mortal: lc.cluster.Cluster) -> lc.cluster.Cluster:
    return mortal


def middle(x: np.ndarray) -> np.ndarray:
    return np.array([np.median(x), np.quantile(x, 0.25)])


def planned(fn: Any, worlds: int = 64, **how: Any) -> Any:
    return lc.plan(fn, HEIGHTS, cap=0.6, worlds=worlds, seed=1, **how)


def test_certificates_are_those_of_one_process(two: lc.cluster.Cluster) -> None:
    alone = planned(middle)
    for backend in (two, two.client):
        assert planned(middle, backend=backend).certificate.to_json() == alone.certificate.to_json()
    assert planned(middle, settings=lc.Settings(backend=two)).certificate.to_json() == alone.certificate.to_json()


def test_outputs_and_certificates_are_those_of_one_process_bit_for_bit(
    two: lc.cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worlds as tasks, and what is certified too: whoever does the work, nothing may differ."""
    alone = planned(middle)
    monkeypatch.setattr(lending, "LEAST_PRODUCTS", 2.0**29)  # a certifying pass takes part
    nothing_differs(alone, planned(middle, backend=two))
    again = planned(middle, backend="dask", workers=1)  # whose cluster is gone when it is asked again
    nothing_differs(alone, again)
    assert again.recap(0.7).certificate.to_json() == alone.recap(0.7).certificate.to_json()


@pytest.mark.slow
def test_the_same_with_four_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "LEAST_PRODUCTS", 2.0**29)
    nothing_differs(planned(middle), planned(middle, backend="dask", workers=4))


def nothing_differs(one: Any, other: Any) -> None:
    assert one.certificate.to_json() == other.certificate.to_json()
    assert np.array_equal(one.outputs, other.outputs)
    assert np.array_equal(one.exposure, other.exposure)


@pytest.mark.parametrize("rate", [1 / 2, 1 / 4])
def test_parts_of_the_units_are_looked_at_where_they_are(
    two: lc.cluster.Cluster, monkeypatch: pytest.MonkeyPatch, rate: float
) -> None:
    """Leakage as tasks: several tiles of units, as sums and by wagers, all of them and some; every figure the same."""
    rng = np.random.default_rng(2)
    worlds = draw_worlds(2500, 64, rng, rate=rate)
    source = Sampled(rng.normal(size=(worlds.m, 3)), 600, np.random.SeedSequence(4))
    cuts = thresholds(worlds.rate)
    some = np.flatnonzero(rng.random(2500) < 0.9)
    monkeypatch.setattr(lending, "LEAST_PRODUCTS", 0.0)
    for chosen in (None, some):
        here = observe_units(source, worlds, cuts, chosen=chosen)
        wagers = UnitWagers.placed(here, worlds.rate, 600, 20.0)
        betting = observe_units(source, worlds, cuts, chosen=chosen, wagers=wagers)
        with lending.lent(ClusterWorkers(two)):
            there = observe_units(source, worlds, cuts, chosen=chosen)
            betting_there = observe_units(source, worlds, cuts, chosen=chosen, wagers=wagers)
        for mine, other in ((here, there), (betting, betting_there)):
            for name in ("balanced", "sticks", "naming"):
                assert np.array_equal(upper(getattr(mine, name), 20.0), upper(getattr(other, name), 20.0))


def test_an_estimator_is_fitted_and_copied_with_a_connection(two: lc.cluster.Cluster) -> None:
    rows = np.random.default_rng(3).normal(size=(120, 2))
    kinds = [
        lc.estimators.Private(Ridge(), cap=0.7, worlds=32, random_state=0, options=options)
        for options in (None, {"backend": two})
    ]
    here, there = (clone(one).fit(rows, rows[:, 0]).certificate_.to_json() for one in kinds)
    assert here == there


def test_audits_find_the_same_there(two: lc.cluster.Cluster) -> None:
    audited = planned(middle, worlds=32)
    bench = auditing.Bench.of(audited, knowledge(audited), releases(audited, 400))
    asked = [*auditing.ATTACKS, own_attack]
    here, there = auditing.tried(bench, asked, 1e-6), auditing._tried_elsewhere(bench, asked, 1e-6, two)
    assert list(map(repr, here)) == list(map(repr, there))

    def trained(backend: Any) -> Any:
        return lc.audit.model(
            train=lambda part: part.mean(),
            score=lambda centre, part: -((part - centre) ** 2),
            data=HEIGHTS[:30],
            models=20,
            seed=0,
            backend=backend,
        )

    assert trained(two).findings == trained(None).findings


def own_attack(known: Any, learn: Any) -> Any:
    return lambda seen: np.tile(seen[:, :1], known.units)


def test_a_connection_that_has_ended_is_refused() -> None:
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=":0"
        ) as theirs,
        distributed.Client(theirs, set_as_default=False) as client,
    ):
        ended = lc.cluster.connect(client, insecure=True)
    with pytest.raises(InputError, match="the connection to the cluster has ended: connect again"):
        planned(middle, backend=ended)


def test_the_command_line_takes_a_cluster(tmp_path: Path) -> None:
    table = tmp_path / "heights.csv"
    table.write_text("height\n" + "\n".join(f"{height:.3f}" for height in HEIGHTS[:60]))
    asked = ["release", str(table), "--fn", "median", "--cap", "0.7", "--worlds", "32", "--design", "worlds"]
    with backend_of("serial", None, False) as here:
        assert here == "serial"
    with pytest.raises(InputError, match="--insecure is for clusters"), backend_of(None, None, True):
        pass
    found = CliRunner().invoke(
        app, [*asked, "--out", str(tmp_path / "out"), "--backend", "dask", "--workers", "1", "--alone"]
    )
    assert found.exit_code == 0, found.output
    wrong = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "no"), "--backend", "dask://127.0.0.1:9"])
    assert wrong.exit_code != 0 and "there is no scheduler at 127.0.0.1:9" in " ".join(wrong.output.split())


def test_given_inputs_run_there_too(two: lc.cluster.Cluster) -> None:
    inputs = list(np.random.default_rng(1).normal(size=(24, 5)))
    here, there = (
        lc.plan(middle, inputs=inputs, cap=lc.caps.identification(0.2), seed=1, backend=backend).certificate.to_json()
        for backend in (None, two)
    )
    assert here == there


def test_a_lost_workers_tasks_run_again_with_the_same_result_and_its_place_is_taken(
    two: lc.cluster.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one that writes nothing to its disk either; and it is waited for.

    Dask gives a lost worker up for good when its place is not taken in time; on a busy machine all of them.
    """
    mark, waited = tmp_path / "died", list[Any]()
    plain = distributed.LocalCluster._update_worker_status

    def noted(cluster: Any, op: Any, msg: Any) -> None:
        waited.append(dask.config.get("distributed.deploy.lost-worker-timeout"))
        plain(cluster, op, msg)

    def dies_once(x: np.ndarray) -> float:
        if multiprocessing.parent_process() is not None and not mark.exists():  # in a worker, once
            mark.write_text("")
            os._exit(1)
        return float(np.median(x))

    monkeypatch.setattr(distributed.LocalCluster, "_update_worker_status", noted)
    found = planned(dies_once, backend=two)
    assert mark.exists()
    assert found.certificate.to_json() == planned(lambda x: float(np.median(x))).certificate.to_json()
    deadline = time.monotonic() + 60
    while (not waited or two.threads < 2) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert set(waited) == {connecting.STARTING}
    assert two.threads == 2
    assert set(two.client.run(_spills).values()) == {False}


def _spills() -> bool:
    return any(dask.config.get(f"distributed.worker.memory.{name}", 0.6) is not False for name in ("target", "spill"))


def test_what_kills_every_worker_ends_the_run_and_names_its_batch(two: lc.cluster.Cluster) -> None:
    def deadly(x: np.ndarray) -> float:
        if len(x) == 100 and x.max() < SECRET:  # the half without the outlier
            os._exit(1)
        return float(np.median(x))

    two.client.run_on_scheduler(_gives_up_after, 1)  # of Dask's three: each costs the start of a worker
    with pytest.raises(OutputError, match=r"workers were lost while they worked on batch \d+ of \d+"):
        planned(deadly, backend=two)
    two.client.run_on_scheduler(_gives_up_after, 3)
    deadline = time.monotonic() + 60
    while two.threads < 2 and time.monotonic() < deadline:  # they are started again
        time.sleep(0.1)
    assert planned(middle, backend=two).certificate is not None


def _gives_up_after(deaths: int, dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = deaths


def test_progress_tells_the_pace_and_what_has_travelled(two: lc.cluster.Cluster) -> None:
    seen: list[Any] = []
    planned(middle, backend=two, progress=seen.append)
    worlds = [state for state in seen if state.stage == "worlds"]
    assert worlds[-1].done == worlds[-1].total and worlds[-1].moved > 2 * HEIGHTS.nbytes  # to both workers
    assert worlds[-1].pace.endswith(" MB moved") and " worlds/s, " in worlds[-1].pace
    here: list[Any] = []
    planned(middle, progress=here.append)
    assert {state.moved for state in here} == {0} and "moved" not in here[-1].pace


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
    planted = two.client.submit(quotes, HEIGHTS[1:], key="planted")
    with pytest.raises(ValueError, match="outlier"):
        planted.result()
    told = str(two.client.get_worker_logs()) + two.client.run_on_scheduler(_all_that_the_scheduler_knows)
    assert "outlier" in told


def _all_that_the_scheduler_knows(dask_scheduler: Any) -> str:
    failures = [(task.exception_text, task.traceback_text) for task in dask_scheduler.tasks.values()]
    return str(list(dask_scheduler.tasks)) + str(dask_scheduler.transition_log) + str(failures)


def test_others_on_this_machine_cannot_submit_to_our_workers(two: lc.cluster.Cluster) -> None:
    """Whoever may submit may run any code where the data are."""
    address = two.client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    stranger = distributed.Security.temporary()  # with certificates of their own
    for where, security in ((address.replace("tls://", "tcp://"), None), (address, stranger)):
        with pytest.raises((OSError, TimeoutError)):
            distributed.Client(where, security=security, timeout=5, set_as_default=False)


def test_our_workers_have_no_pages(two: lc.cluster.Cluster) -> None:
    """Dask's pages have no password; of the addresses that others on this machine can reach none shows anything."""
    places = {_page(two.client.run_on_scheduler(_port)), *map(_page, two.client.run(_worker_port).values())}
    assert len(places) == 3
    for place in places:
        for page in ("", "info/main/workers.html", "json/counts.json", "metrics", "health", "status", "proxy/1/1/x"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(place + page, timeout=5)


def _port(dask_scheduler: Any) -> int:
    return int(dask_scheduler.http_server.port)


def _worker_port(dask_worker: Any) -> int:
    return int(dask_worker.http_server.port)


def _page(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


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
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=":0"
        ) as theirs,
        distributed.Client(theirs, set_as_default=False) as client,
    ):
        here = lc.cluster.connect(client)
        monkeypatch.setattr(connecting, "_is_this_machine", lambda host: False)
        for made in (lc.cluster.connect, lc.cluster.Cluster):
            with pytest.raises(InputError, match=r"the scheduler at tcp://.* reached without TLS"):
                made(client)
        with pytest.raises(InputError, match="reached without TLS"):
            planned(middle, backend=client)
        with pytest.raises(InputError, match=r"a worker at tcp://.* reached without TLS"):
            planned(middle, backend=here)  # whose workers came from elsewhere, later
        assert planned(middle, backend=lc.cluster.connect(client, insecure=True)).certificate is not None
        assert lc.cluster.connect(two.client).threads  # with TLS
    with pytest.raises(InputError, match="has ended"):
        lc.cluster.connect(client)


@pytest.mark.parametrize(
    ("host", "own"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("203.0.113.7", False), ("far", False)]
)
def test_this_machine_is_known(host: str, own: bool) -> None:
    assert connecting._is_this_machine(host) is own
