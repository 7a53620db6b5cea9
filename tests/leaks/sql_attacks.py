"""Small filters and outliers: is somebody in the tables at all? The published attacks, through `session.sql`.

Whoever attacks knows everybody else's rows, asks one question with a whole clock, and sees the answer with its interval
or its refusal. Tables with and without the person are registered once; every trial is a session with its own secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import leakcap as lc
from leakcap.errors import LeakcapError
from leakcap.ground.arrays import Floats
from leakcap.sql import asking
from tests.leaks.sql_timing import OneEngine

PEOPLE, VISITS, FEW, MOST = 100, 50, 5, 100.0  # visits of the one who is looked for; rows and amounts, if bounded
ALONE = 99  # a code that nobody else has
QUESTIONS = {
    "filter, count": f"select count(*) as n from visits where code = {ALONE}",
    "filter, sum": f"select sum(amount) as s from visits where code = {ALONE}",
    "outlier, count": "select count(*) as n from visits",
    "outlier, sum": "select sum(amount) as s from visits",
}
BOUNDED: dict[str, Any] = {"rows_per_unit": FEW, "bounds": {"amount": (0.0, MOST), "code": (0, ALONE)}}
UNBOUNDED: dict[str, Any] = {"rows_per_unit": None, "bounds": {"amount": (0.0, 100_000.0), "code": (0, ALONE)}}
ALPHA = 1e-4  # how often an honest cap is said to be broken, in one comparison
REFUSED = np.full(2, np.inf)


def visits(there: bool) -> pd.DataFrame:
    """100 people with one to three small visits, and perhaps one with many large ones."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(PEOPLE), rng.integers(1, 4, PEOPLE))
    code, amount = rng.integers(0, 9, len(person)), np.round(rng.gamma(2, 15, len(person)), 2)
    rows = pd.DataFrame({"person": person, "code": code, "amount": amount})
    mine = pd.DataFrame({"person": [PEOPLE] * VISITS, "code": [ALONE] * VISITS, "amount": [99_999.0] * VISITS})
    return pd.concat([rows, mine], ignore_index=True) if there else rows


@dataclass
class Played:
    """The tables without and with the person, and one engine for each."""

    catalogs: list[lc.sql.Catalog]
    engines: list[OneEngine]
    how: dict[str, Any]

    @classmethod
    @contextmanager
    def of(cls, declared: dict[str, Any], **how: Any) -> Iterator[Played]:
        catalogs = [lc.sql.register({"visits": visits(one)}, unit="person", **declared) for one in (False, True)]
        engines = [OneEngine(one.path) for one in catalogs]
        yield cls(catalogs, engines, how)
        for one in engines:
            one.engine.close()

    def seen(self, question: str, trials: int) -> tuple[Floats, Floats]:
        """Value and width of the interval, `(trials, 2)`, without and with the person."""
        found, start = [], 1_000_000 * list(QUESTIONS).index(question)  # no two share a secret
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in ((asking, "cell_sums"), (asking, "compiled"), (lc.sql.Catalog, "session_data")):
                patch.setattr(owner, name, _once(getattr(owner, name)))
            for at, catalog in enumerate(self.catalogs):
                patch.setattr(asking, "WorkerEngine", self.engines[at])
                seeds = start + 2 * np.arange(trials) + at
                found.append(np.array([self._one(catalog, question, int(one)) for one in seeds]))
        return found[0], found[1]

    def _one(self, catalog: lc.sql.Catalog, question: str, seed: int) -> Floats:
        try:
            session = lc.Session(catalog, seed=seed, **self.how)
            row = session.sql(QUESTIONS[question], share=0.999).frame.iloc[0].to_numpy(dtype=float)
        except LeakcapError:
            return REFUSED
        return np.array([row[0], row[2] - row[1]])


def _once(made: Any) -> Any:
    """What is made of the pool or of the text is the same for all secrets: it is made once for each catalog."""
    known: dict[Any, Any] = {}

    def remembered(*given: Any, **how: Any) -> Any:
        catalog = next(one for one in given if isinstance(one, lc.sql.Catalog))
        key = (str(catalog.path), *(one for one in given if isinstance(one, str)), *sorted(how.items()))
        if key not in known:
            known[key] = made(*given, **how)
        return known[key]

    return remembered


@dataclass(frozen=True)
class Success:
    """How often a guess is right, on trials that the rule was not made on."""

    right: int
    trials: int

    @property
    def share(self) -> float:
        return self.right / self.trials

    @property
    def lower(self) -> float:
        """An honest cap below this is seen with probability `ALPHA` at most."""
        return self._at_least(ALPHA)

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's, of 95 %."""
        wrong = Success(self.trials - self.right, self.trials)
        return self._at_least(0.025), 1 - wrong._at_least(0.025)

    def _at_least(self, alpha: float) -> float:
        return float(beta.ppf(alpha, self.right, self.trials - self.right + 1)) if self.right else 0.0


def attacked(without: Floats, beside: Floats) -> Success:
    """The best threshold on value or width among the first half of the trials, played on the second."""
    half = len(without) // 2
    rules = [
        (np.mean(sign * beside[:half, k] > sign * cut) - np.mean(sign * without[:half, k] > sign * cut), k, sign, cut)
        for k in (0, 1)
        for sign in (1, -1)
        for cut in _cuts(np.concatenate([without[:half, k], beside[:half, k]]))
    ]
    _, k, sign, cut = max(rules)
    right = np.sum(sign * beside[half:, k] > sign * cut) + np.sum(sign * without[half:, k] <= sign * cut)
    return Success(int(right), 2 * (len(without) - half))


def _cuts(values: Floats) -> list[float]:
    """Between neighbours; what is refused is infinite."""
    known = np.unique(np.where(np.isfinite(values), values, 1e300))
    return [*((known[1:] + known[:-1]) / 2), 2e300]
