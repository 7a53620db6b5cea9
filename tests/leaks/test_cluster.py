"""What a cluster keeps, shows and writes: neither key, bits nor rows, and the same whichever bits were secret.

The cluster here is one as others run it: with pages, with logs, and with workers that spill what they hold to their
disks at once. Everything is looked at while the session is open and its rows are on the workers.
"""

from __future__ import annotations

import base64
import logging
import pickle
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.cluster import telling
from leakcap.cluster.sealed import SealedWorkers
from leakcap.sessions import partitioned
from leakcap.sessions.listed_worlds.desk import WorldsDesk
from leakcap.sessions.session import desk_of
from tests.sql.hospital import registered, tables

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
pytest.importorskip("duckdb")

TELLING = "a very telling cell"
OPEN = {"distributed.worker.memory.target": 1e-9, "distributed.worker.memory.spill": 1e-9}
PAGES = (
    "info/main/workers.html",
    "info/main/logs.html",
    "info/worker/{worker}.html",
    "info/logs/{worker}.html",
    "info/call-stacks/{worker}.html",
    "info/task/{task}.html",
    "info/call-stack/{task}.html",
    "json/counts.json",
    "json/identity.json",
    "json/index.json",
    "individual-plots.json",
    "sitemap.json",
    "metrics",
    "status",
    "health",
)


@dataclass(frozen=True)
class Theirs:
    """A cluster of others, and the folder of its workers."""

    cluster: lc.cluster.Cluster
    folder: Path


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    folder = tmp_path_factory.mktemp("workers")
    with (
        dask.config.set(OPEN),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            local_directory=str(folder),
            memory_limit="2GB",
        ) as running,
        distributed.Client(running, set_as_default=False) as client,
    ):
        yield Theirs(lc.cluster.connect(client, insecure=True), folder)


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": [f"person {one:03}" for one in rng.integers(0, 60, 300)]})
    return frame.assign(age=rng.normal(40, 10, 300), pay=rng.exponential(100, 300), note=TELLING)


def over_partitions(backend: Any) -> lc.Session:
    return lc.Session(lc.partitions([people()]), cap=0.6, unit="who", seed=1, backend=backend)


def in_worlds(backend: Any) -> lc.Session:
    return lc.Session(
        lc.partitions([people()]), cap=0.9, unit="who", seed=1, design="worlds", worlds=64, backend=backend
    )


def in_sql(backend: Any) -> lc.Session:
    return lc.Session(replace(registered(), parts=2), cap=0.6, seed=1, backend=backend)


def asked(session: lc.Session) -> None:
    if isinstance(desk_of(session), WorldsDesk):
        session.mean(["age", "pay"], noise=300)
        session.count(where=f"note = '{TELLING}'", noise=100)
    elif session._catalog is None:
        session.mean(["age", "pay"], bounds=([0, 0], [100, 500]), share=0.3)
        session.count(where=f"note = '{TELLING}'", share=0.3)
    else:
        session.sql("select sex, count(*), sum(income) from people where sex = 'f' group by sex", share=0.3)


def bits_of(session: lc.Session) -> Any:
    """The coins that answers are made with: of a list of worlds, who takes part in the secret one."""
    desk = desk_of(session)
    return desk.engine.worlds.mask(desk.secret) if isinstance(desk, WorldsDesk) else desk.coins


def flip(session: lc.Session) -> None:
    """The secret is another."""
    desk = desk_of(session)
    if isinstance(desk, WorldsDesk):
        object.__setattr__(desk, "secret", (desk.secret + 32) % 64)  # of whom nobody took part before
    else:
        np.logical_not(desk.coins, out=desk.coins)


def secrets_of(session: lc.Session) -> list[bytes]:
    workers, coins = session._workers or session._questions.workers, bits_of(session)
    key = bytes(workers.key.key)
    found = [key, key.hex().encode(), base64.b64encode(key), np.packbits(coins).tobytes(), coins.tobytes()]
    if isinstance(desk_of(session), WorldsDesk):
        listed = session._questions._listed.of(desk_of(session).engine.worlds)
        found += [listed.own(one.people).worlds.packed.tobytes() for one in session._questions.shards]
    if session._catalog is None:
        frame = people()
        found += [TELLING.encode(), b"telling", *(one.encode() for one in frame["who"].unique())]
        numbers = frame["pay"].to_numpy()
    else:
        found += [b"o'east", "wëst".encode(), b"people where", b"income"]
        numbers = np.unique([2.5e6, *_incomes()])
    return found + [text for one in numbers for text in (np.float64(one).tobytes(), repr(float(one)).encode())]


def _incomes() -> list[float]:
    income = tables()["people"]["income"].to_numpy()
    return [float(one) for one in income if np.isfinite(one) and one % 1]


# everything that can be looked at


def looked_at(theirs: Theirs) -> dict[str, bytes]:
    client = theirs.cluster.client
    state = client.run_on_scheduler(_of_scheduler)
    port = client.run_on_scheduler(_port)
    workers = [worker.replace(":", "%3A").replace("/", "%2F") for worker in client.nthreads()]
    tasks = list(map(urllib.parse.quote, client.run_on_scheduler(_names)))
    pages = b""
    for page in PAGES:
        for worker in workers if "{worker}" in page else workers[:1]:
            for task in tasks if "{task}" in page else [""]:
                pages += _page(f"http://127.0.0.1:{port}/{page.format(worker=worker, task=task)}")
    for where in client.run(_port_of_worker).values():
        pages += b"".join(_page(f"http://127.0.0.1:{where}/{page}") for page in ("info/main.html", "metrics", "health"))
    files = {path.name: path.read_bytes() for path in sorted(theirs.folder.rglob("*")) if path.is_file()}
    return {
        "names": "\n".join(client.run_on_scheduler(_names)).encode(),
        "scheduler": state,
        "workers": b"".join(client.run(_of_worker).values()),
        "logs": repr(
            (client.get_scheduler_logs(), client.get_worker_logs(), client.run_on_scheduler(_events))
        ).encode(),
        "pages": pages,
        "spilled": b"".join(files.values()),
        "names of files": "\n".join(files).encode(),
    }


def _page(address: str) -> bytes:
    try:
        return bytes(urllib.request.urlopen(address, timeout=10).read())
    except urllib.error.HTTPError as error:
        return error.read()  # such as that there is no Bokeh to draw it with


def _events(dask_scheduler: Any) -> str:
    return repr(dask_scheduler.get_events())  # some hold what does not travel


def _port(dask_scheduler: Any) -> int:
    return int(dask_scheduler.http_server.port)


def _port_of_worker(dask_worker: Any) -> int:
    return int(dask_worker.http_server.port)


def _names(dask_scheduler: Any) -> list[str]:
    return sorted(map(str, dask_scheduler.tasks))


def _of_scheduler(dask_scheduler: Any) -> bytes:
    tasks = dask_scheduler.tasks.values()
    shown = [(task.key, repr(task), repr(getattr(task, "run_spec", None)), repr(task.metadata)) for task in tasks]
    specs = [pickle.dumps(getattr(task, "run_spec", None)) for task in tasks]
    kept = [shown, specs, list(map(repr, dask_scheduler.transition_log)), repr(dask_scheduler.extensions)]
    return pickle.dumps([*kept, repr(dask_scheduler.get_events()), repr(dask_scheduler.task_prefixes)])


def _of_worker(dask_worker: Any) -> bytes:
    state = dask_worker.state
    fast = getattr(dask_worker.data, "fast", dask_worker.data)
    held = [dict(fast), [repr(task) for task in state.tasks.values()], list(map(repr, state.log))]
    specs = [pickle.dumps(getattr(task, "run_spec", None)) for task in state.tasks.values()]
    return pickle.dumps([held, specs, list(dask_worker.get_logs())])


@pytest.mark.parametrize("made", [over_partitions, in_worlds, in_sql])
def test_neither_key_nor_bits_nor_rows_are_anywhere(theirs: Theirs, own_key: Path, made: Any) -> None:
    session = made(theirs.cluster)
    asked(session)
    seen = looked_at(theirs)
    assert all(len(found) > 20 for found in seen.values())
    assert min(len(seen[where]) for where in ("scheduler", "workers", "pages", "spilled")) > 4000
    telling = secrets_of(session)
    assert len(telling) > 40
    assert [where for where, found in seen.items() if any(one in found for one in telling)] == []


def test_a_plan_leaves_neither_key_nor_rows_nor_the_function_anywhere(theirs: Theirs) -> None:
    """Looked at amid its run, with the data on workers that spill all they hold; the answers of worlds as well."""
    frame, seen = people(), list[dict[str, bytes]]()
    rows = frame[["age", "pay"]].to_numpy()

    def told_by(state: Any) -> None:
        if state.stage == "worlds" and 0 < state.done < state.total and not seen:
            seen.append(looked_at(theirs))

    def slow(some: np.ndarray, text: str = TELLING) -> np.ndarray:
        logging.getLogger("distributed.worker").error("seen: %s", text)
        time.sleep(0.02)
        return np.median(some, axis=0)

    told, made = telling.ToldKey.tell, set[bytes]()

    def noted(self: Any) -> None:
        made.add(bytes(self.key))
        told(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telling.ToldKey, "tell", noted)
        plan = lc.plan(slow, rows, cap=0.7, worlds=128, seed=1, backend=theirs.cluster, progress=told_by)
    keys = [form for key in made for form in (key, key.hex().encode(), base64.b64encode(key))]
    numbers = np.concatenate([rows.ravel(), plan.outputs.ravel()])
    secret = [*keys, TELLING.encode(), b"telling", plan.worlds.packed.tobytes()]
    secret += [text for one in numbers for text in (one.tobytes(), repr(float(one)).encode())]
    assert keys and len(seen) == 1
    assert min(len(seen[0][where]) for where in ("scheduler", "workers", "pages", "spilled")) > 4000
    assert [where for where, found in seen[0].items() if any(one in found for one in secret)] == []


def test_rows_that_are_planted_are_seen_in_every_place(theirs: Theirs) -> None:
    """In what spills, in what is submitted, in a task's name, in a log: the same looks find each of them."""
    client = theirs.cluster.client
    kept = client.scatter({"leakcap-planted": TELLING.encode()})
    named = client.submit(_logs, TELLING, key=f"planted {TELLING}", pure=False)
    named.result()
    until = time.monotonic() + 20
    while time.monotonic() < until:  # writing takes its time
        seen = looked_at(theirs)
        if TELLING.encode() in seen["spilled"]:
            break
        time.sleep(0.2)
    found = {where for where, one in seen.items() if TELLING.encode() in one}
    assert {"names", "scheduler", "workers", "logs", "pages", "spilled"} <= found
    del kept, named


def _logs(text: str) -> int:
    logging.getLogger("distributed.worker").error("seen: %s", text)
    return len(text)


# the same whichever bits were secret


def told(theirs: Theirs) -> dict[str, Any]:
    """All that is neither ciphertext nor a fresh name, an address or a time: kinds, counts and sizes."""
    client = theirs.cluster.client
    tasks = client.run_on_scheduler(_sizes)
    story = client.run_on_scheduler(_story)
    return {
        "tasks": sorted((_plain(name), size) for name, size in tasks),
        "story": Counter((_plain(name), *states) for name, *states in story),
        "spilled": sorted(path.stat().st_size for path in theirs.folder.rglob("*") if path.is_file()),
        "logs": Counter(_plain(line) for _, line in client.get_scheduler_logs()),
    }


def _lengths(given: Any) -> list[int]:
    """Of all bytes and texts, however deep they lie."""
    if isinstance(given, (bytes, str)):
        return [len(given)]
    return [length for one in given for length in _lengths(one)] if isinstance(given, (list, tuple)) else []


def _plain(text: str) -> str:
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", str(text))


def _sizes(dask_scheduler: Any) -> list[tuple[str, int]]:
    return [(str(task.key), int(task.nbytes)) for task in dask_scheduler.tasks.values()]


def _story(dask_scheduler: Any) -> list[tuple[str, str, str]]:
    return [(str(one[0]), str(one[1]), str(one[2])) for one in dask_scheduler.transition_log]


def seen_of(theirs: Theirs, made: Any, flipped: bool, ill: Any = None) -> list[Any]:
    client = theirs.cluster.client
    session = made(theirs.cluster)
    if flipped:
        flip(session)
    sizes: list[Any] = []
    submit = type(client).submit

    def watched(self: Any, function: Any, *given: Any, **how: Any) -> Any:
        sizes.append((_plain(how["key"]), *_lengths(given)))
        return submit(self, function, *given, **how)

    before = Counter(told(theirs)["story"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(client), "submit", watched)
        if ill is not None:
            ill(patch)
        asked(session)
    after = told(theirs)
    (session._workers or session._questions.workers).close()
    time.sleep(0.5)  # until all is let go of
    return [sizes, Counter(after.pop("story")) - before, after["tasks"], after["spilled"]]


@pytest.mark.parametrize("made", [over_partitions, in_worlds, in_sql])
def test_names_counts_and_sizes_are_the_same_whichever_bits_were_secret(
    theirs: Theirs, own_key: Path, made: Any
) -> None:
    one, other = (seen_of(theirs, made, flipped) for flipped in (False, True))
    assert len(one[0]) >= 2 and one[0] == other[0]
    assert one[2] == other[2] and one[3] == other[3]


def test_sizes_that_hang_on_the_bits_are_seen(theirs: Theirs) -> None:
    """A planted fault: the coins travel as the list of those who take part."""

    def ill(patch: pytest.MonkeyPatch) -> None:
        worked = partitioned.OverShards._worked

        def of_members(self: Any, *given: Any, coins: Any, pays: Any) -> Any:
            def run(_: Any, things: Any, items: Any) -> Any:
                more = {place: (*item, np.flatnonzero(item[-2])) for place, item in items.items()}
                return SealedWorkers.run(self.workers, _without_more, things, more)

            patch.setattr(self.workers, "run", run)
            return worked(self, *given, coins=coins, pays=pays)

        patch.setattr(partitioned.OverShards, "_worked", of_members)

    one, other = (seen_of(theirs, over_partitions, flipped, ill) for flipped in (False, True))
    assert one[0] != other[0]


def _without_more(shard: Any, *item: Any) -> Any:
    return partitioned._of_shard(shard, *item[:-1])
