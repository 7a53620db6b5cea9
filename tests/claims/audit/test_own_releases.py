"""Audits of our own releases: nothing is refuted, and the best attacker comes near to the bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import leakcap as lc
from leakcap import audit, estimators, testing
from leakcap.audit.trials import knowledge
from leakcap.errors import InputError
from tests.unit.audit.plans import IRIS, KINDS, plan

pytestmark = pytest.mark.filterwarnings("ignore::leakcap.errors.LeakcapWarning")
CANCER, SORTS = load_breast_cancer(return_X_y=True)
DIABETES, PROGRESS = load_diabetes(return_X_y=True)


def near_the_bound(report: audit.AuditReport, slack: float) -> bool:
    best = max(one.measured for one in report.findings if one.attack.startswith("bayes") and "most" in one.question)
    return best >= report.certificate.membership_success - slack


def test_an_honest_plan_holds_and_the_best_attacker_comes_near() -> None:
    report = audit.run(plan(draws=16_384), trials=5_000)
    assert report.holds, str(report)
    assert near_the_bound(report, 0.03)  # more than three standard errors of 3,500 judged releases
    assert {one.attack.split(",")[0] for one in report.findings} == {
        "bayes", "learned", "world", "generalized", "collude", "law of the noise", "secret", "numbers drawn",
        "predictable",
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["confidence", "individual", "exact"])
@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_all_modes_and_rates_can_be_audited(mode: str, rate: float) -> None:
    options = {} if mode == "individual" else {"draws": 8192}
    target = lc.plan(lc.stats.mean, IRIS, cap=lc.membership(0.6), mode=mode, rate=rate, worlds=66, **options)
    report = audit.run(target, trials=500)
    assert report.holds, str(report)
    assert report.findings


def test_tasks_that_were_capped_are_tried() -> None:
    wins = np.eye(64)[:, :8] + np.eye(64)[:, 8:16]
    report = audit.run(lc.plan(lc.stats.mean, IRIS, cap=lc.task(wins, 0.3), worlds=64, draws=8192), trials=1_000)
    assert any(one.attack == "task" for one in report.findings) and report.holds


def test_claimed_noise_is_found_wherever_its_numbers_stand() -> None:
    def named(rows: Any) -> dict[str, Any]:
        return {"people known": 3, "means": {"all": rows.mean(axis=0)}, "first": float(rows[:, 0].max())}

    target = lc.plan(named, IRIS, cap=lc.membership(0.7), worlds=32, draws=4096)
    known = knowledge(target)
    assert known.factor is not None
    seen = testing.releases(target, 1_500)
    noise = seen.seen - known.answers[seen.secret]
    claimed = np.sqrt((known.factor**2).sum(axis=1))
    assert np.allclose(noise.std(axis=0), claimed, rtol=0.1, atol=1e-12)  # five standard errors


@pytest.mark.parametrize(
    "estimator",
    [
        estimators.KMeans(3, cap=lc.membership(0.65), worlds=64, random_state=0, options={"draws": 8192}),
        estimators.LogisticRegression(0.1, cap=lc.membership(0.65), worlds=64, random_state=0, options={"draws": 8192}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_estimators_are_attacked_by_what_they_publish(estimator: Any) -> None:
    report = audit.run(estimator.fit(IRIS, KINDS), trials=2_000)
    assert report.holds and report.target == type(estimator).__name__
    assert near_the_bound(report, 0.05)  # nearly four standard errors of 1,400 judged releases


FULL: dict[str, Any] = {
    "mean": lc.stats.mean,
    "median": lc.stats.median,
    "covariance": lc.stats.covariance,
}


@pytest.mark.slow
@pytest.mark.parametrize("cap", [0.55, 0.6, 0.75])
@pytest.mark.parametrize("data", [IRIS, CANCER, DIABETES], ids=["iris", "breast cancer", "diabetes"])
@pytest.mark.parametrize("name", FULL)
def test_statistics_at_full_size_hold_and_are_tight(name: str, data: Any, cap: float) -> None:
    target = lc.plan(FULL[name], data[:, :8], cap=lc.membership(cap))
    report = audit.run(target, trials=60_000)
    assert report.holds, str(report)
    # Where outputs take few values the cap cannot be reached: then the bound is below it.
    assert near_the_bound(report, 0.01) or report.certificate.membership_success < cap - 0.01


def test_attacks_by_score_use_the_releases_as_shadows() -> None:
    """An outlier of a small pool is found by how well published centres fit it, and the cap is kept."""
    rows = IRIS[::3] + np.where(np.arange(50)[:, None] == 7, 3.0, 0.0)
    made = estimators.KMeans(2, cap=lc.membership(0.75), worlds=64, random_state=0, options={"draws": 8192}).fit(rows)
    report = audit.run(made, trials=4_000, attacks=["score"], data=(rows,))
    assert report.holds, str(report)
    names = {one.attack for one in report.findings}
    assert names == {"threshold", "lira", "lira offline", "rmia"}
    best = max(one.measured for one in report.findings if one.attack == "lira" and "most" in one.question)
    assert best > 0.6
    with pytest.raises(InputError, match="data="):
        audit.run(made, trials=400, data=(rows[:10],))


KINDS_OF: dict[str, Any] = {
    "Mean": estimators.Mean,
    "Covariance": estimators.Covariance,
    "StandardScaler": estimators.StandardScaler,
    "KMeans": lambda **common: estimators.KMeans(3, **common),
    "PCA": lambda **common: estimators.PCA(3, **common),
    "LogisticRegression": lambda **common: estimators.LogisticRegression(0.1, **common),
    "LinearSVC": lambda **common: estimators.LinearSVC(0.05, **common),
    "GaussianNB": estimators.GaussianNB,
    "RandomForestClassifier": lambda **common: estimators.RandomForestClassifier(3, max_depth=3, **common),
    "Ridge": estimators.Ridge,
    "LinearRegression": estimators.LinearRegression,
}
POOLS = {"iris": (IRIS, KINDS), "breast cancer": (CANCER[:, :8], SORTS), "diabetes": (DIABETES, PROGRESS > 140)}


@pytest.mark.slow
@pytest.mark.parametrize("cap", [0.55, 0.6, 0.75])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", KINDS_OF)
def test_estimators_at_full_size_hold_and_are_tight(name: str, pool: str, cap: float) -> None:
    X, y = POOLS[pool]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    made = KINDS_OF[name](cap=lc.membership(cap), random_state=1)
    made.fit(*((X[:, :-1], X[:, -1]) if name in ("Ridge", "LinearRegression") else (X, y.astype(int))))
    published = audit.run(made, trials=10_000)
    assert published.holds, str(published)
    report = audit.run(made.plan_, trials=60_000)
    print(f"{name:24}{pool:16}{cap}: {report.measured:.4f} certified {report.certificate.membership_success:.4f}")
    assert report.holds, str(report)
    assert near_the_bound(report, 0.01)
