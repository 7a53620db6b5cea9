"""Fits over partitions are those of one table: the same questions, answers and charges, and nothing but them."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import InputError, OutputError
from leakcap.sessions.brought import Brought, Length

BOTH, BOUNDS = ["a", "b"], ([-4, -4], [4, 4])
HOW: dict[str, Any] = {"cap": 0.7, "unit": "who", "rows_per_unit": 2, "seed": 1}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 2)), columns=BOTH)
    frame.loc[7, "a"] = np.nan
    frame["y"] = 2 * frame["b"] + rng.normal(size=240)
    return frame.assign(who=rng.permutation(240) % 130, kind=(frame["y"] > 0).astype(int))


def parted() -> Any:
    frame = people()
    return lc.partitions([frame.iloc[:100], frame.iloc[100:]])


def numbers(fitted: Any) -> dict[str, Any]:
    """All that was fitted."""
    found = {name: np.asarray(value) for name, value in vars(fitted).items() if name.endswith("_")}
    return {name: value for name, value in found.items() if value.dtype.kind in "fiu"}


FITS: dict[str, Any] = {
    "ridge": lambda it: it.fit(lc.estimators.Ridge(target_bounds=(-12, 12)), BOTH, "y", bounds=BOUNDS),
    "components": lambda it: it.fit(lc.estimators.PCA(n_components=1), BOTH, bounds=BOUNDS),
    "centres": lambda it: it.fit(lc.estimators.KMeans(n_clusters=2), BOTH, bounds=BOUNDS),
    "classes": lambda it: it.fit(lc.estimators.GaussianNB(classes=[0, 1]), BOTH, "kind", bounds=BOUNDS),
    "trees": lambda it: it.fit(
        lc.estimators.RandomForestClassifier(classes=[0, 1], n_estimators=2), BOTH, "kind", bounds=BOUNDS
    ),
    "gradients": pytest.param(
        lambda it: it.fit(lc.estimators.LogisticRegression(classes=[0, 1]), BOTH, "kind", norm=4.0),
        marks=pytest.mark.slow,
    ),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
def test_fits_are_those_of_one_table(fit: Any) -> None:
    one, other = lc.Session(people(), **HOW), lc.Session(parted(), **HOW)
    expected, found = numbers(fit(one)), numbers(fit(other))
    assert expected and expected.keys() == found.keys()
    for name, value in expected.items():
        assert np.allclose(found[name], value, rtol=1e-12, atol=1e-12), name
    assert other.spent == one.spent and len(other.history) == len(one.history) >= 1
    assert str(other.certificate) == str(one.certificate)


def test_other_rows_are_seen_by_the_comparison() -> None:
    frame = people().assign(b=0.5)
    one, other = (FITS["ridge"](lc.Session(rows, **HOW)) for rows in (people(), lc.partitions([frame])))
    assert not np.allclose(one.coef_, other.coef_)


class Asks:
    """An estimator that asks what it is told to, in the light of its rows."""

    takes_any_features = True

    def __init__(self, ask: Any) -> None:
        self._ask = ask

    def told_in_session(self) -> dict[str, Any]:
        return {}

    def fit_in_session(self, fitting: Any) -> Any:
        return self._ask(fitting)


def _of_own_rows(fitting: Any) -> Any:
    return fitting.ask(None, 0.01, step=len(fitting.features))


def _some_of_them(fitting: Any) -> Any:
    return None if len(fitting.features) % 2 else fitting.ask(None, 0.01)


def _around_their_own(fitting: Any) -> Any:
    made = np.zeros((fitting.units.count, 1))
    return fitting.ask(Brought(made, Length(1.0, 1), np.asarray, declared=False), 0.01)


def _fails(fitting: Any) -> Any:
    raise OutputError("as it does of one table")


@pytest.mark.parametrize(
    ("ask", "kind", "why"),
    [
        (_of_own_rows, OutputError, "it hangs on more than answers"),
        (_some_of_them, OutputError, "it hangs on more than answers"),
        (_around_their_own, InputError, "over partitions answers are sums within declared bounds"),
        (_fails, OutputError, "as it does of one table"),
        (lambda fitting: fitting.blocks(3), InputError, "blocks of people, which need one table"),
    ],
)
def test_what_hangs_on_more_than_answers_ends_the_fit_and_nobody_pays(ask: Any, kind: Any, why: str) -> None:
    session, running = lc.Session(parted(), **HOW), threading.active_count()
    with pytest.raises(kind, match=re.escape(why)):
        session.fit(Asks(ask), BOTH)
    assert session.spent.share == 0 and not session.history
    assert threading.active_count() == running


def test_what_is_not_declared_is_refused() -> None:
    session = lc.Session(parted(), **HOW)
    for columns, bounds in ((None, BOUNDS), (BOTH, None)):
        with pytest.raises(InputError, match="over partitions everything but the sums is declared"):
            session.fit(lc.estimators.PCA(n_components=1), columns, bounds=bounds)
    listed = lc.Session(parted(), cap=0.7, unit="who", seed=1, design="worlds", worlds=64)
    with pytest.raises(InputError, match="design='bits'"):
        listed.fit(lc.estimators.PCA(n_components=1), BOTH, bounds=BOUNDS)
