"""Pipelines with categories, bins and knots: their form is the pool's, is listed, and leaves as plain scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import leakcap as lc
from leakcap.errors import SmallGroupWarning
from leakcap.estimators import Private
from leakcap.estimators.coordinates import Coordinates
from leakcap.estimators.held import with_form_of
from leakcap.estimators.logistic_sums import moved_scores
from tests.later import others_later

N = 120
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "size": RNG.normal(size=N),
        "ward": RNG.choice(["A", "B", "C"], N, p=[0.6, 0.34, 0.06]),
        "job": RNG.choice(["none", "some"], N),
    }
)
TABLE.loc[::7, "size"] = np.nan
TABLE.loc[::11, "job"] = None
Y = (TABLE["age"] + 20 * (TABLE["ward"] == "A") + RNG.normal(0, 10, N) > 65).to_numpy()
HOW: dict[str, Any] = {"cap": lc.membership(0.9), "worlds": 16, "random_state": 0, "options": {"draws": 256}}
FEW = "ignore:fewer than 5|:leakcap.errors.UselessReleaseWarning"


def columns(**parts: Any) -> Any:
    return ColumnTransformer([(name, one, some) for name, (one, some) in parts.items()])


FORMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "categories": (columns(w=(OneHotEncoder(), ["ward"])), ("Categories of ward (OneHotEncoder)",)),
    "few categories": (
        columns(w=(OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"), ["ward"])),
        ("Categories of ward (OneHotEncoder)",),
    ),
    "dense and a scale": (
        columns(n=(StandardScaler(), ["age"]), w=(OneHotEncoder(sparse_output=False), ["ward"])),
        ("Categories of ward (OneHotEncoder)",),
    ),
    "given categories": (columns(w=(OneHotEncoder(categories=[["A", "B", "C"]]), ["ward"])), ()),
    "in order": (columns(w=(OrdinalEncoder(), ["ward"])), ("Categories of ward (OrdinalEncoder)",)),
    "targets": (columns(w=(TargetEncoder(cv=2), ["ward"])), ("Categories of ward (TargetEncoder)",)),
    "bins": (columns(a=(KBinsDiscretizer(4), ["age"])), ("Bins of age (KBinsDiscretizer)",)),
    "knots": (columns(a=(SplineTransformer(4), ["age"])), ("Knots of age (SplineTransformer)",)),
    "missing text": (
        columns(j=(make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["job"])),
        ("What missing cells become of job (SimpleImputer)", "Categories of job (OneHotEncoder)"),
    ),
    "knots of filled cells": (
        columns(s=(make_pipeline(SimpleImputer(strategy="most_frequent"), SplineTransformer(3)), ["size"])),
        ("What missing cells become of size (SimpleImputer)", "Knots of size (SplineTransformer)"),
    ),
    "missing numbers": (columns(s=(make_pipeline(SimpleImputer(), StandardScaler()), ["age", "size"])), ()),
    "a union": (
        make_pipeline(
            columns(a=("passthrough", ["age"])), FeatureUnion([("b", KBinsDiscretizer(3)), ("s", StandardScaler())])
        ),
        ("Bins of the columns (KBinsDiscretizer)",),
    ),
}


LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.from_pandas}
IN_BOTH = ("categories", "missing numbers", "a union")
OFTEN = [f"{form} of {name}" for form in FORMS for name in LIBRARIES if name == "pandas" or form in IN_BOTH]


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("table", others_later([f"{form} of {name}" for form in FORMS for name in LIBRARIES], *OFTEN))
def test_the_form_is_the_pools_and_is_listed(table: str) -> None:
    form, _, name = table.rpartition(" of ")
    (transformer, listed), kind = FORMS[form], LIBRARIES[name]
    model = Private(make_pipeline(transformer, LogisticRegression()), **HOW).fit(kind(TABLE), Y)
    public = " ".join(model.certificate_.pool_public)
    assert all(words in public for words in listed)
    assert listed or not any(word in public for word in ("Categories", "Bins", "Knots", "missing"))
    content = pickle.dumps(model.estimator_)
    assert b"leakcap" not in content, "the released pipeline is plain scikit-learn"
    assert pickle.loads(content).predict(kind(TABLE)).shape == (N,)
    plain = clone(make_pipeline(transformer, LogisticRegression())).fit(kind(TABLE), Y)
    assert model.estimator_[-1].coef_.shape == plain[-1].coef_.shape


@pytest.mark.filterwarnings(FEW)
def test_what_is_held_stays_as_the_whole_pool_made_it() -> None:
    """No world's own bins, knots or fillings are released."""
    held = columns(
        a=(KBinsDiscretizer(4), ["age"]),
        k=(SplineTransformer(4), ["age"]),
        s=(SimpleImputer(strategy="most_frequent"), ["size"]),
        w=(OneHotEncoder(), ["ward"]),
    )
    plain, half = make_pipeline(held, Ridge()), TABLE[60:]
    whole = clone(plain).fit(TABLE, TABLE["age"])
    wanted = whole[0].transform(half)
    form, _ = with_form_of(plain, whole)
    assert np.array_equal(clone(form).fit(half, half["age"])[0].transform(half), wanted)
    model = Private(plain, **HOW).fit(TABLE, TABLE["age"])
    pool, made = clone(held).fit(TABLE).named_transformers_, model.estimator_[0].named_transformers_
    assert np.array_equal(made["a"].bin_edges_[0], pool["a"].bin_edges_[0])
    assert np.array_equal(made["k"].bsplines_[0].t, pool["k"].bsplines_[0].t)
    assert np.array_equal(made["s"].statistics_, pool["s"].statistics_)
    assert np.array_equal(made["w"].categories_[0], pool["w"].categories_[0])


@pytest.mark.filterwarnings(FEW)
def test_a_category_of_one_person_is_a_target_in_all_worlds() -> None:
    rare = TABLE.assign(ward=["D", *TABLE["ward"][1:]])
    held = columns(w=(TargetEncoder(cv=2, target_type="continuous"), ["ward"]))
    with pytest.warns(SmallGroupWarning):
        made = Private(make_pipeline(held, Ridge()), **HOW).fit(rare, TABLE["age"])
    encoder = made.estimator_[0].named_transformers_["w"]
    assert encoder.categories_[0].tolist() == ["A", "B", "C", "D"] and encoder.encodings_[0].shape == (4,)
    assert encoder.categories == "auto"


@pytest.mark.filterwarnings(FEW)
def test_rare_categories_are_warned_about() -> None:
    rare = TABLE.assign(ward=["D", *TABLE["ward"][1:]])
    model = Private(make_pipeline(columns(w=(OneHotEncoder(), ["ward"])), Ridge()), **HOW)
    with pytest.warns(SmallGroupWarning):
        model.fit(rare, TABLE["age"])


@pytest.mark.filterwarnings(FEW)
def test_a_search_over_a_pipeline_with_categories() -> None:
    pipeline = make_pipeline(columns(w=(OneHotEncoder(), ["ward"]), a=(StandardScaler(), ["age"])), Ridge())
    model = Private(GridSearchCV(pipeline, {"ridge__alpha": [1.0, 10.0]}, cv=2), **HOW).fit(TABLE, TABLE["age"])
    assert model.predict(TABLE).shape == (N,)
    assert any("Categories of ward" in words for words in model.certificate_.pool_public)


@pytest.mark.filterwarnings(FEW)
def test_parameters_are_as_they_were_asked_for() -> None:
    pipeline = make_pipeline(columns(w=(OneHotEncoder(handle_unknown="ignore"), ["ward"])), LogisticRegression(C=0.5))
    model = Private(pipeline, **HOW).fit(TABLE, Y)
    asked, made = pipeline.get_params(), model.estimator_.get_params()
    assert made.keys() == asked.keys()
    assert all(made[name] == asked[name] for name in asked if isinstance(asked[name], (str, float, int, type(None))))
    assert not hasattr(pipeline[0], "transformers_")
    assert FunctionTransformer  # what takes nothing from the data needs nothing


# A coin for everybody, where the last step is made of sums


def bits(estimator: Any, **more: Any) -> Any:
    return Private(estimator, cap=lc.membership(0.9), random_state=0, **more)


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_a_pipeline_that_ends_in_sums_takes_coins_and_lists_what_it_takes_from_the_pool(form: str) -> None:
    table = TABLE if form == "pandas" else pl.from_pandas(TABLE)
    steps = columns(
        n=(make_pipeline(SimpleImputer(), StandardScaler()), ["age", "size"]),
        w=(OneHotEncoder(handle_unknown="ignore"), ["ward", "job"]),
    )
    made = bits(make_pipeline(steps, LogisticRegression(C=0.1))).fit(table, Y)
    assert made.certificate_.design == "independent fair bits"
    assert "All that OneHotEncoder takes from ward, job" in made.certificate_.pool_public
    assert "All that StandardScaler takes from age, size" in made.certificate_.pool_public
    plain = clone(made.estimator).fit(table, Y)
    assert type(made.estimator_) is type(plain)
    assert np.mean(made.predict(table) == plain.predict(table)) > 0.8
    again = pickle.loads(pickle.dumps(made))
    assert np.array_equal(again.predict(table), made.predict(table))
    for part in (made.estimator_[0].transformers_[0][1][1], made.estimator_[0].transformers_[0][1][0]):
        assert not hasattr(part, "n_samples_seen_")


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(solver="liblinear"),
        LogisticRegression(class_weight="balanced"),
        make_pipeline(QuantileTransformer(n_quantiles=5), Ridge()),
        make_pipeline(KNNImputer(), Ridge()),
        Ridge(positive=True),
    ],
    ids=str,
)
def test_what_keeps_rows_of_people_or_has_another_optimum_is_asked_of_worlds(estimator: Any) -> None:
    assert Private(estimator, cap=0.55)._design(0.55) == "worlds"
    with pytest.raises(lc.InputError, match="leave design out, and worlds are simulated"):
        bits(estimator, options={"design": "bits"}).fit(
            TABLE[["age"]], Y.astype(float) if is_regressor(estimator) else Y
        )


@pytest.mark.parametrize("asked", [{"worlds": 64}, {"strata": "y"}, {"drop": ("a_",)}, {"options": {"draws": 256}}])
def test_what_asks_for_worlds_gets_worlds(asked: dict[str, Any]) -> None:
    assert Private(Ridge(), cap=0.55)._design(0.55) == "bits"
    assert Private(Ridge(), cap=0.55, **asked)._design(0.55) == "worlds"
    assert Private(Ridge())._design(lc.identification(0.5)) == "worlds"


def test_a_category_that_few_carry_is_warned_of_with_coins_too() -> None:
    rare = TABLE.assign(ward=np.where(np.arange(N) < 2, "Z", TABLE["ward"]))
    with pytest.warns(SmallGroupWarning):
        bits(make_pipeline(columns(w=(OneHotEncoder(), ["ward"]), n=(StandardScaler(), ["age"])), Ridge())).fit(
            rare, Y.astype(float)
        )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_by_how_much_a_row_moves_a_logistic_fit_is_what_refitting_without_it_shows(
    classes: int, intercept: bool
) -> None:
    """Oracle: scikit-learn's own fit with one row's weight lowered by a thousandth."""
    rng = np.random.default_rng(1)
    x, codes, weight = rng.normal(size=(60, 3)), rng.integers(0, classes, 60), rng.uniform(0.5, 2, 60)
    x[:, 0] += codes
    plain = LogisticRegression(C=0.7, fit_intercept=intercept, tol=1e-12, max_iter=10**5)
    coordinates = Coordinates.of(x)
    moved = moved_scores(clone(plain).fit(x, codes, sample_weight=weight), (x, codes, weight), coordinates=coordinates)
    moves = moved.moves(x, codes, weight)
    assert np.abs(moves.sum(axis=0)).max() < 1e-9
    gradient_share = 0.001
    for row in (0, 7, 31):
        fits = []
        for sign in (-1, 1):
            other = weight.copy()
            other[row] *= 1 + sign * gradient_share
            fit = clone(plain).fit(x, codes, sample_weight=other)
            fits.append(coordinates.encode(fit.coef_, np.broadcast_to(fit.intercept_, (len(fit.coef_),))).ravel())
        seen = (fits[1] - fits[0]) / (2 * gradient_share)
        # A row also takes its share of what the penalty holds up.
        total = moved.moves(x, codes, weight) + weight[:, None] / weight.sum() * _held_up(moved, x, codes, weight)
        assert np.allclose(seen, total[row], atol=2e-4)


def _held_up(moved: Any, x: Any, codes: Any, weight: Any) -> Any:
    return weight.sum() * moved.moves.mean @ moved.moves.through
