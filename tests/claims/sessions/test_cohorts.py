"""SQL on a list of worlds, with and without cohorts: nobody beats the cap, and what mates lose is said."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.caps import as_caps
from leakcap.certificates.session import SessionCertificate
from leakcap.custody.ledger.accounts import Secret
from leakcap.errors import InputError
from leakcap.sessions.certifying import certificate_of_worlds
from leakcap.sessions.cohorts import Cohorts
from leakcap.sessions.listed_worlds.cells import cells_of
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from leakcap.sql.in_worlds import InWorlds, in_worlds
from leakcap.worlds import Worlds
from tests.claims.sessions.play import CAP, View, engine_of, leaves, pool, success

PEOPLE, COHORTS, WORLDS = 10, 4, 16
ASKED = "select town, count(*), sum(pay), max(pay), count(distinct pay) from people group by town"


def tiny() -> lc.sql.Catalog:
    """Ten people, one of whom earns most."""
    pay = [3, 3, 4, 5, 5, 6, 7, 8, 8, 100]
    frame = pd.DataFrame({"id": np.arange(PEOPLE) + 70, "town": ["A", "B"] * 5, "pay": pay})
    keys, bounds = {"town": ["A", "B"]}, {"pay": (0, 100)}
    return lc.sql.register({"people": frame}, unit="id", bounds=bounds, keys=keys, rows_per_unit=1)


def known(cohort_of: Any = None) -> InWorlds:
    catalog = tiny()
    release = compiled(ASKED, catalog, worlds=True).releases[0]
    return in_worlds(release, catalog, LocalEngine(catalog.path), {}, cohort_of)


def asking(table: np.ndarray, noise: float) -> Any:
    """Asks for one number after the other, each with more noise as often as it is refused; sharp ones first."""
    numbers = table.reshape(len(table), -1)
    numbers = numbers[:, np.ptp(numbers, axis=0) > 0]

    def analyst(view: View) -> Any:
        asked = numbers[:, (3 + view.step) % numbers.shape[1]]
        return asked, noise * float(np.ptp(asked)) * 1.5**view.refusals

    return analyst


@cache
def cases() -> dict[str, tuple[Worlds, np.ndarray, np.ndarray]]:
    """Worlds of a session, which unit everybody is there, and the numbers in every world."""
    own, cohort_of = pool(WORLDS, PEOPLE), np.arange(PEOPLE) % COHORTS
    halves = pool(WORLDS, COHORTS, 2)
    return {
        "people": (own, np.arange(PEOPLE), known().table(own)),
        "cohorts": (halves, cohort_of, known(cohort_of).table(halves)),
    }


def best_about_anybody(engine: ListedWorlds, unit_of: np.ndarray, table: np.ndarray) -> float:
    """Success of the best guess about whomever the analysts know most about, when all is played out."""
    found = [
        success(leaves(engine, asking(table, noise), int(unit), 2))
        for noise in (0.3, 0.6)
        for unit in np.unique(unit_of)
    ]
    return max(found)


@pytest.mark.parametrize("name", ["people", "cohorts"])
def test_no_analyst_in_sql_beats_the_cap_about_anybody(name: str) -> None:
    worlds, unit_of, table = cases()[name]
    assert 0.55 < best_about_anybody(engine_of(worlds), unit_of, table) <= CAP


class _Planted:
    """An engine with a fault in its prices."""

    def __init__(self, honest: ListedWorlds) -> None:
        self.honest = honest

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)


class TakesOtherWorlds(_Planted):
    """BROKEN: prices the numbers of each world as if they were the next one's."""

    def price(self, state: Any, outputs: Any, noise: float) -> Any:
        turned = np.packbits(np.roll(self.honest.worlds.masks(), 1, axis=0), axis=1)
        return replace(self.honest, worlds=replace(self.honest.worlds, packed=turned)).price(state, outputs, noise)


class PricesMoreNoise(_Planted):
    """BROKEN: prices answers with twice the noise that they have."""

    def price(self, state: Any, outputs: Any, noise: float) -> Any:
        found = self.honest.price(state, outputs, 2 * noise)
        return None if found is None else replace(found, cells=cells_of(outputs, noise, self.honest.reach), lean=None)


def test_planted_engines_are_caught() -> None:
    few = [best_about_anybody(PricesMoreNoise(engine_of(worlds)), *rest) for worlds, *rest in cases().values()]  # type: ignore[arg-type]
    assert min(few) > CAP
    worlds, *rest = cases()["cohorts"]
    assert best_about_anybody(TakesOtherWorlds(engine_of(worlds)), *rest) > CAP  # type: ignore[arg-type]


def test_clocks_of_cohorts_are_clocks_of_people() -> None:
    """The same session with the cohorts as units, and with everybody as one."""
    halves, cohort_of, table = cases()["cohorts"]
    few, many = engine_of(halves), engine_of(halves.of_units(cohort_of))
    states, rng = [few.begin(), many.begin()], np.random.default_rng(0)
    for column in table.reshape(WORLDS, -1).T:
        if not np.ptp(column):
            continue
        priced = [
            one.price(state, column, 8.0 * np.ptp(column)) for one, state in zip((few, many), states, strict=True)
        ]
        assert priced[0] is not None and priced[1] is not None
        np.testing.assert_array_equal(priced[0].charges[:, cohort_of], priced[1].charges)
        cell = int(rng.integers(len(priced[0].cells.values)))
        states = [one.after(state, price, cell) for one, state, price in zip((few, many), states, priced, strict=True)]
        np.testing.assert_array_equal(states[0].clocks[:, cohort_of], states[1].clocks)


def dealt(people: int = 5_003, seed: int = 0, count: int = 1024) -> Cohorts:
    return Cohorts.of(np.arange(people) * 7, Secret(np.random.default_rng(seed).bytes(32)), count)


def test_cohorts_are_a_matter_of_the_name_and_the_secret() -> None:
    one = dealt()
    assert np.array_equal(one.of_unit, dealt().of_unit) and one.most == 5 and one.average == pytest.approx(5_003 / 1024)
    sizes = np.bincount(one.of_unit, minlength=1024)
    assert sizes.min() == 4 and sizes.max() == 5
    # Another account deals anew: pairs of mates meet again as often as chance has it, about 10,000 pairs of 1,024.
    other = dealt(seed=1).of_unit
    first, second = np.triu_indices(5_003, 1)
    mates = one.of_unit[first] == one.of_unit[second]
    again = (other[first] == other[second])[mates].sum()
    assert 0 < again < 35
    # Told in another order they have the same mates: it is names that decide, not places.
    order = np.random.default_rng(2).permutation(5_003)
    turned = Cohorts.of((np.arange(5_003) * 7)[order], Secret(np.random.default_rng(0).bytes(32)), 1024)
    assert np.array_equal(turned.of_unit, one.of_unit[order])


def spread(brought: np.ndarray, cohort_of: np.ndarray, count: int, seed: int) -> float:
    """Variance of doubled sums over random halves of the cohorts."""
    sums = np.bincount(cohort_of, brought, minlength=count)
    halves = pool(400, count, seed).masks()
    return float((2 * halves @ sums).var())


def test_noise_is_that_of_people_on_average() -> None:
    """Also where everybody brings about as much; cohorts by a plain hash, of unequal sizes, are caught at it."""
    rng = np.random.default_rng(3)
    brought = 10 + rng.normal(size=4_000)
    people = 4_000 * brought.var()
    found = [spread(brought, dealt(4_000, seed, 64).of_unit, 64, seed) for seed in range(12)]
    hashed = [spread(brought, rng.integers(0, 64, 4_000), 64, seed) for seed in range(12)]
    assert 0.7 < np.mean(found) / people < 1.8  # 4,000 is not quite a multiple of 64
    assert np.mean(hashed) / people > 20


def registered_crowd(**more: Any) -> lc.Session:
    frame = pd.DataFrame({"id": np.arange(2_100), "pay": np.arange(2_100) % 90})
    catalog = lc.sql.register({"people": frame}, unit="id", bounds={"pay": (0, 100)}, rows_per_unit=1)
    return lc.Session(catalog, **{"cap": 0.6, "design": "cohorts", "worlds": 32, "seed": 5, **more})


def test_mates_share_a_bit_and_the_certificate_says_so() -> None:
    session = registered_crowd()
    session.sql("select count(*), max(pay), avg(pay) from people", share=0.1)
    cohorts, worlds = session._desk.cohorts, session._desk.engine.worlds
    columns = worlds.masks()[:, cohorts.of_unit]
    a, b = np.flatnonzero(cohorts.of_unit == cohorts.of_unit[0])[:2]
    assert np.array_equal(columns[:, a], columns[:, b]) and (columns.sum(axis=0) == 16).all()
    cert = session.certificate
    assert (cert.design, cert.cohorts, cert.in_largest) == ("cohorts", 1024, 3)
    assert cert.in_cohort == pytest.approx(2_100 / 1024)
    assert cert.given(1) == 1.0 and not cert.whoever_is_known and cert.membership_success == 0.6
    words = " ".join(str(cert).split())
    for told in (
        "1,024 cohorts, with 2.051 people each on average and 3 at most",
        "learns of one of them whether they take part",
        "for these the promise ends",
        "which the custodian chose for speed",
        "(MIP) as its authors define it, over all halves, is not claimed",
    ):
        assert told in words
    assert {"cohorts", "clock", "cells", "designed-worlds"} <= set(cert.theorems)
    assert SessionCertificate.from_json(cert.to_json()) == cert
    assert "2.051 people each on average" in cert.to_html(allow_simulation=True)


def test_certificates_without_cohorts_are_as_they_were() -> None:
    told = {"worlds": 64, "square": 0.2, "answers": [], "always": False, "alone": True, "seeded": False}
    cert = certificate_of_worlds(as_caps(0.6), **told)  # type: ignore[arg-type]
    assert "cohort" not in cert.to_json() and "cohort" not in str(cert)
    text = cert.to_json().replace('"worlds"', '"cohorts"', 1)
    for wrong in (text, cert.to_json().replace('"design": "worlds"', '"design": "cohorts"')):
        with pytest.raises(InputError):
            SessionCertificate.from_json(wrong)


def test_accounts_remember_their_cohorts(tmp_path: Any, own_key: Any) -> None:
    opened = {"seed": None, "ledger": f"sqlite:///{tmp_path}/ledger.db", "name": "crowd"}
    first = registered_crowd(**opened)
    again = registered_crowd(**opened)
    assert np.array_equal(first._desk.cohorts.of_unit, again._desk.cohorts.of_unit)
    assert first._desk.secret == again._desk.secret
    with pytest.raises(InputError, match=r"1024 cohorts: open it with as many"):
        registered_crowd(**opened, cohorts=2048)
    with pytest.raises(InputError, match=r"halves of cohorts.*design='cohorts'"):
        registered_crowd(**opened, design="worlds")
    assert not np.array_equal(registered_crowd()._desk.cohorts.of_unit, first._desk.cohorts.of_unit)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"cohorts": 256}, "from 1,024 to 4,096"),
        ({"cohorts": 10_000}, "from 1,024 to 4,096"),
        ({"cohorts": 4096}, "more than there are people"),
        ({"design": "bits", "cohorts": 1024, "worlds": None}, "is for design='cohorts'"),
        ({"design": "worlds", "cohorts": 1024}, "is for design='cohorts'"),
        ({"cap": lc.pool_membership(0.6)}, "nothing about being in the pool"),
        ({"design": "halves"}, "must be one of"),
    ],
)
def test_cohorts_that_cannot_be_are_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(lc.LeakcapError, match=why):
        registered_crowd(**more)


def test_cohorts_answer_sql_of_registered_tables_alone() -> None:
    with pytest.raises(InputError, match=r"lc\.sql\.register"):
        lc.Session(np.zeros((3_000, 1)), cap=0.6, design="cohorts", seed=1)
    session = registered_crowd()
    for ask in (session.count, lambda: session.query(len), lambda: session.preview("count")):
        with pytest.raises(InputError, match=r"session\.sql"):
            ask()
    with pytest.raises(InputError, match="design='bits'"):
        session.fit(lc.estimators.Mean())
