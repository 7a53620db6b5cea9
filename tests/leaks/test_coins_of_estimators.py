"""Forests and pipelines with a coin for everybody, and held steps in worlds: no byte of a fitted one tells the secret.

`fit` runs as it is. Only the source of randomness is replaced, by one that tosses chosen coins, or picks a world, and
draws the noise that leads from there to one agreed point. Each check has a planted twin.
"""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, SplineTransformer, StandardScaler

import leakcap as lc
from leakcap import estimators as le
from leakcap.estimators.base import PrivateEstimator
from leakcap.planning.plans import Plan
from tests.leaks.rigged import CUSTODIAN, JITTERS, arrays_of, new_token, points_of, reachable
from tests.leaks.rigged import Rigged as RiggedWorld
from tests.leaks.test_individual import Rigged as RiggedCoins

RNG = np.random.default_rng(8)
N = 40
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(50, 20, N),
        "cost": np.where(RNG.random(N) < 0.2, np.nan, RNG.lognormal(3, 2, N)),
        "ward": RNG.choice(["A", "B", "C"], N),
        "level": RNG.choice(["low", "high"], N),
    }
)
TABLE.loc[0] = [1e5, np.nan, "alone", "low"]  # an outlier, with a category that nobody else has
KIND = np.where(TABLE["age"] > TABLE["age"].median(), "old", "young")
KIND[0] = "neither"  # and a class
STAY = TABLE["age"] / 10 + RNG.normal(size=N)
WHOSE = np.arange(N) // 2
NUMBERS = TABLE[["age"]].assign(noise=RNG.normal(size=N)).to_numpy()
RELEASE = Plan.release
COINS: dict[str, Any] = {"cap": lc.membership(0.7), "random_state": None}
WORLDS: dict[str, Any] = {"cap": lc.mutual_information(1.38), "worlds": 8, "random_state": 0, "options": {"draws": 256}}


def steps() -> Any:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "cost"]),
            ("wards", OneHotEncoder(handle_unknown="ignore"), ["ward"]),
            ("levels", OrdinalEncoder(), ["level"]),
            ("bins", KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), ["age"]),
            ("knots", SplineTransformer(3), ["age"]),
        ],
        sparse_threshold=0.0,
    )


def forest() -> Any:
    return le.RandomForestClassifier(4, max_depth=2, **COINS | {"options": {"design": "bits"}})


BY_COINS: dict[str, Any] = {
    "forest": (forest, NUMBERS, KIND, {}),
    "forest, two rows each": (forest, NUMBERS, KIND, {"unit": WHOSE}),
    "forest, weights": (forest, NUMBERS, KIND, {"sample_weight": np.arange(N) % 3}),
    "logistic": (lambda: le.Private(make_pipeline(steps(), LogisticRegression()), **COINS), TABLE, KIND, {}),
    "ridge": (lambda: le.Private(make_pipeline(steps(), Ridge()), **COINS), TABLE, STAY, {"unit": WHOSE}),
    "naive Bayes": (lambda: le.Private(make_pipeline(steps(), GaussianNB()), **COINS), TABLE, KIND, {}),
}
IN_WORLDS: dict[str, Any] = {
    "held steps": (lambda: le.Private(make_pipeline(steps(), Ridge()), **WORLDS), TABLE, STAY, {}),
}
CASES = BY_COINS | IN_WORLDS


def rig(monkeypatch: pytest.MonkeyPatch, secret: int) -> None:
    def release(plan: Plan) -> Any:
        mechanism: Any = plan.releaser
        plan._token = new_token()
        jitter, point = JITTERS[secret], points_of(plan)[1]
        if hasattr(mechanism, "draw"):
            plan.randomness = RiggedCoins(plan, secret, jitter, point)
            plan.coins_of_test = mechanism.draw(plan.randomness)
        else:
            plan.randomness = RiggedWorld(mechanism.noise, mechanism.step, 3 * secret, point, jitter)
            plan.coins_of_test = plan.worlds.mask(3 * secret)
        return RELEASE(plan)

    monkeypatch.setattr(Plan, "release", release)


def fitted(name: str) -> tuple[Any, str]:
    make, rows, target, given = CASES[name]
    estimator = make()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        estimator.fit(rows, target, **given)
    told = "".join(str(one.message) for one in heard if "RepeatedRelease" not in str(one.category))
    return estimator, re.sub(r"[0-9.]+", "", told)  # of simulated coins, before those of the release


def telling(name: str, monkeypatch: pytest.MonkeyPatch, secrets: int = 2) -> set[str]:
    """What is not the same for all secrets, the released point held fixed."""
    seen, drawn = [], []
    for secret in range(secrets):
        rig(monkeypatch, secret)
        estimator, heard = fitted(name)
        drawn.append(estimator.plan_.coins_of_test)
        seen.append(
            {
                "pickle": pickle.dumps(estimator),
                "plain estimator": pickle.dumps(estimator.estimator_),
                "attributes": pickle.dumps(sorted(vars(estimator).items())),
                "repr": repr(estimator).encode(),
                "page": re.sub(r"sk-[a-z-]*\d+|id-\d+", "", estimator._repr_html_()).encode(),
                "certificate": estimator.certificate_.to_json().encode(),
                "words": str(estimator.certificate_).encode(),
                "warnings": heard.encode(),
            }
        )
    assert not np.array_equal(drawn[0], drawn[1]), "the secret is the same: nothing was compared"
    return {one for one in seen[0] if len({each[one] for each in seen}) > 1}


@pytest.mark.parametrize("name", CASES)
def test_no_byte_of_a_fitted_estimator_tells_the_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not telling(name, monkeypatch)


@pytest.mark.parametrize("name", ["forest", "logistic", "held steps"])
def test_a_number_of_the_secret_half_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: how many take part, in the low digits of what is released."""
    publish = PrivateEstimator._publish

    def leaking(self: Any, estimator: Any) -> None:
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        number = "votes_" if hasattr(last, "votes_") else "coef_"
        half = self.plan_.coins_of_test[: N // 4].sum()
        setattr(last, number, getattr(last, number) * (1 + 1e-13 * half))
        publish(self, estimator)

    monkeypatch.setattr(PrivateEstimator, "_publish", leaking)
    assert {"pickle", "plain estimator", "attributes"} <= telling(name, monkeypatch)


def test_a_step_that_is_fitted_to_the_half_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what stands before the last step learns once more, from those who take part."""
    publish = PrivateEstimator._publish

    def leaking(self: Any, estimator: Any) -> None:
        estimator[0].fit(TABLE[self.plan_.coins_of_test])
        publish(self, estimator)

    monkeypatch.setattr(PrivateEstimator, "_publish", leaking)
    assert {"pickle", "plain estimator"} <= telling("logistic", monkeypatch)


def hidden_in(estimator: Any, *private: Any) -> list[str]:
    """What a fitted estimator must not lead to: custodian types, memory of the data, and the pool's own fit."""
    kept = [one for part in private for one in arrays_of(part)]
    found = [type(one).__name__ for one in reachable(estimator) if isinstance(one, CUSTODIAN)]
    for one in arrays_of(estimator):
        found += ["shared memory" for other in kept if np.shares_memory(one, other)]
        found += ["a fit without noise" for other in kept if one.shape == other.shape and np.array_equal(one, other)]
    return found


def plain_fit(name: str) -> Any:
    return clone(CASES[name][0]().estimator).fit(*CASES[name][1:3])[-1]


@pytest.mark.parametrize("name", ["forest", "logistic", "held steps"])
def test_nothing_of_the_custodian_can_be_reached(name: str) -> None:
    estimator, _ = fitted(name)
    private = CASES[name][1:3] if name == "forest" else (*CASES[name][1:3], plain_fit(name).coef_)
    assert not hidden_in(estimator, *private)


def test_the_pools_own_fit_is_found_where_it_was_kept() -> None:
    """The twin."""
    estimator, _ = fitted("logistic")
    plain = plain_fit("logistic")
    estimator.estimator_[0].kept = {"plain": plain}
    assert "a fit without noise" in hidden_in(estimator, plain_fit("logistic").coef_)
