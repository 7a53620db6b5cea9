"""Whose rows they are and what data are called: clocks and coins stay with people, accounts with their data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.accounts import Spent
from leakcap.custody.ledger.budgets import EVERYBODY
from leakcap.custody.ledger.operations import account_named, verify
from leakcap.errors import InputError
from tests.refusals import refusal
from tests.unit.cli.running import leakcap

N = 40
IDS = np.arange(N)
DAYS = pd.Series(pd.date_range("2026-01-01", periods=N))
READ_AGAIN: dict[str, tuple[Any, Any]] = {
    "floats, then one text": (IDS * 1.0, [*(IDS[1:] * 1.0).tolist(), "x"]),
    "truth values": (IDS % 2, IDS % 2 == 1),
    "bytes": (np.char.encode(IDS.astype(str)), [str(one).encode() for one in IDS]),
    "days": (DAYS.astype("datetime64[ns]"), DAYS.astype("datetime64[us]")),
    "days as objects": (DAYS, DAYS.astype(object)),
    "days elsewhere": (DAYS, DAYS.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
    "numbers": (IDS, IDS.astype(str)),
}


@pytest.fixture
def ledger(tmp_path: Path, own_key: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def opened(ledger: str, ids: Any, **how: Any) -> lc.Session:
    table = pd.DataFrame({"id": pd.Series(ids), "age": 20.0 + IDS})
    return lc.Session(table, **{"cap": 0.6, "unit": "id", "rows_per_unit": N, "ledger": ledger, "name": "it", **how})


@pytest.mark.parametrize("kind", READ_AGAIN)
def test_ids_that_are_read_in_another_way_are_the_same_people(kind: str, ledger: str) -> None:
    once, again = READ_AGAIN[kind]
    first = opened(ledger, once)
    first.count(share=0.99)
    second = opened(ledger, again)
    coins = dict(zip(first._desk.people.tolist(), first._desk.coins.tolist(), strict=True))
    with second._desk.account.reading() as now:
        spent = Spent.read(now, EVERYBODY).of(second._desk.people)
    found = zip(second._desk.people.tolist(), second._desk.coins, spent, strict=True)
    known = [(coin == coins[one], ticks) for one, coin, ticks in found if one in coins]
    assert len(known) >= len(coins) - 1
    assert all(same and ticks > 0 for same, ticks in known)


def test_an_odd_id_is_refused_before_anybody_gets_a_new_clock(ledger: str) -> None:
    opened(ledger, IDS * 1.0).count(share=0.99)
    refusal(lambda: opened(ledger, np.append(IDS[1:], 0.5)), "give ids as text or as whole numbers", InputError)
    refusal(lambda: opened(ledger, np.append(2**53 + IDS[1:], 0.5)), "give ids as text or as whole numbers", InputError)


@pytest.mark.parametrize("name", ["\0releases", "\0contents", "a\nb", "a\x7f", "a\x9b", "\udc80"])
def test_names_of_the_ledgers_own_accounts_are_refused(name: str, ledger: str) -> None:
    refusal(lambda: opened(ledger, IDS, name=name), "without control characters", InputError)
    refusal(
        lambda: lc.plan(np.mean, np.arange(40.0), cap=0.6, worlds=16, ledger=ledger, name=name),
        "without control characters",
        InputError,
    )


def test_the_ledgers_own_accounts_are_no_data_sets(ledger: str) -> None:
    opened(ledger, IDS).count()
    book = open_book(ledger)
    with book.account("\0releases").writing() as now:
        now.title = {"name": "releases"}
        now.append("release", {})
    for name in ("\0releases", "\0contents"):
        refusal(lambda name=name: account_named(book, name), "has no account", InputError)  # type: ignore[misc]
    assert verify(book).whole


TWICE = pd.DataFrame({"id": np.tile(IDS, 2), "age": np.arange(2.0 * N)})
EXCHANGED = TWICE.assign(id=np.repeat(IDS, 2))


def old(rows: pd.DataFrame) -> bool:
    return bool(rows["age"].max() > 60)


def test_an_answer_about_other_owners_of_the_same_rows_is_another(ledger: str) -> None:
    how: dict[str, Any] = {"cap": 0.6, "unit": "id", "rows_per_unit": 2, "ledger": ledger, "name": "it"}
    lc.Session(TWICE, **how).count(where=old)
    assert [sum(map(old, (own for _, own in table.groupby("id")))) for table in (TWICE, EXCHANGED)] == [19, 10]
    assert lc.Session(TWICE.copy(), **how).count(where=old).again
    assert not lc.Session(EXCHANGED, **how).count(where=old).again


@pytest.mark.parametrize("other", [EXCHANGED, TWICE.assign(id=TWICE["id"].astype(str))], ids=["owners", "order"])
def test_listed_worlds_are_for_their_owners_in_their_order(other: pd.DataFrame, ledger: str) -> None:
    """Halves know people by their places, and numbers written as texts are ordered otherwise."""
    how: dict[str, Any] = {"cap": 0.6, "design": "worlds", "worlds": 16, "unit": "id", "ledger": ledger, "name": "it"}
    lc.Session(TWICE, **how)
    lc.Session(TWICE.assign(id=TWICE["id"] * 1.0), **how)
    refusal(lambda: lc.Session(other, **how), "have changed", InputError)


def test_the_same_rows_in_another_order_are_known_by_their_name(ledger: str) -> None:
    how: dict[str, Any] = {"cap": 0.6, "unit": "id", "rows_per_unit": 2, "ledger": ledger}
    lc.Session(TWICE, name="it", **how)
    for same in (TWICE[::-1].reset_index(drop=True), EXCHANGED):
        refusal(lambda same=same: lc.Session(same, name="other", **how), "are known to the ledger as 'it'", InputError)  # type: ignore[misc]


ROWS = pd.DataFrame(
    {"id": np.arange(200), "home": np.arange(200) // 4, "size": np.random.default_rng(3).normal(size=200)}
)


def test_one_table_has_one_account_whichever_way_it_comes_in(
    ledger: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    how: dict[str, Any] = {"cap": 0.6, "ledger": ledger}
    lc.Session(ROWS, unit="id", name="it", **how).count(share=0.5)
    shuffled, known = ROWS.sample(frac=1, random_state=0), "are known to the ledger as 'it'"
    for same in (shuffled, ROWS[["size", "id"]], ROWS.astype({"size": np.float32}), ROWS[["size"]]):
        refusal(lambda same=same: lc.Session(same, **how), known, InputError)  # type: ignore[misc]
    refusal(lambda: lc.release(lc.stats.mean, shuffled[["size"]], design="bits", **how), known, InputError)
    refusal(lambda: lc.release(lc.stats.mean, ROWS[["size"]], worlds=32, **how), known, InputError)
    shuffled.to_csv(tmp_path / "rows.csv", index=False)
    command = ("release", str(tmp_path / "rows.csv"), "--session", "--fn", "count", "--cap", "0.6", "--ledger", ledger)
    assert leakcap(*command, "--out", str(tmp_path / "out")) != 0
    assert "known to the ledger as 'it'" in " ".join(capfd.readouterr().err.split())


def test_a_release_makes_the_same_data_known(ledger: str) -> None:
    X = ROWS[["size"]].to_numpy()
    lc.release(lc.stats.mean, X, cap=lc.pool_membership(0.6), bounds=(0, 1), ledger=ledger, name="it")
    for again in (X[::-1], np.random.default_rng(0).permutation(X)):
        refusal(
            lambda again=again: lc.release(  # type: ignore[misc]
                lc.stats.mean, again, cap=lc.pool_membership(0.6), bounds=(0, 1), ledger=ledger
            ),
            "known to the ledger as 'it'",
            InputError,
        )


def test_people_who_are_called_otherwise_are_no_change_of_the_data(ledger: str) -> None:
    how: dict[str, Any] = {"cap": 0.6, "ledger": ledger, "name": "it"}
    lc.Session(ROWS, unit="id", **how).count(share=0.5)
    called = ROWS.assign(id=[f"p{one}" for one in ROWS["id"]])
    refusal(lambda: lc.Session(called, unit="id", **how), "called the same", InputError)
    grown = pd.concat([ROWS, ROWS.assign(id=ROWS["id"] + 1000)], ignore_index=True)
    for changed in (grown, ROWS.iloc[:20], grown.iloc[100:]):
        assert lc.Session(changed, unit="id", **how).spent.share == pytest.approx(0.5)


def test_what_was_not_opened_is_nobodys_name(ledger: str) -> None:
    how: dict[str, Any] = {"cap": 0.6, "ledger": ledger}
    lc.Session(ROWS, name="a", **how)
    other = ROWS.assign(size=-ROWS["size"])
    refusal(lambda: lc.Session(other, name="a", **how), "have changed", InputError)
    assert lc.Session(other, name="b", **how).count(share=0.1)


def test_analysts_are_called_by_plain_text() -> None:
    refusal(lambda: lc.Session(ROWS, cap=0.6, analyst="ann\x1b[2J"), "control characters", InputError)
