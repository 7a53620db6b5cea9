"""How work is dealt to workers and how data reach them: once, mapped, closed to others, and gone afterwards."""

from __future__ import annotations

import os
import pickle
import stat
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import leakcap as lc
from leakcap.simulate import Pool, run, run_worlds
from leakcap.simulate import shared_memory as parcels
from leakcap.simulate.executors import Processes, Serial, Threads, end_workers
from leakcap.simulate.shared_memory import Parcels, contents, pickled
from leakcap.worlds import Units, draw_worlds

rng = np.random.default_rng(5)
LARGE = rng.normal(size=(40_000, 4))  # 1.2 MiB: mapped
SMALL = rng.normal(size=(30, 2))


def simulated(fn: Any, *data: Any, m: int = 16, **options: Any) -> Any:
    pool = Pool(data)
    worlds = draw_worlds(pool.rows, m, np.random.default_rng(3))
    return run_worlds(fn, pool, Units.of(pool.rows, None), worlds, **options)


@pytest.fixture
def sent() -> Any:
    """Parcels on their way, as a worker opens them."""
    some = Parcels()
    yield lambda thing: pickle.loads(pickle.dumps(some.of(thing)))
    some.remove()
    parcels.drop_stale()


# Parcels


KINDS: dict[str, Any] = {
    "array": LARGE,
    "columns together": np.asfortranarray(LARGE),
    "some columns": LARGE[:, ::2],
    "frame": pd.DataFrame(LARGE, columns=list("abcd")).assign(town=["here", "there"] * 20_000, n=range(40_000)),
    "series": pd.Series(LARGE[:, 0], name="a"),
    "csr": sp.csr_array(LARGE * (LARGE > -2)),
    "list": [("a", i) for i in range(100)],
    "texts": np.array(["a", "bc"] * 100_000),
    "objects": np.array([{"a": 1}, None], dtype=object),
    "several": (LARGE, LARGE[:, 0].copy(), "x"),
    "empty": np.empty((0, 3)),
}


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(map(equal, one, other))
    if isinstance(one, (pd.DataFrame, pd.Series)):
        return one.equals(other)
    if sp.issparse(one):
        return (one != other).nnz == 0
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize("name", KINDS)
def test_whatever_travels_arrives_as_it_was(name: str, sent: Any) -> None:
    found = sent(KINDS[name])
    assert type(found) is type(KINDS[name])
    assert equal(KINDS[name], found)


def test_large_arrays_are_mapped_wherever_they_are_and_small_ones_are_ones_own(sent: Any) -> None:
    frame, matrix, table, small = sent((KINDS["frame"], KINDS["csr"], LARGE, SMALL))
    for mapped in (frame[list("abcd")].to_numpy(copy=False), matrix.data, table):
        assert not mapped.flags.writeable, "nobody can change what others read"
    assert small.flags.writeable


def test_a_parcel_is_opened_once_and_forgotten_when_its_file_is_gone() -> None:
    some = Parcels()
    parcel = some.of(LARGE)
    assert some.of(LARGE) is parcel
    assert contents(parcel.path) is contents(parcel.path)
    some.remove()
    parcels.drop_stale()
    assert parcel.path not in parcels._opened


def test_a_message_holds_no_data() -> None:
    some = Parcels()
    try:
        assert len(pickled((some.of(KINDS["frame"]), np.arange(20)))) < 1000
    finally:
        some.remove()


def test_parcels_are_their_owners_alone_and_lie_where_there_is_room(monkeypatch: Any, tmp_path: Path) -> None:
    some = Parcels()
    place = Path(some.of(LARGE).path)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    monkeypatch.setattr(parcels, "SHARED", str(tmp_path / "none"))
    elsewhere = Path(some.of(SMALL).path)
    assert elsewhere.parent != place.parent
    assert stat.S_IMODE(elsewhere.parent.stat().st_mode) == 0o700
    some.remove()
    assert not place.exists() and not elsewhere.exists()


def test_what_cannot_be_sent_leaves_no_file() -> None:
    some = Parcels()
    folder = Path(some.of(1).path).parent
    before = set(folder.iterdir())
    with pytest.raises((TypeError, pickle.PicklingError)):
        some.of((LARGE, threading.Lock()))
    assert set(folder.iterdir()) == before
    some.remove()


# Worker processes


class Counted(list[Any]):
    """Records that write down the process that unpacks them."""

    def __reduce__(self) -> Any:
        return counted, (os.environ["WORKERS_LOG"], list(self))


def counted(log: str, records: list[Any]) -> list[Any]:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{os.getpid()}\n".encode())
    os.close(handle)
    return records


def test_data_travel_once_to_each_worker_and_leave_nothing_behind(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("WORKERS_LOG", str(tmp_path / "log"))
    records = Counted([float(i) for i in range(200)])
    found = simulated(np.mean, records, m=64, backend="processes", workers=2)
    assert found.table.tobytes() == simulated(np.mean, list(records), m=64).table.tobytes()
    opened = (tmp_path / "log").read_text().split()
    assert 1 <= len(set(opened)) <= 2
    assert len(opened) == len(set(opened)), "64 worlds in many tasks, and each worker has read the data once"
    assert not any(list(Path(folder).iterdir()) for folder in folders())


def folders() -> list[str]:
    return [parcels._closed_folder(place) for place in (parcels.SHARED, tempfile.gettempdir())]


def who(x: np.ndarray) -> float:
    time.sleep(0.02)
    return float(os.getpid())


def test_the_caller_works_too_unless_processes_are_asked_for(monkeypatch: Any) -> None:
    monkeypatch.setattr(run, "SHORT", -1.0)
    end_workers()
    alone = set(simulated(who, SMALL, m=256, workers=2).table.ravel())
    assert os.getpid() in alone
    assert len(alone) == 2, "one more process, not two"
    others = set(simulated(who, SMALL, m=64, backend="processes", workers=2).table.ravel())
    assert os.getpid() not in others
    assert 1 <= len(others) <= 2


def test_caller_and_workers_give_what_the_serial_run_gives(monkeypatch: Any) -> None:
    monkeypatch.setattr(run, "SHORT", -1.0)
    data = KINDS["frame"].head(500)

    def fn(t: pd.DataFrame) -> Any:
        time.sleep(0.005)
        return t.groupby("town")[["a", "b"]].mean()

    serial = simulated(fn, data, m=128)
    shared = simulated(fn, data, m=128, workers=2)
    assert shared.table.tobytes() == serial.table.tobytes()
    assert shared.whole_pool.tobytes() == serial.whole_pool.tobytes()


def test_after_a_worker_has_died_the_next_run_has_others() -> None:
    me = os.getpid()

    def dies(x: np.ndarray) -> float:
        if os.getpid() != me:
            os._exit(3)
        return 1.0

    with pytest.raises(lc.OutputError, match="workers stopped"):
        simulated(dies, SMALL, backend="processes", workers=2)
    assert simulated(lambda x: x.mean(), SMALL, backend="processes", workers=2).table.shape == (16, 1)


@pytest.mark.parametrize("workers", [Serial(True), Threads(3), Processes(2, takes_part=True)])
def test_every_item_is_done_once(workers: Any) -> None:
    items = list(range(50))
    found = dict(workers.run(divmod, (1000,), [i + 1 for i in items]))
    workers.close()
    assert found == {i: divmod(1000, i + 1) for i in items}
    assert list(workers.run(divmod, (1000,), [])) == []


def test_a_failure_stops_the_others() -> None:
    done: list[int] = []

    def fails(item: int) -> int:
        if item == 3:
            raise lc.OutputError("here")
        time.sleep(0.01)
        done.append(item)
        return item

    with pytest.raises(lc.OutputError, match="here"):
        list(Threads(2).run(fails, (), list(range(200))))
    assert len(done) < 100


# Tasks and rows


@pytest.mark.parametrize("seconds", [1e-6, 0.003, 0.05, 10.0])
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_tasks_are_short_and_get_smaller_so_that_workers_end_together(seconds: float, workers: int) -> None:
    todo = np.arange(3, 1003)
    chunks = run._chunks(todo, seconds, workers)
    assert np.array_equal(np.concatenate(chunks), todo)
    sizes = [len(chunk) for chunk in chunks]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert max(sizes) * seconds <= max(run.CHUNK, seconds)
    for i in range(len(sizes)):
        assert sizes[i] <= max(1, sum(sizes[i:]) / (3 * workers))
    assert run._chunks(todo[:0], seconds, workers) == []


def test_rows_keep_the_layout_of_the_pool() -> None:
    some = np.array([0, 3, 4, 29])
    for table in (SMALL, np.asfortranarray(SMALL), SMALL[:, ::-1], SMALL[::1], SMALL.T.copy().T):
        (taken,) = Pool([table]).take(some)
        assert np.array_equal(taken, table[some])
        assert taken.flags.f_contiguous == (table.flags.f_contiguous and not table.flags.c_contiguous)
        taken[:] = 0
        assert table.any()
