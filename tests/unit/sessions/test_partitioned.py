"""Sessions about data in partitions: answers, charges and certificates are those of one machine, bit for bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import BudgetError, InputError, LeftOutWarning
from leakcap.sessions.listed_worlds.shard_sums import InShards


def refused(words: str) -> Any:
    return pytest.raises(InputError, match=re.escape(words))


def people(rows: int = 300, most: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, most, rows), "age": rng.normal(40, 10, rows)})
    frame["pay"], frame["ward"] = rng.exponential(100, rows), rng.choice(list("ABC"), rows)
    frame.loc[frame.index % 19 == 3, "age"] = np.nan
    return frame


def parted(frame: pd.DataFrame, parts: int, seed: int = 0) -> Any:
    order = np.random.default_rng(seed).permutation(len(frame))
    return lc.partitions([frame.iloc[some] for some in np.array_split(order, parts)])


BOUNDS = ([0, 0], [100, 500])


def asked(session: lc.Session) -> list[Any]:
    both = ["age", "pay"]
    answers = [
        session.count(where="ward = 'A' and age > 30"),
        session.mean(both, bounds=BOUNDS, share=0.1),
        session.sum("age", bounds=(0, 100), noise=20_000),
        session.histogram("age", bounds=(0, 100), bins=5, share=0.05),
        session.covariance(both, bounds=BOUNDS, share=0.1),
        session.count(by={"ward": ["A", "B", "C"]}, share=0.2),
        session.quantile("pay", 0.5, bounds=(0, 500), share=0.05),
        session.linear(len, bounds=(0, 9), shape=(), share=0.05),
    ]
    return answers + [session.mean("pay", bounds=(0, 500), share=0.9 + 0.01 * again) for again in range(8)]


def values(answers: list[Any]) -> list[list[float]]:
    return [np.asarray(one.value, dtype=float).ravel().tolist() for one in answers]


@pytest.mark.parametrize("cap", [0.6, "pool"])
def test_answers_charges_and_certificates_are_those_of_one_machine(cap: Any) -> None:
    """The last questions are more than some people can pay: they are left out."""
    cap = lc.pool_membership(0.6) if cap == "pool" else cap
    frame = people()
    how: dict[str, Any] = {
        "cap": cap,
        "unit": "who",
        "rows_per_unit": int(frame["who"].value_counts().max()),
        "seed": 1,
    }
    one = lc.Session(frame, **how)
    first = asked(one)
    for parts, seed in ((1, 0), (5, 1), (64, 2)):
        session = lc.Session(parted(frame, parts, seed), **how)
        again = asked(session)
        assert values(again) == values(first)
        assert [(a.question, a.share) for a in again] == [(a.question, a.share) for a in first]
        assert (session.spent, session.remaining) == (one.spent, one.remaining)
        assert str(session.certificate) == str(one.certificate)
        question = {"bounds": (0, 100), "share": 0.2}
        ours, theirs = session.preview("sum", "age", **question), one.preview("sum", "age", **question)
        assert (ours.share, ours.retired, ours.fits) == (theirs.share, theirs.retired, theirs.fits)
        assert cap != 0.6 or ours.retired


def test_who_cannot_pay_is_a_refusal_without_retirement() -> None:
    session = lc.Session(parted(people(), 3), cap=0.6, unit="who", seed=1, retire=False)
    with pytest.raises(BudgetError, match="cannot pay"):
        asked(session)


def test_an_account_goes_on_from_one_machine_to_partitions_and_back(tmp_path: Path) -> None:
    frame = people()
    how: dict[str, Any] = {"cap": 0.6, "unit": "who", "ledger": f"sqlite:///{tmp_path}/l.db", "name": "people"}
    answered = lc.Session(frame, **how).mean("pay", bounds=(0, 500), share=0.4)
    session = lc.Session(parted(frame, 4), **how)
    spent = session.spent.share
    assert spent > 0.01
    again = session.mean("pay", bounds=(0, 500), share=0.4)
    assert session.spent.share > 1.5 * spent and not again.again
    assert lc.Session(parted(frame, 9, seed=3), **how).mean("pay", bounds=(0, 500), share=0.4).value == again.value
    back = lc.Session(frame, **how)
    assert back.spent == session.spent and len(back.history) == 2 and back.history[0].numbers == (answered.value,)


def test_the_same_people_in_partitions_have_no_second_account(tmp_path: Path) -> None:
    how: dict[str, Any] = {"cap": 0.6, "unit": "who", "ledger": f"sqlite:///{tmp_path}/l.db"}
    frame = people(3000)
    lc.Session(frame, name="people", **how)
    with refused("are known to the ledger as 'people'"):
        lc.Session(parted(frame, 4), name="others", **how)


def test_what_is_no_sum_within_bounds_is_refused_with_what_to_ask() -> None:
    session = lc.Session(parted(people(), 2), cap=0.6, unit="who", seed=1)
    with refused("give bounds="):
        session.mean("pay")
    with refused("over partitions"):
        session.blocks(np.median, blocks=5, bounds=(0, 1))
    with refused("over partitions"):
        session.fit(lc.estimators.Mean(), bounds=(0, 1))
    with refused("asked in SQL"):
        lc.Session(parted(people(), 2), cap=0.6, unit="who", design="cohorts")
    worlds = lc.Session(parted(people(), 2), cap=0.6, unit="who", design="worlds", worlds=64, seed=1)
    with refused("over partitions ask count, sum, mean or covariance"):
        worlds.query(len)
    with refused("design='bits'"):
        worlds.count(by={"ward": ["A"]})
    with refused("nobody has rows"):
        worlds.mean("pay", where="pay < 0")
    with refused("name of a column"):
        lc.Session(parted(people(), 2), cap=0.6, unit=[1, 2])
    with refused("rows_per_unit="):
        lc.Session(parted(people(), 2), cap=lc.pool_membership(0.6), unit="who")


def of_worlds(session: lc.Session) -> list[Any]:
    both = ["age", "pay"]
    return [
        session.count(where="ward = 'A' and age > 30", noise=60),
        session.mean(both, noise=30),
        session.sum("age", bounds=(0, 45), noise=8_000),
        session.covariance("pay", where="pay > 10", noise=20_000),
        session.mean("pay", where="pay > 1e9 or age > 60", noise=400),
    ]


@pytest.mark.parametrize("texts", [True, False])
def test_worlds_over_partitions_are_those_of_one_table(texts: bool) -> None:
    frame = people(600, 120)
    if texts:
        frame["who"] = "person " + frame["who"].astype(str)
    how: dict[str, Any] = {"cap": 0.9, "unit": "who", "design": "worlds", "worlds": 128, "seed": 3}
    one = lc.Session(frame, **how)
    first = of_worlds(one)
    for parts, seed in ((1, 0), (5, 1), (64, 2)):
        session = lc.Session(parted(frame, parts, seed), **how)
        again = of_worlds(session)
        for ours, theirs in zip(values(again), values(first), strict=True):
            assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        assert [np.shape(a.value) for a in again] == [np.shape(a.value) for a in first]
        assert session.spent.share == pytest.approx(one.spent.share, rel=1e-6)
        assert str(session.certificate) == str(one.certificate)


def test_numbers_in_all_worlds_are_those_of_one_table() -> None:
    """To 1e-12, before any noise."""
    frame = people(900, 200)
    how: dict[str, Any] = {"cap": 0.6, "unit": "who", "design": "worlds", "worlds": 256, "seed": 3}
    one, other = lc.Session(frame, **how), lc.Session(parted(frame, 7), **how)
    worlds, theirs = one._desk.engine.worlds, other._desk.engine.worlds  # type: ignore[union-attr]
    assert (worlds.packed == theirs.packed).all()
    for ask in (("mean", ["age", "pay"]), ("sum", "pay"), ("covariance", ["age", "pay"]), ("covariance", "age")):
        asked = (getattr(session._questions, ask[0])(ask[1]) for session in (one, other))
        tables = [question.in_worlds(own).table for question, own in zip(asked, (worlds, theirs), strict=True)]
        assert np.allclose(*tables, rtol=1e-12, atol=0)
    with pytest.raises(AssertionError, match="one list of worlds"):  # of whom workers keep who takes part
        other._questions.mean("age").in_worlds(worlds)


def test_people_of_a_shard_are_found_in_every_world() -> None:
    frame = people(900, 200)
    session = lc.Session(parted(frame, 3), cap=0.6, unit="who", design="worlds", worlds=36, seed=3)
    worlds, shards = session._desk.engine.worlds, session._questions.shards  # type: ignore[union-attr]
    names = np.unique(frame["who"])
    for shard in shards:
        own = InShards.of(worlds, shards).own(shard.people)
        there = own.worlds.masks()[:, own.before : own.before + shard.count]
        assert there[-1].all() and len(there) == 18 + 1
        for place, number in enumerate(range(shard.people.start, shard.people.stop)):
            among_all = np.searchsorted(names, shards.names[number])
            assert (there[:-1, place] == worlds.masks()[:18, among_all]).all()


def test_an_account_of_worlds_over_partitions_is_gone_on_with(tmp_path: Path) -> None:
    how: dict[str, Any] = {"cap": 0.6, "unit": "who", "design": "worlds", "worlds": 64, "name": "people"}
    how["ledger"] = f"sqlite:///{tmp_path}/l.db"
    frame = people()
    first = lc.Session(parted(frame, 4), **how).mean("pay", noise=50)
    again = lc.Session(parted(frame, 9, seed=3), **how)
    assert again.mean("pay", noise=50).value == first.value and again.history[0].numbers
    with refused("have changed"):
        lc.Session(parted(frame.iloc[1:], 4), **how)


def test_rows_beyond_rows_per_unit_are_told_to_the_custodian_alone() -> None:
    frame = people()
    left = int((frame["who"].value_counts() - 5).clip(lower=0).sum())
    how: dict[str, Any] = {"unit": "who", "rows_per_unit": 5, "seed": 1}
    with pytest.warns(LeftOutWarning, match=f"{left} of 300 rows are in no answer") as told:
        lc.Session(parted(frame, 3), cap=0.6, **how)
    assert "do not publish it" in str(told[0].message)
    for quiet in ({"cap": 0.6, "analyst": "ann"}, {"cap": lc.pool_membership(0.6)}):  # a warning is an error here
        lc.Session(parted(frame, 3), **quiet, **how)
    lc.Session(parted(frame, 3), cap=0.6, **how | {"rows_per_unit": int(frame["who"].value_counts().max())})


def test_a_column_of_texts_has_no_numbers_as_in_one_table() -> None:
    """By its type alone; an analyst hears of one table no more than of partitions, where cells are but missing."""
    frame = pd.DataFrame(
        {"who": [1, 2, 3, 4], "ward": pd.Categorical(["3", "4", "5", "6"]), "n": pd.Categorical([1] * 4)}
    )
    for source in (frame, lc.partitions([frame.iloc[:2], frame.iloc[2:]])):
        session = lc.Session(source, cap=0.6, unit="who", seed=1)
        with pytest.raises(InputError, match="column 'ward' does not hold numbers"):
            session.mean(["n", "ward"], bounds=(0, 9))
        assert np.isfinite(session.sum("n", bounds=(0, 9)).value)
