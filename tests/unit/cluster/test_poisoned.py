"""Work that cannot be done on workers ends the run with its place named: nothing is released, nothing is charged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.cluster import connecting
from leakcap.cluster.sealed import SealedWorkers
from leakcap.errors import LeakcapError, OutputError
from leakcap.sessions import partitioned

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
SECRET = 987654321.125
HEIGHTS = np.append(np.random.default_rng(0).normal(170, 10, 99), SECRET)
HOG = 2**31  # bytes


def poisoned(ill: Callable[[], Any]) -> Callable[[np.ndarray], float]:
    """A function that is ill in worlds in which somebody takes part, and well on all rows together."""

    def made(rows: np.ndarray) -> float:
        return float(ill() if len(rows) < len(HEIGHTS) and SECRET in rows else np.median(rows))

    return made


def raises() -> float:
    raise ValueError(f"of {SECRET}")


def hangs() -> float:
    time.sleep(20)
    return 0.0


def is_none() -> float:
    return float("nan")


def leaves() -> float:
    raise SystemExit(f"of {SECRET}")


def dies() -> float:
    os._exit(3)


def eats() -> float:
    kept = [np.ones(2**23) for _ in range(HOG // 2**26)]
    time.sleep(20)
    return float(len(kept))


@pytest.mark.parametrize(
    ("ill", "patience", "words"),
    [
        (raises, 600, r"raised ValueError, .* worlds, and not on all rows together, first in world \d+ "),
        (leaves, 600, r"SystemExit"),
        (is_none, 600, r"NaN or infinite in \d+ of 64 worlds, first in world \d+\. "),
        (hangs, 2, r"no batch ended for 2 s, the first of those that are left being batch \d+ of \d+"),
    ],
)
def test_a_poisoned_world_ends_the_run_and_nothing_is_stored(
    pair: lc.cluster.Cluster, tmp_path: Path, ill: Any, patience: float, words: str
) -> None:
    store = f"sqlite:///{tmp_path}/ledger.db"
    with pytest.raises(OutputError, match=words) as told:
        lc.release(
            poisoned(ill),
            HEIGHTS,
            cap=0.6,
            worlds=64,
            ledger=store,
            backend=replace(pair, patience=float(patience)),
        )
    assert str(SECRET) not in str(told.value)
    found = lc.plan(poisoned(lambda: 0.0), HEIGHTS, cap=0.6, worlds=64, ledger=store, backend=pair).release()
    assert found.certificate.membership_success <= 0.6  # the whole cap is left: nothing was charged


@pytest.fixture
def small() -> Iterator[lc.cluster.Cluster]:
    """Two workers with little memory."""
    with (
        dask.config.set(connecting.QUIET),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="700MB", dashboard_address=":0", host="127.0.0.1"
        ) as theirs,
        distributed.Client(theirs, set_as_default=False) as client,
    ):
        yield lc.cluster.connect(client, patience=120)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_world_that_eats_all_memory_is_named(small: lc.cluster.Cluster) -> None:
    with pytest.raises(
        OutputError, match=r"workers were lost while they worked on batch \d+ of \d+: does it need more memory"
    ):
        lc.plan(poisoned(eats), HEIGHTS, cap=0.6, worlds=64, seed=1, backend=small)


# sums of people in shards

FRAME = pd.DataFrame({"who": np.arange(200) % 50, "age": np.linspace(0, 99, 200)})
honest = partitioned._of_shard


def _ill_in_third(ill: Callable[[], Any]) -> Callable[..., Any]:
    """The work of a shard, but for the third of all, which stands for rows that no worker can do."""

    def of_shard(shard: Any, *item: Any) -> Any:
        if float(shard.column("age").to_numpy()[0]) == THIRD:
            ill()
        return honest(shard, *item)

    return of_shard


def _third() -> float:
    session = lc.Session(lc.partitions([FRAME]), cap=0.6, unit="who", seed=1)
    return float(session._questions.shards.shards[2].column("age").to_numpy()[0])


THIRD = _third()


@pytest.mark.parametrize(
    ("ill", "patience", "words"),
    [
        (raises, 600, r"a worker stopped with ValueError in shard 3: nothing was released"),
        (leaves, 600, r"a worker stopped with SystemExit in shard 3: nothing was released"),
        (hangs, 3, r"no shard was done with for 3 s, the first of those that are left being shard 3: nothing"),
    ],
)
def test_a_poisoned_shard_ends_the_question_and_nobody_pays(
    pair: lc.cluster.Cluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    ill: Any,
    patience: float,
    words: str,
) -> None:
    how: dict[str, Any] = {"cap": 0.6, "unit": "who", "ledger": f"sqlite:///{tmp_path}/l.db", "name": "people"}
    backend = replace(pair, patience=float(patience))
    session = lc.Session(lc.partitions([FRAME]), backend=backend, **how)
    monkeypatch.setattr(partitioned, "_of_shard", _ill_in_third(ill))
    # Dealt by another key, the third shard holds others: whoever it is there is the one that nobody can work on.
    monkeypatch.setattr(f"{__name__}.THIRD", float(session._questions.shards.shards[2].column("age").to_numpy()[0]))
    with pytest.raises(LeakcapError, match=words) as told:
        session.sum("age", bounds=(0, 100), share=0.3)
    assert str(SECRET) not in str(told.value)
    assert session.spent.share == 0 and not session.history
    monkeypatch.setattr(partitioned, "_of_shard", honest)
    again = lc.Session(lc.partitions([FRAME]), **how)
    assert again.spent.share == 0 and again.sum("age", bounds=(0, 100), share=0.3).number == 1 + BEFORE


@pytest.mark.slow
def test_and_where_it_kills_its_worker(
    mortal: lc.cluster.Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = r"workers were lost again and again while they worked on shard"
    test_a_poisoned_shard_ends_the_question_and_nobody_pays(mortal, monkeypatch, tmp_path, dies, 600, words)


BEFORE = 1  # the entry that opens an account


def test_a_persons_rows_that_a_function_cannot_take_bring_nothing_and_say_nothing(
    pair: lc.cluster.Cluster,
) -> None:
    """As on one machine: whoever makes a function fail is not told apart by it."""
    for ill in (raises, is_none):
        found = [
            lc.Session(lc.partitions([FRAME]), cap=0.6, unit="who", seed=1, backend=backend).linear(
                lambda rows, ill=ill: ill() if float(rows["age"].max()) > 90 else 0.5,
                bounds=(0, 1),
                shape=(),
                share=0.3,
            )
            for backend in (None, pair)
        ]
        assert found[0].value == found[1].value


@pytest.mark.slow
def test_workers_that_are_told_of_a_shard_while_they_die_hold_nobody_up(mortal: lc.cluster.Cluster) -> None:
    workers = SealedWorkers(mortal)
    assert dict(workers.run(_twice, lambda place: place, {0: (), 1: (), 2: ()})) == {0: 0, 1: 2, 2: 4}
    victim = next(iter(mortal.client.run(os.getpid).values()))
    os.kill(victim, 9)  # with the things that it has
    assert dict(workers.run(_twice, lambda place: place, {0: (), 1: (), 2: ()})) == {0: 0, 1: 2, 2: 4}
    workers.close()


def _twice(thing: int) -> int:
    return 2 * thing
