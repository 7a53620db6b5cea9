"""Pool caps and additive functions as users meet them: forms, words, refusals."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import leakcap as lc
from leakcap.errors import BoundsWarning

RNG = np.random.default_rng(1)
X = RNG.normal(50, 10, size=(400, 2))
TABLE = pd.DataFrame(X, columns=["cost", "stay"]).assign(ward=RNG.choice(list("ABC"), 400), sick=X[:, 0] > 55)
KEYS = {"ward": ["A", "B", "C"]}
POOL = lc.pool_membership(0.8)


def planned(fn: Any = lc.stats.mean, rows: Any = X, **options: Any) -> lc.Plan:
    return lc.plan(fn, rows, **{"cap": POOL, "seed": 1} | options)


@pytest.mark.parametrize(
    ("fn", "rows", "options"),
    [
        (lc.stats.mean, X, {"bounds": (0, 100)}),
        (lc.stats.mean, X[:, 0], {"bounds": (0, 100)}),
        (lc.stats.sum, X, {"bounds": (0, 100)}),
        (lc.stats.count, X, {}),
        (lc.stats.share, TABLE["sick"], {}),
        (lc.stats.covariance, X, {"bounds": (0, 100)}),
        (lc.stats.covariance, X[:, 0], {"bounds": (0, 100)}),
        (partial(lc.stats.histogram, edges=[0, 40, 60, 100]), X, {}),
        (lc.stats.gram, X, {"bounds": (0, 100)}),
        (lc.stats.gram, X[:, 0], {"bounds": (-20, 100)}),
        (partial(lc.stats.quantile, q=[0.25, 0.5, 0.75], grid=np.arange(0.0, 101)), X, {}),
        (partial(lc.stats.median, grid=np.arange(0.0, 101)), X[:, 0], {}),
        (partial(lc.stats.categories, levels=["A", "C"]), TABLE["ward"], {}),
        (lc.stats.group_by(KEYS), TABLE, {}),
        (lc.stats.group_by(KEYS, "sum", of="cost"), TABLE, {"bounds": {"cost": (0, 100)}}),
        (lc.stats.group_by(KEYS | {"sick": [True, False]}, "mean", of=["cost", "stay"]), TABLE, {"bounds": (0, 100)}),
        (lc.additive(lambda rows: rows[0]), X, {"bounds": (0, 100)}),
        (lc.additive(lambda rows: rows, lambda total: {"sum": total}, each="row"), X, {"bounds": (0, 100)}),
    ],
)
@pytest.mark.parametrize("design", ["pool", "bits", "worlds"])
def test_answers_have_the_functions_own_form_and_the_pools_scale(
    fn: Any, rows: Any, options: dict[str, Any], design: str
) -> None:
    if design != "pool":
        options = {"cap": 0.9, "design": design} | ({} if design == "bits" else {"worlds": 32, "draws": 512})
    plan = planned(fn, rows, **options)
    release, whole = plan.release(), fn(rows)
    assert type(release.value) is type(whole) or np.ndim(whole) == 0
    assert np.shape(release.value) == np.shape(whole)
    if hasattr(whole, "index"):
        assert release.value.index.equals(whole.index)
    summary = plan.summary()
    numbers = np.concatenate([np.ravel(one) for one in (whole.values() if isinstance(whole, dict) else [whole])])
    assert summary.answer == pytest.approx(numbers, rel=1e-9)
    assert (np.abs(release.outputs - numbers) <= 6 * summary.error + 1e-6).all()
    low, high = release.interval(0.99)
    assert ((low - 2 * (high - low) <= numbers) & (numbers <= high + 2 * (high - low))).all()
    assert len(release.names) == len(numbers)
    assert lc.Certificate.from_json(plan.certificate.to_json()) == plan.certificate


@pytest.mark.parametrize("options", [{}, {"cap": 0.9}, {"cap": 0.9, "design": "worlds", "worlds": 32, "draws": 512}])
def test_a_count_is_a_plain_number(options: dict[str, Any]) -> None:
    assert type(planned(lc.stats.count, **options).release().value) is float


def test_the_words_of_a_pool_certificate() -> None:
    certificate = planned(bounds=(0, 100), seed=None).certificate  # seeded, it would be no promise
    text = str(certificate)
    promise = (
        "Nobody can guess with more than 80.00 % success (guessing: 50 %) whether a given person is in this data set"
    )
    assert promise in " ".join(text.split())
    assert "400" not in text, "how many people there are"
    assert "Gaussian differential privacy for adding or removing a person" in " ".join(text.split())
    assert certificate.units == 0
    assert certificate.given(399) == certificate.given(0) == certificate.membership_success
    assert certificate.whoever_is_known
    assert certificate.only_one_person


def test_intervals_cover_the_answer_as_often_as_they_say() -> None:
    inside = []
    for seed in range(60):
        low, high = planned(bounds=(0, 100), seed=seed).release().interval(0.9)
        inside.append((low <= X.mean(axis=0)) & (X.mean(axis=0) <= high))
    assert 0.8 < np.mean(inside) < 0.98


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "needs bounds"),
    ({"bounds": (100, 0)}, "low below high"),
    ({"bounds": (0, np.nan)}, "finite"),
    ({"bounds": (-np.inf, np.inf)}, "finite"),
    ({"bounds": 7}, "two numbers"),
    ({"bounds": (0, 1, 2)}, "two numbers"),
    ({"bounds": ([0, 0, 0], [1, 1, 1])}, "2 columns"),
    ({"bounds": {"cost": (0, 100)}}, "columns have names"),
    ({"bounds": {"cost": (0, 100)}, "rows": TABLE[["cost", "stay"]]}, "no bounds for column 'stay'"),
    ({"bounds": {"cots": (0, 1)}, "rows": TABLE[["cost", "stay"]]}, "not asked about: 'cots'"),
    ({"bounds": (0, 1e200)}, "beyond 1e100"),
    ({"bounds": (0, 100), "unit": np.arange(400) // 2}, "rows_per_unit"),
    ({"bounds": (0, 100), "unit": np.arange(400) // 2, "rows_per_unit": 0}, "at least 1"),
    ({"bounds": (0, 100), "worlds": 64}, "leave out worlds"),
    ({"bounds": (0, 100), "rate": 0.25}, "leave out rate"),
    ({"bounds": (0, 100), "strata": np.arange(400) % 2}, "leave out strata"),
    ({"bounds": (0, 100), "weights": [1, 2]}, "leave out weights"),
    ({"bounds": (0, 100), "mode": "confidence"}, "leave out mode"),
    ({"bounds": (0, 100), "design": "bits"}, "leave out design"),
    ({"bounds": (0, 100), "cap": [POOL, lc.membership(0.6)]}, "stands alone"),
    ({"bounds": (0, 100), "cap": lc.membership(0.6)}, "bounds are for a pool cap"),
    ({"bounds": (0, 100), "rows": X[:0]}, "no rows"),
    ({"bounds": (0, 100), "rows": np.where(X > 60, np.nan, X)}, "missing or infinite"),
    ({"fn": lc.stats.median, "bounds": (0, 100)}, "grid=range"),
    ({"fn": lc.stats.variance, "bounds": (0, 100)}, "audit.universe"),
    ({"fn": lambda rows: rows.mean(), "bounds": (0, 100)}, "audit.universe"),
    ({"fn": lc.additive(lambda rows: rows[0]), "bounds": None}, "bounds of what one person brings"),
    ({"fn": lc.additive(lambda rows: rows[: len(rows) // 2]), "bounds": (0, 1)}, "finite|shape"),
    ({"fn": lc.additive(lambda rows: [np.nan]), "bounds": (0, 1)}, "finite"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_bad_input_is_refused_in_our_words_and_quotes_no_value(options: dict[str, Any], words: str) -> None:
    options = dict(options)
    with pytest.raises(lc.InputError, match=words) as raised:
        planned(options.pop("fn", lc.stats.mean), options.pop("rows", X), **options)
    assert not any(f"{value:.4f}" in str(raised.value) for value in X.ravel())


@pytest.mark.parametrize("success", [0.5, 0.3, 1.0, 1.5, np.nan, "0.55"])
def test_caps_that_say_nothing_are_refused(success: Any) -> None:
    with pytest.raises(lc.InputError):
        lc.pool_membership(success)


def test_a_cap_next_to_a_coin_flip_is_refused() -> None:
    with pytest.raises(lc.CapError, match="coin flip"):
        planned(bounds=(0, 100), cap=lc.pool_membership(0.5 + 1e-15))


def test_rows_outside_the_bounds_are_cut_and_counted_for_the_custodian() -> None:
    plan = planned(bounds=(40, 60))
    outside = int(((X < 40) | (X > 60)).sum())
    assert plan.run.brings.cut == outside
    assert f"{outside:,} entries lay outside the bounds" in str(plan.summary())
    assert "outside" not in str(plan.certificate)


def test_bounds_that_look_read_off_the_data_are_warned_of() -> None:
    with pytest.warns(BoundsWarning, match="smallest and largest"):
        planned(bounds=(X.min(axis=0), X.max(axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        planned(bounds=(0, 100))


@pytest.mark.parametrize(
    "contributions",
    [lambda rows: rows - rows.mean(axis=0), lambda rows: rows / len(rows), lambda rows: np.cumsum(rows, axis=0)],
)
def test_contributions_that_look_at_other_people_are_refused(contributions: Any) -> None:
    with pytest.raises(lc.InputError, match="other people's rows"):
        lc.plan(lc.additive(contributions, each="row"), X, cap=0.6, design="bits")


def test_under_a_pool_cap_everybody_is_asked_alone() -> None:
    """Then contributions that look at others have nobody to look at."""
    plan = planned(lc.additive(lambda rows: rows - rows.mean(axis=0), each="row"), bounds=(-50, 50))
    assert plan.summary().answer == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (((), "count"), "declare the groups"),
        (({}, "count"), "declare the groups"),
        (({"ward": "ABC"}, "count"), "declare the groups"),
        (({"ward": ["A", "A"]}, "count"), "different"),
        (({"ward": []}, "count"), "at least one"),
        ((KEYS, "median"), "must be one of"),
        ((KEYS, "mean"), "needs the columns"),
        ((KEYS, "count", "cost"), "needs the columns"),
    ],
)
def test_groups_that_are_not_declared_are_refused(given: Any, words: str) -> None:
    with pytest.raises(lc.InputError, match=words):
        lc.stats.group_by(*given)


def test_rows_in_no_declared_group_count_nowhere() -> None:
    assert lc.stats.group_by({"ward": ["A", "Z"]})(TABLE).tolist() == [(TABLE.ward == "A").sum(), 0]


def test_a_polars_table_gives_what_a_pandas_table_gives() -> None:
    fn = lc.stats.group_by(KEYS, "mean", of="cost")
    first, second = (planned(fn, rows, bounds=(0, 100)).release() for rows in (TABLE, polars.from_pandas(TABLE)))
    assert np.array_equal(first.outputs, second.outputs)


def test_a_pool_plan_resumes_to_the_same_release(tmp_path: Any) -> None:
    fn, options = lc.stats.group_by(KEYS, "mean", of="cost"), {"bounds": (0, 100), "cap": POOL, "checkpoint": tmp_path}
    first = lc.plan(fn, TABLE, **options).release()
    again = lc.plan(fn, TABLE, **options).release()
    assert first.value.equals(again.value)
    assert np.array_equal(first.interval(0.9), again.interval(0.9))


def test_an_audit_of_a_pool_plan_looks_for_one_person_in_it() -> None:
    found = lc.audit.run(planned(bounds=(0, 100)), trials=4000)
    assert found.holds and "in the data" in {one.attack for one in found.findings}


def test_recaps_keep_the_kind_of_cap() -> None:
    plan = planned(bounds=(0, 100))
    assert plan.recap(lc.pool_membership(0.9)).noise.std < plan.noise.std
    with pytest.raises(lc.CapError, match="stands alone"):
        plan.recap(0.6)
