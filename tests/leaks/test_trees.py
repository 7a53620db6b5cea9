"""Trees learnt in rounds: with the answers held fixed, no byte of a fitted one tells coins, or who is there."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import estimators as le
from leakcap.custody.ledger import accounts
from leakcap.estimators import rounds
from leakcap.estimators.rounds import RoundRows
from leakcap.sessions import desk

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

    monkeypatch.setattr(rounds, "Session", Watched)
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


@pytest.mark.parametrize("name", KINDS)
def test_what_the_pool_was_looked_at_for_is_listed(name: str) -> None:
    looked = KINDS[name](cap=lc.membership(0.6), random_state=0).fit(X, Y).certificate_
    declared = KINDS[name](cap=lc.membership(0.6), random_state=0, **BOUNDED).fit(X, Y).certificate_
    assert looked.pool_public and not declared.pool_public
