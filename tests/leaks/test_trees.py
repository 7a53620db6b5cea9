"""Trees learnt in rounds: with the answers held fixed, no byte of a fitted one tells coins, or who is there."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import estimators as le
from leakcap.custody.ledger import accounts
from leakcap.estimators import own_session
from leakcap.estimators.rounds import RoundRows
from leakcap.sessions import desk
from leakcap.sessions.brought import NOBODY
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import STEP

pytestmark = pytest.mark.filterwarnings("ignore::leakcap.errors.SmallGroupWarning")  # pools are small here

RNG = np.random.default_rng(1)
X = RNG.normal(50, 20, size=(40, 3))
X[0] = 1e6, -3.0, 50.0  # the person: an outlier, of a class that nobody else has
Y = np.array(["alone"] + list("ab") * 19 + ["a"])
BOUNDED: dict[str, Any] = {"classes": ["a", "b", "alone"], "options": {"bounds": (0, 100)}}
KINDS = {"tree": le.DecisionTreeClassifier, "boosting": le.HistGradientBoostingClassifier}


def rig(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Coins by a seed, and noise that makes the answers the same whatever they are."""
    monkeypatch.setattr(accounts.secrets, "token_bytes", np.random.default_rng(seed).bytes)
    monkeypatch.setattr(
        desk, "with_noise", lambda total, grains, deviations, _: np.cos(np.arange(len(total))) * 3 * deviations
    )


def shown(name: str, cap: Any, first: int = 0, **settings: Any) -> dict[str, bytes]:
    made = KINDS[name](cap=cap, **settings).fit(X[first:], Y[first:])
    return {
        "pickle": pickle.dumps(made),
        "plain estimator": pickle.dumps(made.estimator_),
        "repr": repr(made).encode(),
        "certificate": made.certificate_.to_json().encode(),
        "words": str(made.certificate_).encode(),
        "attributes": pickle.dumps(sorted(vars(made).items())),
    }


@pytest.mark.filterwarnings("ignore::leakcap.errors.RepeatedReleaseWarning")  # coins are what is compared
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("settings", [BOUNDED, {}], ids=["declared", "by the pool"])
def test_no_byte_tells_the_coins(name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen, coins = [], []

    class Watched(lc.Session):
        def __init__(self, *data: Any, **how: Any) -> None:
            super().__init__(*data, **how)
            coins.append(self._desk.coins.copy())

    monkeypatch.setattr(own_session, "Session", Watched)
    for seed in range(3):
        rig(monkeypatch, seed)
        seen.append(shown(name, lc.membership(0.6), **settings))
    assert not np.array_equal(coins[0], coins[1]), "the coins are the same: nothing was compared"
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("name", KINDS)
def test_no_byte_tells_that_the_person_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rig(monkeypatch, 0)
    whole, rest = (shown(name, lc.pool_membership(0.6), first, **BOUNDED) for first in (0, 1))
    assert whole == rest


@pytest.mark.parametrize("name", KINDS)
def test_a_planted_number_of_rows_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rig(monkeypatch, 0)
    plain = RoundRows.asked

    def telling(rows: RoundRows, *given: Any, **how: Any) -> Any:
        found, deviation = plain(rows, *given, **how)
        return found + len(rows.features), deviation

    monkeypatch.setattr(RoundRows, "asked", telling)
    whole, rest = (shown(name, lc.pool_membership(0.6), first, **BOUNDED) for first in (0, 1))
    assert whole["plain estimator"] != rest["plain estimator"]


@pytest.mark.filterwarnings("ignore::leakcap.errors.RepeatedReleaseWarning")
@pytest.mark.parametrize("name", KINDS)
def test_a_planted_number_of_those_who_take_part_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of `test_no_byte_tells_the_coins`: how many they are, in the low digits of an answer."""
    coins, plain = [0], RoundRows.asked

    class Watched(lc.Session):
        def __init__(self, *data: Any, **how: Any) -> None:
            super().__init__(*data, **how)
            coins[0] = int(self._desk.coins.sum())

    def telling(rows: RoundRows, *given: Any, **how: Any) -> Any:
        found, deviation = plain(rows, *given, **how)
        return found * (1 + 1e-13 * coins[0]), deviation

    monkeypatch.setattr(own_session, "Session", Watched)
    monkeypatch.setattr(RoundRows, "asked", telling)
    seen, counts = [], []
    for seed in range(3):
        rig(monkeypatch, seed)
        seen.append(shown(name, lc.membership(0.6), **BOUNDED))
        counts.append(coins[0])
    assert len(set(counts)) > 1
    assert len({one["plain estimator"] for one in seen}) > 1


def brought_by_others(name: str, monkeypatch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """What everybody but the person brings to each question, with and without the person; the answers held fixed."""
    rig(monkeypatch, 0)
    plain, heard = RoundRows.asked, []

    def listening(rows: RoundRows, inside: Any, values: Any, **how: Any) -> Any:
        there = len(Y) + NOBODY - len(inside)  # how many are left out
        others = slice(1 - there, len(Y) - there)
        heard[-1].append(inside[others].tobytes() + values[others].tobytes())
        return plain(rows, inside, values, **how)

    monkeypatch.setattr(RoundRows, "asked", listening)
    for first in (0, 1):
        heard.append([])
        shown(name, lc.pool_membership(0.6), first, **BOUNDED)
    return heard


@pytest.mark.parametrize("name", KINDS)
def test_what_others_bring_follows_from_the_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their residuals, and the nodes that they are in, must not tell of the person: noise is made for one alone."""
    whole, rest = brought_by_others(name, monkeypatch)
    assert whole == rest and len(whole) > 3


@pytest.mark.parametrize("name", KINDS)
def test_rounds_that_go_on_from_exact_sums_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what is released is noised, and the next round starts from sums without noise."""
    plain = RoundRows.asked

    def telling(rows: RoundRows, inside: Any, values: Any, **how: Any) -> Any:
        _, deviation = plain(rows, inside, values, **how)
        return inside.T @ values, deviation

    monkeypatch.setattr(RoundRows, "asked", telling)
    whole, rest = brought_by_others(name, monkeypatch)
    assert whole != rest


CELLS: dict[str, Any] = {"text": "x", "nothing": None, "not a number": float("nan"), "half": 0.5, "true": True}


def clocks_moved(name: str, cell: Any, monkeypatch: pytest.MonkeyPatch) -> float:
    """By how much one more person, with this label, moves all sums of a fit; the answers are held fixed."""
    totals: list[Any] = []

    def noted(total: Any, grains: Any, deviations: Any, _: Any) -> Any:
        totals.append(np.asarray(total) / grains * STEP)
        return np.cos(np.arange(len(total))) * 3 * deviations

    monkeypatch.setattr(desk, "with_noise", noted)
    kinds = [0, 1] * 20
    settings: dict[str, Any] = {"classes": [0, 1], "options": {"bounds": (0, 100)}}
    for rows, labels in ((X, kinds), (np.vstack([X, [[50.0, 50.0, 50.0]]]), [*kinds, cell])):
        KINDS[name](cap=lc.pool_membership(0.6), **settings).fit(rows, labels)
    assert len(totals) % 2 == 0
    half = len(totals) // 2
    apart = sum(((one - other) ** 2).sum() for one, other in zip(totals[:half], totals[half:], strict=True))
    return float(apart / Clock.of((lc.pool_membership(0.6),)).square)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("cell", CELLS)
def test_a_label_of_another_kind_moves_nobody_elses(name: str, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a pool cap, labels given as a list: in an array of one kind everybody's would be made text."""
    assert clocks_moved(name, CELLS[cell], monkeypatch) <= 1 + 1e-6


@pytest.mark.parametrize("name", KINDS)
def test_labels_that_are_all_made_text_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    plain = lc.Session.__init__

    def as_text(self: Any, data: Any, **how: Any) -> None:
        labels = data[1]
        odd = not all(isinstance(one, (int, float, np.number)) for one in labels)
        plain(self, (data[0], labels.astype(str) if odd else labels), **how)

    monkeypatch.setattr(lc.Session, "__init__", as_text)
    assert clocks_moved(name, "x", monkeypatch) > 10


@pytest.mark.parametrize("name", KINDS)
def test_what_the_pool_was_looked_at_for_is_listed(name: str) -> None:
    looked = KINDS[name](cap=lc.membership(0.6), random_state=0).fit(X, Y).certificate_
    declared = KINDS[name](cap=lc.membership(0.6), random_state=0, **BOUNDED).fit(X, Y).certificate_
    assert looked.pool_public and not declared.pool_public
