"""Sessions over workers of a cluster: the same answers, and nothing but ciphertext where others may look."""

from __future__ import annotations

import gc
import logging
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.cluster.sealed import SealedWorkers, _answered
from leakcap.cluster.tasks import ClusterWorkers
from leakcap.cluster.telling import _forgotten, _kept
from leakcap.cluster.travel import PIECE, closed, opened
from leakcap.custody.sealing import Seal
from leakcap.errors import InputError, OutputError

pytest.importorskip("distributed")
BOUNDS = ([0, 0], [100, 500])
TELLING = "a very telling cell"
BOTH = ["age", "pay"]


@pytest.fixture
def two(pair: lc.cluster.Cluster) -> lc.cluster.Cluster:
    return pair


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, 60, 300), "age": rng.normal(40, 10, 300)})
    return frame.assign(pay=rng.exponential(100, 300), note=TELLING)


def asked(session: lc.Session) -> list[list[float]]:
    answers = [
        session.mean(BOTH, bounds=BOUNDS, share=0.3),
        session.covariance(BOTH, bounds=BOUNDS, share=0.6),
        session.count(where=f"note = '{TELLING}'", share=0.8),
    ]
    answers += [session.sum("pay", bounds=(0, 500), share=0.9 + 0.01 * again) for again in range(3)]
    return [np.asarray(one.value, dtype=float).ravel().tolist() for one in answers]


def on_workers(two: lc.cluster.Cluster, parts: int, **how: Any) -> lc.Session:
    frame = people()
    order = np.random.default_rng(parts).permutation(len(frame))
    source = lc.partitions([frame.iloc[some] for some in np.array_split(order, parts)])
    return lc.Session(source, cap=0.6, unit="who", backend=two, **how)


@pytest.mark.parametrize("parts", [1, 9])
def test_workers_give_the_answers_and_charges_of_one_machine(two: lc.cluster.Cluster, parts: int) -> None:
    one = lc.Session(people(), cap=0.6, unit="who", seed=1)
    session = on_workers(two, parts, seed=1)
    assert asked(session) == asked(one)
    assert session.spent == one.spent and str(session.certificate) == str(one.certificate)


def _seen(dask_worker: Any) -> bytes:
    """What a worker holds for Dask: tasks, their arguments, results, and its logs."""
    state = dask_worker.state
    held = [dict(dask_worker.data), [repr(task) for task in state.tasks.values()], list(map(repr, state.log))]
    specs = [getattr(task, "run_spec", None) for task in state.tasks.values()]
    return pickle.dumps([held, list(map(repr, specs)), list(dask_worker.get_logs())])


def _of_scheduler(dask_scheduler: Any) -> bytes:
    tasks = dask_scheduler.tasks.values()
    shown = [(task.key, repr(task), repr(getattr(task, "run_spec", None)), repr(task.metadata)) for task in tasks]
    specs = [pickle.dumps(getattr(task, "run_spec", None)) for task in tasks]
    return pickle.dumps([shown, specs, list(map(repr, dask_scheduler.transition_log)), dask_scheduler.get_logs()])


def shown_of(two: lc.cluster.Cluster) -> bytes:
    client = two.client
    return b"".join([client.run_on_scheduler(_of_scheduler), *client.run(_seen).values()])


def test_scheduler_and_workers_show_neither_rows_nor_bits_nor_the_key(two: lc.cluster.Cluster) -> None:
    """Looked at while the session is open, with its rows on the workers."""
    session = on_workers(two, 3, seed=1)
    asked(session)
    workers = session._questions.workers
    shown = shown_of(two)
    shards = session._questions.shards
    secrets = [TELLING.encode(), bytes(workers.key.key), workers.key.key.hex().encode(), b"telling"]
    secrets += [np.packbits(shards.coins).tobytes(), shards.coins.tobytes()]
    secrets += [people()["pay"].to_numpy()[row : row + 1].tobytes() for row in range(20)]
    assert len(shown) > 20_000 and not any(secret in shown for secret in secrets)


def test_what_would_show_a_row_is_seen_by_that_look(two: lc.cluster.Cluster) -> None:
    planted = two.client.scatter({"leakcap-planted": TELLING.encode()})
    assert TELLING.encode() in shown_of(two)
    del planted


def test_names_of_tasks_and_sizes_of_what_travels_are_the_same_whichever_bits(
    two: lc.cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything but ciphertext and fresh names: how many tasks, for whom, and how many bytes."""
    seen: list[list[tuple[int, ...]]] = []
    submit = type(two.client).submit

    def watched(self: Any, function: Any, *given: Any, **how: Any) -> Any:
        seen[-1].append((len(how["key"]), *sizes(given)))
        return submit(self, function, *given, **how)

    monkeypatch.setattr(type(two.client), "submit", watched)
    for flipped in (False, True):
        session = on_workers(two, 2, seed=1)
        if flipped:
            np.logical_not(session._questions.shards.coins, out=session._questions.shards.coins)
        seen.append([])
        session.mean(BOTH, bounds=BOUNDS)
    assert len(seen[0]) > 20 and seen[0] == seen[1]


def sizes(given: Any) -> list[int]:
    """Of all bytes and texts, however deep they lie."""
    if isinstance(given, (bytes, str)):
        return [len(given)]
    return [size for one in given for size in sizes(one)] if isinstance(given, (list, tuple)) else []


def test_workers_forget_when_a_session_ends(two: lc.cluster.Cluster) -> None:
    session = on_workers(two, 2, seed=1)
    session.count()
    token = session._questions.workers.key.token
    assert all(two.client.run(_kept_of, token).values())
    del session
    gc.collect()
    assert not any(two.client.run(_kept_of, token).values())


def _kept_of(token: str) -> int:
    from leakcap.cluster import telling, travel

    return (token in telling._keys) + sum(known == token for known, _ in travel._open)


def test_a_worker_that_was_told_nothing_is_told_and_asked_again(two: lc.cluster.Cluster) -> None:
    """Such as one that has started again at its address."""
    two.client.run(_waits, 0.3)
    shards, tasks = SealedWorkers(two), ClusterWorkers(two)
    for _ in range(2):
        assert dict(shards.run(_added, lambda place: place, {0: (5,), 1: (1,)})) == {0: 5, 1: 2}
        assert dict(tasks.run(_added, (2,), [1, 5, 3])) == {0: 3, 1: 5, 2: 5}
        for one in (shards, tasks):
            one.key.call(list(two.client.nthreads()), _forgotten, one.key.token)
    shards.close()
    tasks.close()
    two.client.run(_waits, 5.0)


def _waits(seconds: float) -> None:
    from leakcap.cluster import telling

    telling.WAITING = seconds


def test_failures_are_told_without_their_text(two: lc.cluster.Cluster) -> None:
    workers = SealedWorkers(two)
    with pytest.raises(OutputError, match="ZeroDivisionError") as told:
        dict(workers.run(_fails, lambda place: place, {0: (TELLING,)}))
    assert TELLING not in str(told.value)
    workers.close()
    assert TELLING.encode() not in shown_of(two)


@pytest.mark.parametrize(("sent_as", "right"), [("second", True), ("first", False)])
def test_an_old_question_is_not_answered_again_and_an_old_answer_is_of_no_use(sent_as: str, right: bool) -> None:
    key = bytes(range(32))
    seal = Seal(key)
    _kept("some", key)
    try:
        question = closed(seal, (_added, (1,)), f"asked {sent_as}")
        told = _answered("some", "second", 0, question, closed(seal, 1, "thing 0"))
    finally:
        _forgotten("some")
    with pytest.raises(OutputError, match="was changed"):
        opened(seal, told, "answer first")
    answered, answer = opened(seal, told, "answer second")
    assert answered is right
    assert answer == 2 if right else isinstance(answer, OutputError)


@pytest.mark.slow
def test_a_lost_worker_changes_no_answer(mortal: lc.cluster.Cluster) -> None:
    one = lc.Session(people(), cap=0.6, unit="who", seed=1)
    session = on_workers(mortal, 3, seed=1)
    first = session.mean(BOTH, bounds=BOUNDS, share=0.3).value
    victim = next(iter(mortal.client.run(os.getpid).values()))
    os.kill(victim, 9)
    second = session.sum("pay", bounds=(0, 500), share=0.2).value
    assert np.array_equal(first, one.mean(BOTH, bounds=BOUNDS, share=0.3).value)
    assert second == one.sum("pay", bounds=(0, 500), share=0.2).value


def test_keys_in_the_memory_of_workers_are_looked_for(
    two: lc.cluster.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """What is found is told, not promised: Python does not say where copies of bytes have been."""
    workers = SealedWorkers(two)
    key = bytes(workers.key.key)
    dict(workers.run(_added, lambda place: place, {0: (1,)}))
    told = copies(two, key)
    assert max(told) > 0, "the search finds a key that is there"
    workers.close()
    left = copies(two, key)
    caplog.set_level(logging.INFO)
    logging.getLogger(__name__).info("copies of a key in workers: %s while it is used, %s afterwards", told, left)
    assert sum(left) < sum(told), "what is kept on purpose is let go of"


def copies(two: lc.cluster.Cluster, wanted: bytes) -> list[int]:
    found = []
    for process in two.client.run(os.getpid).values():
        count = 0
        with Path(f"/proc/{process}/mem").open("rb", 0) as memory:
            for line in Path(f"/proc/{process}/maps").read_text().splitlines():
                where, rights = line.split()[:2]
                first, end = (int(one, 16) for one in where.split("-"))
                if rights.startswith("rw") and end - first < 2**30:
                    try:
                        memory.seek(first)
                        count += memory.read(end - first).count(wanted)
                    except (OSError, ValueError, OverflowError):
                        continue
        found.append(count)
    return found


def _added(thing: int, more: int) -> int:
    return thing + more if more < 5 else more


def _fails(thing: int, text: str) -> int:
    return thing // len(text[:0])


def test_a_backend_is_for_partitions() -> None:
    with pytest.raises(InputError, match=r"lc\.partitions"):
        lc.Session(people(), cap=0.6, unit="who", backend="dask")
    with pytest.raises(InputError, match="backend must be"):
        lc.Session(lc.partitions([people()]), cap=0.6, unit="who", backend="spark")
    _kept("some", bytes(32))
    _forgotten("some")


def test_what_is_longer_than_a_piece_arrives_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakcap.cluster.travel.PIECE", 1000)
    assert PIECE < 2**31  # of which the cipher takes no more
    seal, table = Seal(bytes(32)), np.arange(1000.0)
    for apart in (True, False):
        sealed = closed(seal, ["a", table], "some", apart=apart)
        text, arrived = opened(seal, sealed, "some")
        assert len(sealed) > 8 and text == "a" and np.array_equal(arrived, table)
        assert arrived.flags.writeable is not apart
        swapped = [*sealed[:3], sealed[4], sealed[3], *sealed[5:]]
        for wrong in (sealed[:-1], [*sealed, sealed[-1]], swapped, sealed[1:], [*sealed[:-1], sealed[-1][:-1]]):
            with pytest.raises(OutputError, match="was changed"):
                opened(seal, wrong, "some")
