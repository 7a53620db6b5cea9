"""Noise that can be foreseen is no noise: in every way of release it follows from the operating system's chance.

Whatever is prepared is prepared with the same chance each time: secret coins, worlds and keys are the same. Chance is
then another, and so must be what is released. Noise from a generator with a seed would be the same.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.noise import Seeded
from leakcap.planning.released import forget_released
from leakcap.sessions.terms import Terms
from tests.sql.hospital import registered
from tests.unit.obfuscation.pools import FEW, pool

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame({"age": RNG.uniform(18, 90, 200), "pay": RNG.uniform(0, 100, 200)})
LABELS, TRUE = RNG.normal(size=(400, 3)), RNG.integers(0, 3, 400)
ONE = LogisticRegression()
BOUNDS: dict[str, Any] = {"bounds": ([0, 0], [100, 100])}


@contextmanager
def chance(number: int) -> Iterator[None]:
    """The operating system's is that of a stream."""
    stream = np.random.default_rng(number)
    kept = os.urandom, random._urandom  # type: ignore[attr-defined]
    os.urandom = random._urandom = stream.bytes  # type: ignore[attr-defined]
    try:
        yield
    finally:
        os.urandom, random._urandom = kept  # type: ignore[attr-defined]


class Way(NamedTuple):
    prepared: Callable[[], Any]
    released: Callable[[Any], Any]


def of_session(**how: Any) -> Callable[[], lc.Session]:
    return lambda: lc.Session(**{"data": PEOPLE, "cap": 0.6, **how})


def parts() -> lc.Partitions:
    return lc.partitions([PEOPLE[:90], PEOPLE[90:]])


def means(session: lc.Session) -> Any:
    return session.mean(["age", "pay"], share=0.1, **BOUNDS).value


def typical(session: lc.Session) -> Any:
    """Means, as a list of worlds answers them: by no bounds."""
    return session.mean(["age", "pay"], share=0.1).value


def in_sql(session: lc.Session) -> Any:
    return session.sql("select sex, avg(age), count(*) from people group by sex", share=0.2).frame.iloc[:, -1]


def typical_ages(rows: Any) -> Any:
    return np.median(rows, axis=0)


WAYS: dict[str, Way] = {
    "plan": Way(lambda: lc.plan(typical_ages, PEOPLE.to_numpy(), cap=0.6, worlds=64), lambda p: p.release().value),
    "bits": Way(of_session(), means),
    "bits, an analyst's": Way(of_session(analyst="ann", rows_per_unit=1), means),
    "bits, who cannot pay goes": Way(of_session(retire=True), means),
    "worlds, for every course of answers": Way(of_session(design="worlds", worlds=64, always=True), typical),
    "pool": Way(of_session(cap=lc.pool_membership(0.6)), means),
    "worlds": Way(of_session(design="worlds", worlds=64), typical),
    "partitions": Way(lambda: lc.Session(parts(), cap=0.6), means),
    "partitions, pool": Way(lambda: lc.Session(parts(), cap=lc.pool_membership(0.6)), means),
    "partitions, worlds": Way(
        lambda: lc.Session(parts(), cap=0.6, design="worlds", worlds=64),
        typical,
    ),
    "SQL": Way(lambda: lc.Session(registered(keys={"people.sex": ["f", "m"]}), cap=0.6), in_sql),
    "labels, one by one": Way(lambda: lc.labels.KRR(1.0, n_classes=3), lambda m: m.privatize(TRUE)),
    "labels, sums": Way(lambda: lc.labels.Ridge(epsilon=1.0, n_classes=3), lambda m: m.fit(LABELS, TRUE).coef_),
    "labels, votes": Way(
        lambda: lc.labels.PATE(ONE, ONE, epsilon=6.0, n_teachers=50, n_classes=3, random_state=0),
        lambda m: m.fit(LABELS, TRUE).predict_proba(LABELS),
    ),
    "encoded": Way(lambda: lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.1), lambda e: e.encode(*pool())[0]),
    "planted labels": Way(lambda: TRUE, lambda y: lc.audit.plant(y, count=100)[0]),
}


def released(way: Way, number: int) -> bytes:
    forget_released()
    with chance(1):
        prepared = way.prepared()
    with chance(number):
        return np.asarray(way.released(prepared)).tobytes()


@pytest.mark.parametrize("name", WAYS)
def test_other_chance_is_another_release(name: str) -> None:
    released(WAYS[name], 2)  # what is imported here for the first time draws too
    one, again, other = (released(WAYS[name], number) for number in (2, 2, 3))
    assert one == again, "else a difference would say nothing of chance"
    assert one != other


@pytest.mark.parametrize("name", ["bits", "bits, an analyst's", "pool", "worlds", "partitions", "SQL"])
def test_noise_from_a_seed_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Terms, "randomness", property(lambda self: Seeded(0)))
    assert released(WAYS[name], 2) == released(WAYS[name], 3)
